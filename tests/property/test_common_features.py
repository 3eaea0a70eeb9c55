"""Features that several peers hold: pooled means and moments, the paper's counters, and horizontal splits."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge as Reference

from radocraft import Contract, Part, Policy, learn, share
from radocraft.arrays import Floats, Ints
from radocraft.errors import ContractError
from radocraft.learning._blocks import Blocks, merge, merge_cells
from radocraft.learning._completion import complete
from radocraft.learning._drl import block_rados
from radocraft.learning._matching import fit_matching
from radocraft.rows import craft_rows
from radocraft.sums._cells import standardise

UNITS = '{ kind = "numeric", centre = 0, scale = 1 }'
THREE = Contract.parse(f"""
name = "three peers"
label = {{ column = "y", positive = 1, negative = -1 }}
shared = [{{ name = "s", categories = [0, 1], encoding = "ordinal" }}]
peers.p0.features = {{ a = {UNITS}, z = {UNITS} }}
peers.p1.features = {{ b = {UNITS}, z = {UNITS} }}
peers.p2.features = {{ c = {UNITS} }}
""")
HELD = {"p0": ["a", "z"], "p1": ["b", "z"], "p2": ["c"]}


def joined(rows: int, seed: int = 0) -> tuple[Ints, Ints, dict[str, Floats]]:
    """Codes, labels and columns; a and b have nothing in common but z, c is on its own."""
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(0, 2, (rows, 1)), rng.choice([-1, 1], rows)
    z = rng.normal(size=rows) + 0.5 * labels
    columns = {
        "a": 0.8 * z + rng.normal(size=rows),
        "b": z - rng.normal(size=rows),
        "c": rng.normal(size=rows) + labels,
    }
    return codes, labels, {**columns, "z": z}


def blocks_of(seen: dict[str, Ints], codes: Ints, labels: Ints, columns: dict[str, Floats]) -> Blocks:
    cells = []
    for peer, rows in seen.items():
        values = np.column_stack([columns[name][rows] for name in HELD[peer]])
        tally = craft_rows(
            THREE, peer, tuple(HELD[peer]), codes=codes[rows], labels=labels[rows], values=values, bounds=None
        )
        cells.append(standardise(tally, THREE))
    return merge_cells(tuple(cells), THREE)


def everybody(rows: int) -> dict[str, Ints]:
    rng = np.random.default_rng(3)
    return {peer: rng.permutation(rows) for peer in HELD}


def parts_of(tables: dict[str, pa.Table], contract: Contract, min_rows: int) -> list[Part]:
    return [share(table, contract, peer, policy=Policy.exact(min_rows)) for peer, table in tables.items()]


@pytest.mark.parametrize("label", ["two", "number"])
@pytest.mark.parametrize("min_rows", [1, 10])
@pytest.mark.parametrize("caution", [0.0, 1.0])
def test_horizontal_splits_equal_ridge_on_the_union(label: str, min_rows: int, caution: float) -> None:
    """Two peers with the same columns and different people: nothing is hidden, and nothing is lost."""
    rng = np.random.default_rng(5)
    rows, alpha = 300, 0.02
    x = rng.normal(size=(rows, 3)) * [1.0, 5.0, 0.1] + [0.0, 40.0, 1.0]
    score = x @ [1.0, 0.2, 3.0] + rng.normal(size=rows)
    y = score if label == "number" else np.where(score > np.median(score), 1.0, -1.0)
    s = rng.integers(0, 3, rows)
    spelled = 'kind = "numeric"' if label == "number" else "positive = 1, negative = -1"
    contract = Contract.parse(f"""
    name = "same columns"
    label = {{ column = "y", {spelled} }}
    shared = [{{ name = "s", categories = [0, 1, 2], encoding = "ordinal" }}]
    peers.north.features = {{ u = "numeric", v = "numeric", w = "numeric" }}
    peers.south.features = {{ u = "numeric", v = "numeric", w = "numeric" }}
    """)
    table = pa.table({"y": y, "s": s, "u": x[:, 0], "v": x[:, 1], "w": x[:, 2]})
    tables = {"north": table.slice(0, 190), "south": table.slice(190)}
    model = learn(parts_of(tables, contract, min_rows), contract, alpha=alpha, caution=caution)
    design = np.column_stack([s - 1.0, (x - x.mean(axis=0)) / x.std(axis=0)])
    truth = Reference(alpha=rows * alpha, solver="cholesky").fit(design, y)
    np.testing.assert_allclose(model.predict(table).score, truth.predict(design), rtol=1e-9, atol=1e-9)


def test_theorem_3_holds_in_expectation_for_a_feature_two_of_three_peers_hold() -> None:
    """Each example is seen by each peer with a probability of its own: rados tend to those of the weighted sample."""
    rows, draws = 40, 1500
    codes, labels, columns = joined(rows)
    rng = np.random.default_rng(1)
    eta = rng.uniform(0.3, 0.9, rows)
    order = ["a", "z", "b", "c"]
    keys = [(code, label) for label in (-1, 1) for code in (0, 1)]
    found = np.zeros((draws, len(keys), 2 + len(order)))
    for draw in range(draws):
        seen = {peer: np.flatnonzero(rng.random(rows) < eta) for peer in HELD}
        blocks = blocks_of(seen, codes, labels, columns)
        place = [keys.index((int(c), int(y))) for c, y in zip(blocks.codes[:, 0], blocks.labels, strict=True)]
        found[draw, place] = block_rados(blocks).T
    examples = np.column_stack([np.ones(rows), 2.0 * codes[:, 0] - 1.0, *(columns[name] for name in order)])
    for at, (code, label) in enumerate(keys):
        inside = (codes[:, 0] == code) & (labels == label)
        truth = label * (eta[inside] @ examples[inside])
        slack = 4.5 * found[:, at].std(axis=0) / draws**0.5
        assert (np.abs(found[:, at].mean(axis=0) - truth) <= slack + 1e-9).all()


def test_when_all_see_the_same_people_nobody_counts_twice() -> None:
    codes, labels, columns = joined(60)
    blocks = blocks_of(everybody(60), codes, labels, columns)
    np.testing.assert_allclose(
        blocks.counters,
        np.bincount(np.unique(np.column_stack([codes, labels]), axis=0, return_inverse=True)[1].reshape(-1)),
    )
    np.testing.assert_allclose(
        block_rados(blocks).sum(axis=1),
        np.column_stack([np.ones(60), 2.0 * codes[:, 0] - 1.0, *(columns[n] for n in "azbc")]).T @ labels,
        rtol=1e-9,
        atol=1e-9,
    )


def test_what_two_peers_have_in_common_through_a_third_column_is_found() -> None:
    """a and b are related, but only through z, which both hold: no term of the joined moments is lost."""
    codes, labels, columns = joined(40_000)
    known = complete(blocks_of(everybody(40_000), codes, labels, columns))
    values = np.column_stack([columns[name] for name in "azbc"])
    truth, found = values.T @ values / 40_000, known.expected()[2:, 2:] / known.total
    np.testing.assert_allclose(found, truth, atol=0.03)
    np.testing.assert_allclose(found[:2, :2], truth[:2, :2], rtol=1e-9)
    np.testing.assert_allclose(found[1:3, 1:3], truth[1:3, 1:3], rtol=1e-9)
    assert np.linalg.eigvalsh(known.expected()).min() > 0


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_for_the_true_matching(seed: int) -> None:
    """Also for the peer that does not hold z, whose columns may go with it in any way."""
    rng = np.random.default_rng(seed)
    codes, labels, columns = joined(80, seed)
    columns["c"] = columns["z"] * rng.normal() + columns["a"] * rng.normal() + 0.1 * rng.normal(size=80)
    blocks = blocks_of(everybody(80), codes, labels, columns)
    known = complete(blocks)
    design = np.column_stack([np.ones(80), 2.0 * codes[:, 0] - 1.0, *(columns[name] for name in "azbc")])
    for theta in rng.normal(size=(20, 6)):
        share = known.total / 80
        truth = float(np.sum((design @ theta) ** 2)) * share
        assert truth <= float(known.squares(theta, 1.0)) * (1 + 1e-9)


@pytest.mark.parametrize("caution", [0.5, 1.0])
def test_caution_is_never_worse_than_the_best_peer(caution: float) -> None:
    for seed in range(5):
        codes, labels, columns = joined(200, seed)
        fit = fit_matching(blocks_of(everybody(200), codes, labels, columns), caution)
        assert caution < 1.0 or fit.losses["guaranteed"] <= min(fit.peer_losses.values()) + 1e-9


def test_scores_need_the_column_once() -> None:
    codes, labels, columns = joined(2000)
    whole = pa.table({"y": labels, "s": codes[:, 0], **columns})
    tables = {peer: whole.select(["y", "s", *held]) for peer, held in HELD.items()}
    model = learn(parts_of(tables, THREE, 10), THREE)
    assert [c.name for c in model.coefficients] == ["s", "a", "z", "b", "c"]
    scores = model.predict(whole).score
    weights = {c.name: c.raw for c in model.coefficients}
    linear = model.raw_intercept + weights["s"] * (2.0 * codes[:, 0] - 1.0)
    np.testing.assert_allclose(scores, linear + sum(weights[name] * columns[name] for name in "azbc"), atol=1e-9)
    np.testing.assert_allclose(
        model.to_sklearn().decision_function(whole.to_pandas()), model.odds.log_odds(scores), atol=1e-9
    )
    assert model.predict(tables["p1"]).view == ("p1",)
    linked = learn(parts_of(tables, THREE, 10), THREE, linked=whole.slice(0, 300))
    assert linked.validation is not None


def test_units_of_pooled_columns_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    spelled = THREE.model_dump(mode="json")
    for held in spelled["peers"].values():
        held["features"] = {name: {"kind": "numeric"} for name in held["features"]}
    contract = Contract.model_validate(spelled)
    codes, labels, columns = joined(900)
    whole = pa.table({"y": labels, "s": codes[:, 0], **columns})
    some = {"p0": whole.slice(0, 300), "p1": whole.slice(300), "p2": whole.take(pa.array(rng.permutation(900)))}
    blocks = merge(parts_of({p: t.select(["y", "s", *HELD[p]]) for p, t in some.items()}, contract, 5), contract)
    at = [cells.columns.index("z") for cells in blocks.cells[:2]]
    for cells, place in zip(blocks.cells[:2], at, strict=True):
        assert cells.centre[place] == pytest.approx(columns["z"].mean(), rel=1e-9, abs=1e-12)
        assert cells.scale[place] == pytest.approx(columns["z"].std(), rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ('z = "numeric"', 'z = "boolean"', "a different feature at another peer"),
        ('z = "numeric"', 'z = { kind = "numeric", centre = 0, scale = 1 }', "a different feature at another peer"),
        ('z = "spline"', 'z = "spline"', "agree on its knots"),
        ('z = "numeric", p = { kind = "interact", of = ["z", "s"] }', 'z = "numeric"', "held by several peers"),
        ('s = "numeric"', 's = "numeric"', "already a shared feature"),
    ],
)
def test_contradictory_contracts_are_refused(first: str, second: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        Contract.parse(f"""
        name = "k"
        label = {{ column = "y", positive = 1, negative = 0 }}
        shared = [{{ name = "s", categories = [0, 1] }}]
        peers.one.features = {{ {first} }}
        peers.two.features = {{ {second} }}
        """)
