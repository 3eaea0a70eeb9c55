"""Two releases that differ by a few rows give those rows away by subtraction; the ledger does not let the second go."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from tests.attacks.test_recovery import small_world

from radocraft import (
    Contract,
    Part,
    Policy,
    craft,
    example_peers,
    learn,
    let_scores_go,
    make_release,
    release,
    tell_scores,
)
from radocraft import let_go as rc_let_go
from radocraft.cells import ROLLED, Cells, standardise
from radocraft.errors import PolicyRefusal
from radocraft.policy.limits import Counts, Limits
from radocraft.policy.recoding import recode, released_groups
from radocraft.policy.rolling import rolled_up
from radocraft.privacy.ledger import Ledger
from radocraft.privacy.record import Beside, record

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
    part = Part.seal(released, ledger=policy.ledger)
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


def test_the_same_large_numbers_added_in_another_order_may_leave(tmp_path):
    columns = table(100_000)
    columns["income"] = 1e8 * np.exp(columns["income"])
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    order = np.random.default_rng(1).permutation(100_000)
    let_go({name: values[order] for name, values in columns.items()}, policy)
    columns["income"][7] += 1e8
    with pytest.raises(PolicyRefusal, match="single rows have changed"):
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


def test_another_label_does_not_open_the_door(tmp_path):
    """The same table less three rows, under a contract that swaps or leaves out the label."""
    columns = table()
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    swapped = Contract.parse(TEXT.replace("positive = 1, negative = 0", "positive = 0, negative = 1"))
    assert swapped.fingerprint != CONTRACT.fingerprint
    with pytest.raises(PolicyRefusal, match="by subtraction"):
        let_go(first(columns, 397), policy, swapped)
    let_go(columns, policy, swapped)


NUMBER = TEXT.replace(
    'label = { column = "bad", positive = 1, negative = 0 }',
    'label = { column = "score", kind = "numeric", edges = [50] }',
)


def scored(rows: int = 400) -> dict[str, np.ndarray]:
    columns = table(rows)
    score = np.where(np.arange(rows) % 2, 70.0, 30.0) + np.random.default_rng(1).uniform(-9, 9, rows)
    score[:6:2] = 45.0
    return columns | {"score": score}


def test_bins_of_the_label_may_not_cut_a_few_rows_out(tmp_path):
    """Three rows have a label between the two contracts' edges: their sums are the difference of two cells."""
    columns, moved = scored(), Contract.parse(NUMBER.replace("edges = [50]", "edges = [40]"))
    bare = Policy(mode="none", gives_away_single_rows=True, ledger=str(tmp_path / "bare"))
    first_, second = (let_go(columns, bare, c).cells(c) for c in (Contract.parse(NUMBER), moved))
    below = [cells.sums[cells.labels == 1].sum(axis=0) for cells in (first_, second)]
    stolen = (below[0] - below[1])[:2]
    np.testing.assert_allclose(stolen, [columns[name][:6:2].sum() for name in ("debt", "income")], atol=1e-9)
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy, Contract.parse(NUMBER))
    with pytest.raises(PolicyRefusal, match="by subtraction"):
        let_go(columns, policy, moved)


def test_a_label_that_was_a_shared_feature_is_compared_with_it(tmp_path):
    """The age is the label of the second contract, cut elsewhere than the first contract cuts it."""
    columns = table()
    columns["age"] = np.where(columns["age"] < 40, 30, 60) + np.random.default_rng(1).uniform(-9, 9, 400)
    columns["age"][:3] = 42
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    aged = TEXT.replace(
        '{ column = "bad", positive = 1, negative = 0 }', '{ column = "age", kind = "numeric", edges = [45] }'
    )
    aged = aged.replace(', { name = "age", edges = [40] }', "")
    with pytest.raises(PolicyRefusal, match="by subtraction"):
        let_go(columns, policy, Contract.parse(aged))


def test_another_name_for_a_column_does_not_open_the_door(tmp_path):
    columns = table()
    columns["age"] = np.where(columns["age"] < 40, 30, 50)
    columns["age"][:3] = 40
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    renamed = TEXT.replace('{ name = "age", edges = [40] }', '{ name = "years", edges = [45] }')
    with pytest.raises(PolicyRefusal, match="by subtraction"):
        let_go(columns, policy, Contract.parse(renamed + '\n[peers.bank.columns]\nyears = "age"\n'))


def test_categories_that_are_numbers_are_compared_with_bins(tmp_path):
    columns = table()
    columns["age"] = np.where(columns["age"] < 40, 30, 50)
    columns["age"][:30] = 40
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    worded = TEXT.replace('{ name = "age", edges = [40] }', '{ name = "age", categories = [30, 40, 50] }')
    with pytest.raises(PolicyRefusal, match="by subtraction"):  # 30 is all that is below 40 but for rows gone since
        let_go(first(columns, 397), policy, Contract.parse(worded))


@pytest.mark.parametrize("other", ['name = "other risk"', "one column less"])
def test_a_changed_row_shows_under_another_contract_too(tmp_path, other):
    """The same regions with as many rows, but a row was put in another's place: the difference is that row."""
    columns = table()
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    less = TEXT.replace('debt = { kind = "numeric", centre = 0, scale = 1 }\n', "")
    changed = Contract.parse(less if other == "one column less" else TEXT.replace('name = "risk"', other))
    let_go(columns, policy, changed)
    columns["income"][7] += 0.5
    with pytest.raises(PolicyRefusal, match="single rows have changed"):
        let_go(columns, policy, changed)
    with pytest.raises(PolicyRefusal, match="single rows have changed"):
        let_go(columns, Policy(ledger=str(tmp_path / "ledger"), table="customers"), changed)


@pytest.mark.parametrize("other", [Policy(14), Policy(signatures="labels-only")])
def test_the_same_rows_may_not_leave_rolled_up_in_two_ways(tmp_path, other):
    """Each hides its small blocks; the groups of both together determine many of them."""
    world = small_world(6, rows=160)
    exact = standardise(world.tally(0), world.contract)
    systems = [released_system(exact, policy) for policy in (Policy(), other)]
    assert [small_groups(system, exact) for system in systems] == [0, 0]
    assert small_groups(np.vstack(systems), exact) > 0
    ledger = str(tmp_path / "ledger")
    kept = [policy.model_copy(update={"ledger": ledger}) for policy in (Policy(), other)]
    released = [release(world.tally(0), world.contract, policy) for policy in kept]
    record(released[0], Part.seal(released[0], ledger=ledger), kept[0], "customers")
    record(released[0], Part.seal(released[0], ledger=ledger), kept[0], "customers")
    with pytest.raises(PolicyRefusal, match="give away"):
        record(released[1], Part.seal(released[1], ledger=ledger), kept[1], "customers")


def released_system(exact: Cells, policy: Policy) -> np.ndarray:
    """Every group of blocks whose rows leave."""
    limits = Limits(exact, Counts.none(len(exact.rows)), policy.limit)
    only = policy.signatures == "labels-only"
    found = recode(limits, np.full_like(exact.codes, ROLLED) if only else rolled_up(limits))
    every, shown = np.arange(len(exact.rows)), ~found.rolled.any(axis=1)
    return np.vstack([*(group.toarray() for group in released_groups(found, every)), np.eye(len(every))[shown]])


def small_groups(system: np.ndarray, exact: Cells) -> int:
    """Blocks and pairs of blocks with fewer than ten rows whose number of rows follows."""
    _, values, right = np.linalg.svd(system, full_matrices=False)
    basis, count = right[values > 1e-9 * values.max()], len(exact.rows)
    wanted = [np.eye(count)[list(union)].sum(axis=0) for size in (1, 2) for union in combinations(range(count), size)]
    small = [one for one in wanted if one @ exact.rows < 10]
    return sum(bool(np.linalg.norm(one - basis.T @ (basis @ one)) < 1e-6) for one in small)


def test_another_name_for_the_peer_does_not_open_the_door(tmp_path):
    columns = table()
    policy = Policy(ledger=str(tmp_path / "ledger"))
    let_go(columns, policy)
    renamed = Contract.parse(TEXT.replace("peers.bank", "peers.bank2"))
    released = release(craft(pa.table(first(columns, 397)), renamed, "bank2"), renamed, policy)
    with pytest.raises(PolicyRefusal, match="by subtraction"):
        record(released, Part.seal(released, ledger=policy.ledger), policy, "customers")


def test_counts_of_scores_and_differential_privacy_exclude_each_other(tmp_path):
    """A private release of the same table under another contract: the exact counts would undo it, either way round."""
    contract, tables = example_peers(rows=1000)
    policy = Policy(ledger=str(tmp_path / "ledger"))
    made = {peer: make_release(tables[peer], contract, peer, policy) for peer in tables}
    parts = [rc_let_go(one, policy, peer, tmp_path / peer) for peer, one in made.items()]
    model = learn(parts, contract)
    told = tell_scores(tables["bank"], model, "bank", policy)
    noisy = {"kind": "release", "table": "bank", "peer": "other", "part": "x", "mode": "differential-privacy"}
    Ledger(tmp_path / "ledger").append({**noisy, "fingerprint": "z", "trace": None, "rho": 0.1})
    with pytest.raises(PolicyRefusal, match="take its protection away"):
        let_scores_go(told, model, policy, "bank", tmp_path / "scores.json")
    assert not (tmp_path / "scores.json").exists()
    scores = {"kind": "scores", "table": "bank", "peer": "bank", "part": "y"}
    with pytest.raises(PolicyRefusal, match="takes the other's protection away"):
        Beside(noisy, 10).check([scores])
