"""A label that is a number, along the whole road."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge as Reference
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Part, Policy, craft, learn, predict, release, share
from radocraft.contract._words import describe_contract
from radocraft.errors import ContractError, LearnError, OneClass, PolicyRefusal, UnknownLabel
from radocraft.gate import Noise
from radocraft.learning._blocks import merge
from radocraft.learning._completion import complete
from radocraft.model._output import write_scores
from radocraft.rows.engines._opening import open_source
from radocraft.sums._bounds import GRID

TEXT = """
name = "how much"
label = {{ column = "y", kind = "numeric"{label} }}
shared = [{{ name = "s", categories = ["a", "b", "c"] }}]
peers.one.features = {{ u1 = "numeric", u2 = "numeric" }}
peers.two.features = {{ v1 = "numeric", v2 = "numeric" }}
"""
BINS, NO_BINS = Contract.parse(TEXT.format(label=", edges = [98, 102]")), Contract.parse(TEXT.format(label=""))
EXACT = Policy.exact(10)
NAMES = ["u1", "u2", "v1", "v2"]


def people(rows: int, seed: int = 0, tie: float = 0.0) -> pa.Table:
    """A number of four columns and a code; ``tie`` relates the peers' columns beyond all that is shared."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, rows)
    hidden = rng.normal(size=rows)
    values = rng.normal(size=(rows, 4)) + code[:, None] * [0.3, 0.0, -0.2, 0.1] + tie * hidden[:, None]
    label = 100 + values @ [1.0, -0.5, 0.8, 0.3] + code + 0.5 * rng.normal(size=rows)
    return pa.table({"y": label, "s": np.array(["a", "b", "c"])[code], **dict(zip(NAMES, values.T, strict=True))})


def parts_of(table: pa.Table, contract: Contract, policy: Policy = EXACT) -> list[Part]:
    rng = np.random.default_rng(1)
    shuffled = {peer: table.take(pa.array(rng.permutation(table.num_rows))) for peer in contract.peers}
    return [noisy_part(rows, contract, peer, policy) for peer, rows in shuffled.items()]


def r2(model: Model, table: pa.Table) -> float:
    truth = table.column("y").to_numpy()
    return float(1 - np.mean((truth - model.predict(table).score) ** 2) / np.var(truth))


@pytest.mark.parametrize("edges", ["", ", edges = [98, 102]"])
@pytest.mark.parametrize("caution", [0.0, 0.5])
def test_singleton_blocks_equal_ridge(edges: str, caution: float) -> None:
    """With every row its own block nothing is hidden, whatever the caution."""
    rows, alpha = 60, 0.03
    table = people(rows).append_column("id", pa.array(np.arange(rows)))
    spelled = Contract.parse(TEXT.format(label=edges)).model_dump(mode="json")
    spelled["shared"] = [{"name": "id", "categories": list(range(rows)), "encoding": "ordinal"}]
    contract = Contract.model_validate(spelled)
    found = learn(parts_of(table, contract, Policy.exact()), contract, alpha=alpha, caution=caution)
    columns = table.select(NAMES).to_pandas().to_numpy()
    design = np.column_stack([np.linspace(-1, 1, rows), (columns - columns.mean(axis=0)) / columns.std(axis=0)])
    truth = Reference(alpha=rows * alpha, solver="cholesky").fit(design, table.column("y").to_numpy())
    np.testing.assert_allclose(found.predict(table).score, truth.predict(design), rtol=1e-8)


@pytest.mark.parametrize("contract", [BINS, NO_BINS], ids=["bins", "no-bins"])
def test_what_is_known_of_the_joined_table(contract: Contract) -> None:
    """r is exact whatever the blocks; what peers' columns have in common through label and code is found again."""
    table = people(4000)
    blocks = merge(parts_of(table, contract, Policy.exact()), contract)
    known = complete(blocks)
    columns = table.select(NAMES).to_pandas().to_numpy()
    centre, scale = blocks.label_units
    label = (table.column("y").to_numpy() - centre) / scale
    values = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    np.testing.assert_allclose(known.r[-4:], values.T @ label, rtol=1e-8, atol=1e-6)
    assert known.square == pytest.approx(np.mean(label**2), rel=1e-9)
    found, truth = known.expected()[-4:, -4:] / 4000, values.T @ values / 4000
    np.testing.assert_allclose(found[:2, :2], truth[:2, :2], atol=1e-9)
    assert np.linalg.eigvalsh(known.expected()).min() > -1e-8


@pytest.mark.parametrize("contract", [BINS, NO_BINS], ids=["bins", "no-bins"])
def test_better_than_any_peer_and_as_good_as_expected(contract: Contract) -> None:
    """Peers' columns are unrelated given the code, so given the label they are not: bins or none, y is shared."""
    model = learn(parts_of(people(4000), contract), contract)
    test = people(20_000, seed=9)
    truth, columns = test.column("y").to_numpy(), test.to_pandas()
    train = people(4000).to_pandas()
    alone = []
    for own in (["u1", "u2"], ["v1", "v2"]):
        design, new = (pd.get_dummies(frame[["s", *own]]) for frame in (train, columns))
        told = Reference(alpha=1.0).fit(design, train["y"]).predict(new)
        alone.append(1 - np.mean((truth - told) ** 2) / np.var(truth))
    found = r2(model, test)
    assert found > max(alone) + 0.1
    assert model.estimate.r2 is not None
    assert model.estimate.outlooks[-1].r2 is not None
    assert model.estimate.outlooks[-1].r2 < model.estimate.r2


def test_the_estimate_is_right_where_nothing_is_hidden() -> None:
    """Every row its own block: the corrected loss is what new rows show."""
    rows = 400
    table = people(rows)
    spelled = NO_BINS.model_dump(mode="json")
    spelled["shared"] = [{"name": "id", "edges": list(range(1, rows)), "encoding": "ordinal"}]
    contract = Contract.model_validate(spelled)
    ids = np.random.default_rng(4).permutation(rows)
    model = learn(parts_of(table.append_column("id", pa.array(ids)), contract, Policy.exact()), contract)
    new = people(5000, seed=3).append_column("id", pa.array(np.random.default_rng(5).integers(0, rows, 5000)))
    assert model.estimate.r2 == pytest.approx(r2(model, new), abs=0.03)
    assert model.estimate.error == pytest.approx(float(np.std(new["y"].to_numpy() - model.predict(new).score)), rel=0.1)


def test_full_caution_is_never_worse_than_the_best_peer() -> None:
    certificate = learn(parts_of(people(2000, tie=1.0), BINS), BINS, caution=1.0).certificate
    assert certificate is not None
    assert certificate.guaranteed <= min(certificate.peers.values()) + 1e-9


def test_the_bound_holds_for_the_true_matching() -> None:
    table = people(2000, tie=1.5)
    for caution in (0.0, 0.5, 1.0):
        model = learn(parts_of(table, BINS, Policy.exact()), BINS, caution=caution, alpha=1e-9)
        loss = np.mean((table.column("y").to_numpy() - model.predict(table).score) ** 2)
        assert model.certificate is not None
        assert loss / np.var(table.column("y").to_numpy()) <= model.certificate.guaranteed * (1 + 1e-7)


def test_peers_that_saw_different_numbers_are_brought_to_one_scale() -> None:
    """One peer has other rows, with larger labels, and units of its own; the model knows but one scale."""
    first, second = people(3000), people(3000, seed=1)
    high = second.filter(pa.compute.greater(second.column("y"), 100.0))
    parts = [share(rows, NO_BINS, peer, policy=EXACT) for peer, rows in (("one", first), ("two", high))]
    blocks = merge(parts, NO_BINS)
    pooled = np.concatenate([first.column("y").to_numpy(), high.column("y").to_numpy()])
    np.testing.assert_allclose(blocks.label_units, (pooled.mean(), pooled.std()), rtol=1e-9)
    raw = [
        cells.shared[:, -1].sum() * blocks.label_units[1] + cells.total * blocks.label_units[0]
        for cells in blocks.cells
    ]
    np.testing.assert_allclose(raw, [first.column("y").to_numpy().sum(), high.column("y").to_numpy().sum()], rtol=1e-9)


def test_views_files_and_pipelines(tmp_path: Path) -> None:
    model = learn(parts_of(people(3000), BINS), BINS)
    test = people(500, seed=2)
    scores = model.predict(test)
    assert scores.probability is None
    np.testing.assert_allclose(model.to_sklearn().predict(test.to_pandas()), scores.score, rtol=1e-10)
    partial = model.predict(test.drop_columns(["v1", "v2"])).score
    assert 0.2 < np.corrcoef(partial, test.column("y").to_numpy())[0, 1] < np.corrcoef(scores.score, test["y"])[0, 1]
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(predict(Model.load(tmp_path / "model.json"), test).score, scores.score)
    write_scores(model, open_source(test), tmp_path / "scores.csv")
    assert list(pd.read_csv(tmp_path / "scores.csv").columns) == ["prediction"]
    told = model.explain()
    assert {block.label for block in told.blocks} == {*BINS.label.names}


def test_linked_rows_validate_numbers() -> None:
    """Peers' columns have a hidden cause in common, which linked rows show."""
    model = learn(parts_of(people(3000, tie=1.0), BINS), BINS, linked=people(600, seed=7, tie=1.0))
    assert model.validation is not None
    assert model.validation.r2 == pytest.approx(r2(model, people(5000, seed=8, tie=1.0)), abs=0.06)
    with pytest.raises(LearnError, match="two classes"):
        learn(parts_of(people(500), BINS), BINS, method="drl")


def test_the_gate_protects_sums_of_the_label() -> None:
    """The label's sums stand under the rules of every column: bounds, noise, refusals."""
    table = people(1000)
    noise = Noise.seeded(0, "one")
    released = release(craft(table, BINS, "one", noise=noise), BINS, noise=noise)
    assert released.cells.columns == ("u1", "u2", "y")
    assert "y" in released.cells.constants
    exact = craft(table, BINS, "one", constants=released.cells.constants)
    off = (released.cells.sums[:, 2].sum() - exact.sums[:, 2].sum() / GRID) / released.cells.levels.sums
    assert 0 < abs(off) < 4 * len(released.cells.rows) ** 0.5
    low, high = (table.filter(chosen(table["y"], 102.0)) for chosen in (pa.compute.less, pa.compute.greater))
    with pytest.raises(PolicyRefusal, match=r"too few rows of label '\[102, inf\)', or none"):
        share(pa.concat_tables([low, high.slice(0, 3)]), BINS, "one")


@pytest.mark.parametrize("policy", [EXACT, Policy()], ids=["exact", "noise"])
def test_a_label_that_is_the_same_in_all_rows_is_refused(policy: Policy) -> None:
    with pytest.raises(OneClass, match="the same in all rows"):
        share(people(1000).set_column(0, "y", pa.array(np.full(1000, 3.0))), NO_BINS, "one", policy=policy)


@pytest.mark.parametrize("units", ["", ", centre = 100, scale = 2"])
def test_the_labels_units_are_agreed_or_found_by_noisy_counts(units: str) -> None:
    """Its second moment is that of the rows, but for noise, where no row is shortened."""
    contract, table, policy = Contract.parse(TEXT.format(label=units)), people(20_000), Policy(row_bound=4.0)
    noise = Noise.seeded(0, "one")
    tally = craft(table, contract, "one", bounds=policy.bounds, noise=noise)
    assert ("y" in tally.constants) == (not units)
    cells, y = release(tally, contract, policy, noise).cells, table.column("y").to_numpy()
    assert cells.moments[2, 2] == pytest.approx(np.sum(((y - cells.centre[2]) / cells.scale[2]) ** 2), rel=0.03)


@pytest.mark.parametrize("contract", [BINS, NO_BINS], ids=["bins", "no-bins"])
def test_with_noise_the_model_is_nearly_as_good(contract: Contract) -> None:
    """Noise takes little; the usual bound on rows, of which u1, u2 and y are but three numbers, some more."""
    test = people(20_000, seed=9)
    rules = EXACT, Policy(row_bound=4.0), Policy()
    exact, noisy, usual = (learn(parts_of(people(4000), contract, policy), contract) for policy in rules)
    assert r2(noisy, test) > r2(exact, test) - 0.02
    assert r2(usual, test) > r2(exact, test) - 0.05
    for model in (noisy, usual):
        assert exact.estimate.r2 is not None
        assert model.estimate.r2 == pytest.approx(exact.estimate.r2, abs=0.04)


@pytest.mark.parametrize("value", [None, float("nan"), "much"])
def test_a_missing_label_is_refused(value: object) -> None:
    raw = [str(number) for number in people(20)["y"].to_pylist()]
    column = pa.array([value if isinstance(value, str) else None, *raw[1:]])
    with pytest.raises(UnknownLabel, match="no number"):
        craft(people(20).set_column(0, "y", column), NO_BINS, "one")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (", edges = [3, 2]", "rising order"),
        (", centre = 3", "both `centre` and `scale`"),
        (', positive = "a"', "label.positive"),
        (', classes = ["a", "b", "c"]', "label.classes"),
    ],
)
def test_contradictory_labels_are_refused(label: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        Contract.parse(TEXT.format(label=label))


def test_words_for_numbers() -> None:
    assert "the number y, blocks by its bins (-inf, 98), [98, 102), [102, inf)" in describe_contract(BINS)
    assert "blocks by signature alone" in describe_contract(NO_BINS)
