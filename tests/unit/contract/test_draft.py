"""Drafts that people can finish, and contracts in words."""

import pyarrow as pa
import pytest

from radocraft.contract._contract import Contract
from radocraft.contract._draft import draft_contract
from radocraft.contract._words import describe_contract
from radocraft.demo._example import CONTRACT, example_peers
from radocraft.errors import ContractError
from radocraft.rows._profile import profile

BANK = pa.table({"bad": [0, 1] * 20, "age": list(range(40)), "income": [1.5] * 40, "job": ["clerk"] * 40})
SHOP = pa.table({"bad": [0, 1] * 20, "age": list(range(40)), "visits of": [1] * 40, "vip": [True] * 40})


def test_outlined_profiles_draft_a_contract_that_is_in_order() -> None:
    told = {"bank": profile(BANK, outline=True), "the shop": profile(SHOP, outline=True)}
    contract = Contract.parse(draft_contract(told, name='a "b"', label="bad", positive="1", negative="0", columns=True))
    assert contract.name == 'a "b"'
    assert contract.label.positive == 1
    assert [shared.name for shared in contract.shared] == ["age"]
    assert {peer: sorted(held.features) for peer, held in contract.peers.items()} == {
        "bank": ["income", "job"],
        "the shop": ["vip", "visits of"],
    }


def test_bare_profiles_leave_marked_gaps() -> None:
    text = draft_contract({"bank": profile(BANK), "shop": profile(SHOP)}, name="n", label="bad")
    assert text.count("# AGREE:") == 2
    columns = draft_contract({"bank": profile(BANK), "shop": profile(SHOP)}, name="n", label="bad", columns=True)
    assert columns.count("# AGREE:") == 3
    with pytest.raises(ContractError, match="edges"):
        Contract.parse(text)


def test_label_must_be_everywhere() -> None:
    with pytest.raises(ContractError, match="'shop' has no column 'income'"):
        draft_contract({"bank": profile(BANK), "shop": profile(SHOP)}, name="n", label="income")


def test_words_name_every_feature_and_code() -> None:
    words = describe_contract(example_peers(rows=10)[0])
    assert "1. region: north, east, south, west, missing, unseen" in words
    assert "smoker: yes or no" in words
    fixed = Contract.parse(
        CONTRACT.replace('income = "numeric"', 'income = { kind = "numeric", centre = 3, scale = 2 }')
    )
    assert "income: a number, as (value - 3) / 2" in describe_contract(fixed)
    ordinal = Contract.parse(CONTRACT.replace("edges = [30, 45, 60]", 'edges = [30, 45, 60]\nencoding = "ordinal"'))
    assert "one number in that order" in describe_contract(ordinal)
    assert "no shared feature" in describe_contract(
        Contract.parse(
            'name = "n"\nlabel = { column = "y", positive = 1, negative = 0 }\npeers.a.features = { u = "numeric" }'
        )
    )
