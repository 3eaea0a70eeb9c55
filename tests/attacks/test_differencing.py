"""Two releases that differ by a few rows give those rows away by subtraction; the ledger does not let the second go."""

import numpy as np
import pyarrow as pa
import pytest

from radocraft import Contract, Part, Policy, craft, release
from radocraft.errors import PolicyRefusal
from radocraft.privacy.record import record

TEXT = """
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["north", "south"] }, { name = "age", edges = [40] }]

[peers.bank.features]
income = { kind = "numeric", centre = 0, scale = 1 }
debt = { kind = "numeric", centre = 0, scale = 1 }
"""
CONTRACT = Contract.parse(TEXT)


def table(rows: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "bad": np.arange(rows) % 2,
        "region": np.where(np.arange(rows) // 2 % 2, "north", "south"),
        "age": np.where(np.arange(rows) // 4 % 2, 30, 50) + np.arange(rows) % 5,
        "income": rng.normal(size=rows),
        "debt": rng.normal(size=rows),
    }


def first(columns: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    return {name: values[:count] for name, values in columns.items()}


def let_go(columns, policy: Policy, contract: Contract = CONTRACT) -> Part:
    """Release and record, as `radocraft craft` does."""
    released = release(craft(pa.table(columns), contract, "bank"), contract, policy)
    part = Part.seal(released)
    record(released, part, policy, "customers")
    return part


def subtract(new: Part, old: Part) -> np.ndarray:
    """What the attacker learns: the difference of the moment matrices' sums of the private columns."""
    mine, theirs = new.cells(CONTRACT), old.cells(CONTRACT)
    return mine.moments[:2, -1] - theirs.moments[:2, -1]


def test_without_a_limit_one_new_row_is_given_away(tmp_path):
    columns = table()
    policy = Policy(mode="none", gives_away_single_rows=True, ledger=str(tmp_path / "ledger"))
    stolen = subtract(let_go(columns, policy), let_go(first(columns, 399), policy))
    np.testing.assert_allclose(stolen, [columns["debt"][399], columns["income"][399]], atol=1e-9)


@pytest.mark.parametrize("missing", [1, 9, 30])
def test_the_ledger_refuses_a_release_that_differs_by_few_rows(tmp_path, missing):
    columns = table()
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    with pytest.raises(PolicyRefusal, match="by subtraction") as refused:
        let_go(first(columns, 400 - missing), policy)  # 30 rows less are 3 or 4 in each of 8 blocks
    assert str(missing) not in str(refused.value).replace("fewer than 10 rows", "").split("of 20", 1)[0]


def test_a_row_put_in_anothers_place_is_refused(tmp_path):
    columns = table()
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    columns["income"][7] += 0.5
    with pytest.raises(PolicyRefusal, match="single rows have changed"):
        let_go(columns, policy)


def test_two_values_exchanged_inside_a_block_show_in_the_moments_alone_and_are_refused(tmp_path):
    columns = table()
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    alike = np.flatnonzero((columns["bad"] == 0) & (columns["region"] == "south") & (columns["age"] >= 40))[:2]
    columns["income"][alike] = columns["income"][alike[::-1]]
    with pytest.raises(PolicyRefusal, match="single rows have changed"):
        let_go(columns, policy)


def test_the_same_table_again_and_enough_new_rows_may_leave(tmp_path):
    columns = table(800)
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(first(columns, 400), policy)
    let_go(first(columns, 400), policy)
    let_go(columns, policy)


def test_other_bins_may_not_cut_a_few_rows_out(tmp_path):
    columns = table()
    columns["age"] = np.where(columns["age"] < 40, 30, 50)
    columns["age"][:3] = 40
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    with pytest.raises(PolicyRefusal, match="by subtraction"):
        let_go(columns, policy, Contract.parse(TEXT.replace("edges = [40]", "edges = [45]")))
    let_go(columns, policy, Contract.parse(TEXT.replace('name = "risk"', 'name = "other risk"')))


def test_another_table_is_another_matter(tmp_path):
    columns = table()
    let_go(columns, Policy(ledger=str(tmp_path / "ledger"), table="one"))
    let_go(first(columns, 399), Policy(ledger=str(tmp_path / "ledger"), table="two"))
