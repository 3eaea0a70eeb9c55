"""The gate as a whole: what leaves, what is rolled up, what is refused, and what all of it costs."""

import re

import numpy as np
import pyarrow as pa
import pytest
from tests.property.worlds import agree
from tests.unit.noisy import noisy_part

import radocraft as rc
from radocraft import Contract, Policy, Tally, craft, release
from radocraft.arrays import add_up
from radocraft.errors import ContractMismatch, OneClass, PolicyError, PolicyRefusal
from radocraft.gate import Noise, Release, epsilon_of
from radocraft.gate._signatures import Signatures
from radocraft.rows import craft_rows
from radocraft.sums import ROLLED
from radocraft.sums._bounds import GRID
from radocraft.sums._cells import locate

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["north", "south"] }, { name = "age", edges = [40] }]

[peers.bank.features]
income = { kind = "numeric", centre = 10, scale = 2 }
job = { kind = "categorical", categories = ["clerk", "farmer", "pilot"] }
member = "boolean"
""")
A = ROLLED


def table(rows: int = 4000, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "bad": np.arange(rows) % 2,
        "region": np.where(np.arange(rows) // 2 % 2, "north", "south"),
        "age": np.where(np.arange(rows) // 4 % 2, 30, 50),
        "income": rng.normal(10, 2, rows),
        "job": rng.choice(["clerk", "farmer"], rows).astype(object),
        "member": rng.random(rows) < 0.5,
        "who": np.arange(rows) // 3,
    }


def gate(columns: dict[str, np.ndarray], policy: Policy | None = None, seed: int = 0) -> tuple[Tally, Release]:
    policy, noise = policy or Policy(), Noise.seeded(seed, "bank")
    tally = craft(pa.table(columns), CONTRACT, "bank", bounds=policy.bounds)
    return tally, release(tally, CONTRACT, policy, noise)


def tally_of(sizes: dict[tuple[int, ...], int], contract: Contract) -> Tally:
    """So many rows for each (codes..., label)."""
    keys = np.repeat(np.array(list(sizes), dtype=np.int64), list(sizes.values()), axis=0)
    values = np.arange(float(len(keys)))[:, None]
    return craft_rows(contract, "p0", ("x0_0",), codes=keys[:, :-1], labels=keys[:, -1], values=values, bounds=None)


def shown(released: Release) -> dict[tuple[int, ...], int]:
    cells = released.cells
    keys = np.column_stack([cells.codes, cells.labels]).tolist()
    return {tuple(key): int(rows) for key, rows in zip(keys, cells.rows, strict=True)}


def test_exact_sums_are_rolled_up_by_exact_counts() -> None:
    contract = agree([1], [2])
    sizes = {(0, 1): 10, (1, 1): 9, (0, -1): 10, (1, -1): 10}
    released = release(tally_of(sizes, contract), contract, Policy.exact(10))
    assert shown(released) == {(A, 1): 19, (0, -1): 10, (1, -1): 10}
    assert released.rolled_up == 2
    assert (released.spend.rho, released.spend.delta) == (0.0, 0.0)
    assert shown(release(tally_of(sizes, contract), contract, Policy.exact())) == sizes


@pytest.mark.parametrize("label", [1, -1])
def test_one_class_is_no_release(label: int) -> None:
    contract = agree([1], [2])
    with pytest.raises(OneClass, match="Only one value of the label 'label' occurs at 'p0'") as raised:
        release(tally_of({(0, label): 30}, contract), contract, Policy.exact())
    assert raised.value.exit_code == 1


@pytest.mark.parametrize("rare", [0, 1, 7])
def test_a_rare_label_is_refused_in_the_same_words_however_rare(rare: int) -> None:
    columns = table()
    columns["bad"][:] = 0
    columns["bad"][:rare] = 1
    with pytest.raises(PolicyRefusal) as raised:
        gate(columns)
    assert str(raised.value) == (
        "'bank' has too few rows of label '1', or none: they do not stand out of the noise. Check the spelling in "
        "[label] of the contract, or give more rows."
    )
    assert raised.value.exit_code == 4


def test_a_tally_of_another_contract_or_other_bounds_is_refused() -> None:
    tally = tally_of({(0, 1): 30, (0, -1): 30}, agree([1], [2]))
    with pytest.raises(ContractMismatch, match="another contract") as raised:
        release(tally, agree([1], [3]), Policy.exact())
    assert raised.value.exit_code == 3
    with pytest.raises(ContractMismatch, match="not bounded as the policy says"):
        release(tally, agree([1], [2]))
    with pytest.raises(ContractMismatch, match="not bounded as the policy says"):
        release(gate(table())[0], CONTRACT, Policy(bound=3.0))


@pytest.mark.parametrize("min_rows", [0, -1])
def test_min_rows_is_at_least_1(min_rows: int) -> None:
    with pytest.raises(PolicyError, match="min_rows"):
        Policy(min_rows=min_rows)


@pytest.mark.parametrize("policy", [Policy, Policy.exact])
def test_features_and_contracts_are_limited(policy) -> None:
    with pytest.raises(PolicyRefusal, match="does not allow the feature 'job'"):
        gate(table(), policy(features=("income", "member")))
    with pytest.raises(PolicyRefusal, match="does not allow the contract"):
        gate(table(), policy(contracts=("abc",)))
    gate(table(), policy(contracts=(CONTRACT.fingerprint,), features=("income", "job", "member")))


@pytest.mark.parametrize("policy", [Policy, Policy.exact])
def test_labels_only_releases_no_signature(policy) -> None:
    _, released = gate(table(), policy(signatures="labels-only"))
    assert released.cells.codes.tolist() == [[A, A]] * 2
    assert released.cells.rows.tolist() == pytest.approx([2000, 2000], abs=4 * released.cells.levels.rows + 1)


def test_a_constant_column_is_noted_where_sums_are_exact() -> None:
    contract = agree([2], [1], fixed=False)
    labels = np.where(np.arange(40) % 2, 1, -1)
    values = np.column_stack([np.full(40, 1e8 + 0.1), np.arange(40.0)])
    codes = np.zeros((40, 1), dtype=np.int64)
    tally = craft_rows(contract, "p0", ("x0_0", "x0_1"), codes=codes, labels=labels, values=values, bounds=None)
    released = release(tally, contract, Policy.exact(10))
    assert released.notes == ("'x0_0' is the same in all rows: it carries nothing",)
    assert released.cells.scale[0] == 1.0
    np.testing.assert_allclose(released.cells.sums[:, 0], 0.0, atol=1e-6)


def test_a_column_without_a_value_is_noted_where_sums_are_exact_and_does_no_harm_where_not() -> None:
    contract, tables = rc.example_peers(rows=2_000)
    lost = tables["bank"].column_names.index("balance")
    empty = tables["bank"].set_column(lost, "balance", pa.nulls(len(tables["bank"]), pa.float64()))
    exact = release(craft(empty, contract, "bank", bounds=None), contract, Policy.exact(10))
    assert "'balance' is the same in all rows: it carries nothing" in exact.notes
    noisy = release(craft(empty, contract, "bank"), contract)
    assert np.isfinite(noisy.cells.by_label).all()
    assert not any("balance" in note for note in noisy.notes)


@pytest.mark.parametrize("policy", [Policy(), Policy(noise=2.0), Policy(epsilon=4.0), Policy(min_rows=1000)])
def test_all_noise_has_the_size_it_says(policy: Policy) -> None:
    """Of many releases of one tally: no number is exact, none is off by other than its noise."""
    tally, _ = gate(table(), policy)
    off: dict[str, list[np.ndarray]] = {"rows": [], "sums": [], "moments": []}
    for seed in range(40):
        cells = release(tally, CONTRACT, policy, Noise.seeded(seed, "bank")).cells
        place = locate(cells.codes, cells.labels, tally.codes, tally.labels)
        width, count = len(cells.columns), len(cells.rows)
        off["rows"].append((cells.rows - add_up(tally.rows, place, count)) / cells.levels.rows)
        off["sums"].append((cells.sums - add_up(tally.sums, place, count) / GRID).ravel() / cells.levels.sums)
        moved = cells.by_label[:, :width, :width] - tally.moments[:, :width, :width] / GRID**2
        off["moments"].append(moved[:, *np.triu_indices(width)].ravel() / cells.levels.moments)
    found = {name: np.concatenate(values) for name, values in off.items()}
    for values in found.values():
        assert np.abs(values).max() < 6.0
    for name in ("sums", "moments"):
        assert found[name].std() == pytest.approx(1.0, abs=0.12)
        assert abs(found[name].mean()) < 4.0 / len(found[name]) ** 0.5
    assert 0.1 < found["rows"].std() < 1.1  # of two counts made one, so surer, and whole numbers


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_an_epsilon_is_spent_whole_and_never_more(epsilon: float) -> None:
    _, released = gate(table(), Policy(epsilon=epsilon))
    assert 0.98 * epsilon < epsilon_of(released.spend.rho, 1e-6 - released.spend.delta) <= epsilon
    assert released.epsilon <= epsilon
    assert f"epsilon {epsilon:g} at delta 1e-06 per row" in released.guarantee


def test_less_noise_costs_more_and_more_rows_less() -> None:
    usual, loud = (gate(table(), Policy(noise=noise))[1].spend.rho for noise in (0.5, 2.0))
    assert loud < usual
    assert gate(table(40_000))[1].spend.rho < usual


def test_numbers_that_drown_are_noted() -> None:
    _, released = gate(table(400), Policy(epsilon=0.6))
    assert any("expect a weak model" in note for note in released.notes)
    assert not gate(table())[1].notes


def test_a_budget_that_constants_have_spent_is_refused() -> None:
    contract, tables = rc.example_peers(rows=300)
    with pytest.raises(PolicyRefusal, match="spent before anything leaves"):
        release(craft(tables["bank"], contract, "bank"), contract, Policy(epsilon=0.1))


def test_a_person_counts_at_most_so_many_rows_and_is_hidden_whole() -> None:
    columns, rows, noise = table(), [], []
    for most in (1, 2, 5):
        policy = Policy(unit="person", person="who", rows_per_person=most)
        tally, released = gate(columns, policy)
        rows.append(tally.total)
        noise.append(released.cells.levels.sums / most)
        assert f"person (at most {most} row" in released.guarantee
    assert rows == [1334, 2667, 4000]
    for most, sd, total in zip((1, 2, 5), noise, rows, strict=True):
        assert sd == pytest.approx(max(1.0, 0.5 * (total / len(released.cells.rows)) ** 0.5), rel=0.15), most


def test_every_agreed_signature_is_counted_seen_or_not() -> None:
    """So a row's being there shows in no count's being there."""
    counted = set()
    for change in ("none", "a row less", "a category that nobody else has"):
        columns = table()
        columns["region"] = columns["region"].astype(object)
        if change == "a row less":
            columns = {name: values[1:] for name, values in columns.items()}
        if change == "a category that nobody else has":
            columns["region"][0] = "elsewhere"
        signatures = Signatures.agreed(gate(columns)[0], CONTRACT)
        assert len(signatures) == 4 * 3 * 2
        counted.add((signatures.codes.tobytes(), signatures.labels.tobytes()))
    assert len(counted) == 1


def test_release_learned_from_and_told_about() -> None:
    contract, tables = rc.example_peers(rows=20_000)
    rules = Policy(epsilon=4.0)
    parts = [noisy_part(tables[peer], contract, peer, rules) for peer in tables]
    for part in parts:
        assert abs(part.cells(contract).total - 20_000) < 500
    model = rc.learn(parts, contract)
    assert "epsilon 4 at delta 1e-06 per row" in (model.learned_from[0].guarantee or "")
    assert model.privacy is not None
    said = model.privacy.sentence
    assert re.search(r"costs about \d+\.\d points of error", said)
    assert 0 < model.privacy.loss < 1
    assert rc.explain(model).privacy == said
    assert said in rc.report(model)
