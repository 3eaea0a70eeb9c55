"""Drafts that people can finish, and contracts in words."""

import pyarrow as pa
import pytest

from radocraft.contract._contract import Contract
from radocraft.contract._draft import draft_contract
from radocraft.contract._outline import Profile
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
    assert text.count("# AGREE:") == 1
    columns = draft_contract({"bank": profile(BANK), "shop": profile(SHOP)}, name="n", label="bad", columns=True)
    assert columns.count("# AGREE:") == 2
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


def told(**columns: dict[str, object]) -> Profile:
    return Profile.model_validate({"columns": [{"name": name, **held} for name, held in columns.items()]})


def number(*quartiles: float, **more: object) -> dict[str, object]:
    return {"kind": "number", "quartiles": quartiles, "distinct": 900, **more}


def word(*categories: str, **more: object) -> dict[str, object]:
    return {"kind": "text", "categories": categories, **more}


BANK_TOLD = told(
    Default={"kind": "boolean"},
    customer={"kind": "text", "distinct": 9000, "unfit": "identifier"},
    note={"kind": "text", "distinct": 8000, "unfit": "free text"},
    currency=word("EUR", unfit="constant"),
    tags={"kind": "other"},
    Region=word("east", "west", cleaning={"fold": True, "missing": ["NA"]}),
    Age=number(30, 45, 60),
    income=number(20000, 30000, 40000, cleaning={"decimal": ","}),
    children={"kind": "number", "quartiles": [1, 2]},
    occupation={"kind": "text", "distinct": 500},
    birth_date={"kind": "date", "quartiles": [1960, 1980], "cleaning": {"format": "%d.%m.%Y"}},
)
SHOP_TOLD = told(
    defaulted={"kind": "boolean", "cleaning": {"fold": True, "values": {"ja": True, "nein": False}}},
    region=word("East", "North", "West"),
    age_at_signing=number(34, 47, 60),
    Income=number(20, 30, 40),
    occupation={"kind": "text", "distinct": 480},
    dateOfBirth={"kind": "date", "quartiles": [1960, 1980]},
    vip={"kind": "boolean"},
)


@pytest.mark.parametrize("columns", [False, True])
def test_a_draft_pairs_cleans_leaves_out_and_marks_what_differs(columns: bool) -> None:
    text = draft_contract(
        {"bank": BANK_TOLD, "shop": SHOP_TOLD}, name="n", label="default", labels={"shop": "defaulted"}, columns=columns
    )
    contract = Contract.parse(text)
    bank, shop = contract.peers["bank"], contract.peers["shop"]
    assert (contract.label.positive, contract.column_of("bank", "default")) == (True, "Default")
    assert contract.column_of("shop", "default") == "defaulted"
    by_name = {shared.name: shared for shared in contract.shared}
    assert by_name["Region"].categories == ("east", "north", "west")
    assert by_name["Age"].edges == (32, 46, 60)
    assert contract.column_of("shop", "Age") == "age_at_signing"
    assert bank.missing == ("NA",)
    assert bank.cleaning["Region"].fold
    assert shop.cleaning["region"].fold
    assert shop.cleaning["defaulted"].values == {"ja": True, "nein": False}
    assert bank.cleaning["birth_date"].format == "%d.%m.%Y"
    for line in (
        "# AGREE: is this the same thing? bank Age; shop age_at_signing",
        "# AGREE: not all peers have the same categories: bank lacks north",
        "# AGREE: ranges differ: ",
        "# not shared: occupation, about 500 different values; agree on coarser ones if it matters",
        "# left out: customer, different in nearly every row, so it says who somebody is",
        "# left out: note, free text",
        "# left out: currency, the same in every row",
        "# left out: tags, neither number, truth value, date nor text",
    ):
        assert line in text, line
    if columns:
        assert contract.key is None
        assert {n: f.kind for n, f in bank.features.items()} == {"children": "numeric"}
        assert {n: f.kind for n, f in shop.features.items()} == {"vip": "boolean"}
        assert by_name["birth_date"].date == "year"
    else:
        assert contract.key is not None
        assert contract.key.day_of_year
        assert contract.column_of("shop", "birth_date") == "dateOfBirth"
        assert contract.score_of("bank")[1].of == ("children", "occupation")


def test_numbers_of_many_values_are_drafted_as_curves() -> None:
    profiles = {
        "bank": told(y={"kind": "boolean"}, x=number(1, 2, 3)),
        "shop": told(y={"kind": "boolean"}, z=number(1)),
    }
    features = Contract.parse(draft_contract(profiles, name="n", label="y", columns=True)).peers["bank"].features
    assert features["x"].kind == "spline"
