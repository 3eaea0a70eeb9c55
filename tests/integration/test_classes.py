"""A label with several classes, along the whole road."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifier
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Part, Policy, advise, craft, learn, predict, share
from radocraft.contract._words import describe_contract
from radocraft.demo._example import CONTRACT as EXAMPLE
from radocraft.errors import ContractError, LearnError, PolicyRefusal, UnknownLabel
from radocraft.model._output import write_scores
from radocraft.rows.engines._opening import open_source
from radocraft.sums._bounds import GRID

THREE = Contract.parse("""
name = "kinds"
label = { column = "kind", classes = ["a", "b", "c"] }
shared = [{ name = "s", categories = ["x", "y"] }]
peers.one.features = { u1 = "numeric", u2 = "numeric" }
peers.two.features = { v1 = "numeric", v2 = "numeric" }
""")
EXACT = Policy.exact(10)
MEANS = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 1.0], [0.0, 1.5, 2.0, 0.0]])


def people(rows: int, seed: int = 0, classes: int = 3) -> pa.Table:
    """Normal columns around the means of their class, unrelated given the class."""
    rng = np.random.default_rng(seed)
    label = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    values = MEANS[label] + rng.normal(size=(rows, 4))
    shared = np.where(rng.random(rows) < 0.3 + 0.2 * label, "x", "y")
    names = dict(zip(("u1", "u2", "v1", "v2"), values.T, strict=True))
    return pa.table({"kind": np.array(["a", "b", "c"])[label], "s": shared, **names})


def parts_of(table: pa.Table, contract: Contract, policy: Policy = EXACT) -> list[Part]:
    rng = np.random.default_rng(1)
    shuffled = {peer: table.take(pa.array(rng.permutation(table.num_rows))) for peer in contract.peers}
    return [noisy_part(rows, contract, peer, policy) for peer, rows in shuffled.items()]


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    return parts_of(people(4000), THREE)


@pytest.fixture(scope="module")
def model(parts: list[Part]) -> Model:
    return learn(parts, THREE, caution=0.0)


@pytest.mark.parametrize("caution", [0.0, 0.5])
def test_singleton_blocks_equal_ridge_classifier(caution: float) -> None:
    """With every row its own block nothing is hidden, whatever the caution."""
    rows, alpha = 60, 0.03
    table = people(rows).append_column("id", pa.array(np.arange(rows)))
    contract = THREE.model_copy(
        update={
            "shared": Contract.model_validate(
                {
                    **THREE.model_dump(),
                    "shared": [{"name": "id", "categories": list(range(rows)), "encoding": "ordinal"}],
                }
            ).shared
        }
    )
    found = learn(parts_of(table, contract, Policy.exact()), contract, alpha=alpha, caution=caution)
    frame = table.to_pandas()
    columns = frame[["u1", "u2", "v1", "v2"]].to_numpy()
    design = np.column_stack([np.linspace(-1, 1, rows), (columns - columns.mean(axis=0)) / columns.std(axis=0)])
    truth = RidgeClassifier(alpha=rows * alpha, tol=1e-14, solver="cholesky").fit(design, frame["kind"])
    np.testing.assert_allclose(found.predict(table).score, truth.decision_function(design), rtol=1e-8, atol=1e-8)


def test_probabilities_are_those_of_discriminant_analysis(model: Model) -> None:
    """Columns are normal with one covariance in each class, and given the class peers' columns are unrelated."""
    train, test = people(4000).to_pandas(), people(2000, seed=5).to_pandas()

    def design(frame: pd.DataFrame) -> np.ndarray:
        return np.column_stack([frame["s"] == "x", frame[["u1", "u2", "v1", "v2"]]]).astype(float)

    truth = LinearDiscriminantAnalysis().fit(design(train), train["kind"]).predict_proba(design(test))
    scores = model.predict(test)
    np.testing.assert_allclose(scores.probability.sum(axis=1), 1.0)
    assert np.abs(scores.probability - truth).max() < 0.05
    np.testing.assert_array_equal(scores.chosen, scores.probability.argmax(axis=1))


def test_the_estimated_error_is_the_error(model: Model) -> None:
    test = people(20_000, seed=9)
    chosen = np.array(model.classes)[model.predict(test).chosen]
    error = float(np.mean(chosen != test.column("kind").to_numpy(zero_copy_only=False)))
    assert model.estimate.outlooks[0].error == pytest.approx(error, abs=0.012)
    assert model.estimate.outlooks[-1].error > model.estimate.error > model.estimate.outlooks[0].error
    assert error in model.estimate.intervals["error"]


def test_full_caution_is_never_worse_than_the_best_peer(parts: list[Part]) -> None:
    certificate = learn(parts, THREE, caution=1.0).certificate
    assert certificate is not None
    assert certificate.guaranteed <= min(certificate.peers.values()) + 1e-9
    careless = learn(parts, THREE, caution=0.0).certificate
    assert careless is not None
    assert careless.expected < certificate.expected


def test_a_view_without_a_peer_is_filled_in(model: Model) -> None:
    test = people(3000, seed=3)
    some = model.predict(test.drop_columns(["v1", "v2"]))
    assert some.view == ("one",)
    truth = test.column("kind").to_numpy(zero_copy_only=False)
    whole = np.mean(np.array(model.classes)[model.predict(test).chosen] != truth)
    partial = np.mean(np.array(model.classes)[some.chosen] != truth)
    assert whole < partial < 0.5


def test_the_pipeline_and_the_file_say_the_same(model: Model, tmp_path: Path) -> None:
    test = people(200, seed=2)
    scores = model.predict(test)
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict_proba(test.to_pandas()), scores.probability, atol=1e-10)
    model.save(tmp_path / "model.json")
    again = Model.load(tmp_path / "model.json")
    np.testing.assert_array_equal(predict(again, test).score, scores.score)
    written = write_scores(again, open_source(test), tmp_path / "scores.csv", keep=("s",))
    read = pd.read_csv(tmp_path / "scores.csv")
    names = [f"{kind}:{name}" for kind in ("score", "probability") for name in "abc"]
    assert list(read.columns) == ["s", *names, "class"]
    assert written.given == read["class"].value_counts().to_dict()


def test_explanation_speaks_of_every_class(model: Model) -> None:
    told = model.explain()
    assert {block.label for block in told.blocks} == {"a", "b", "c"}
    assert all(len(c.effect) == 3 for c in told.coefficients if isinstance(c.effect, tuple))
    assert sum(peer.share for peer in told.peers) == pytest.approx(1.0)
    block = told.blocks[0]
    total = np.array(model.intercept) + np.sum([*block.contributions.values()], axis=0)
    np.testing.assert_allclose(block.score, total)


def test_linked_rows_validate_several_classes(parts: list[Part]) -> None:
    found = learn(parts, THREE, linked=people(600, seed=7))
    assert found.validation is not None
    assert found.validation.error == pytest.approx(found.estimate.error, abs=0.05)


def test_advice_works_for_several_classes(parts: list[Part]) -> None:
    assert {advice.keys for advice in advise(parts, THREE)} == {(), ("s",)}


def test_a_part_names_the_classes(parts: list[Part]) -> None:
    assert {*parts[0].table.column("label").to_pylist()} == {"a", "b", "c"}
    cells = parts[0].cells(THREE)
    assert {*cells.labels.tolist()} == {1, 2, 3}


def test_a_class_of_few_rows_does_not_leave() -> None:
    of_c = pa.compute.equal(people(500).column("kind"), "c")
    others, few = people(500).filter(pa.compute.invert(of_c)), people(500).filter(of_c).slice(0, 4)
    for table in (others, pa.concat_tables([others, few])):
        with pytest.raises(PolicyRefusal, match="too few rows of label 'c', or none"):
            share(table, THREE, "one")


def test_a_class_that_one_peer_does_not_have_is_learned_from_the_others() -> None:
    table = people(2000)
    without = table.filter(pa.compute.not_equal(table.column("kind"), "c"))
    parts = [share(rows, THREE, peer, policy=EXACT) for peer, rows in (("one", table), ("two", without))]
    assert {*np.unique(learn(parts, THREE).predict(table).chosen)} == {0, 1, 2}


def test_rows_of_no_class_are_refused() -> None:
    with pytest.raises(UnknownLabel, match="'a', 'b' and 'c'"):
        craft(people(100).set_column(0, "kind", pa.array(["d"] * 100)), THREE, "one")


def test_the_papers_method_knows_two_classes_only(parts: list[Part]) -> None:
    with pytest.raises(LearnError, match="two classes"):
        learn(parts, THREE, method="drl")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ('classes = ["a", "b"]', "write `positive` and `negative`"),
        ('classes = ["a", "b", "c"], positive = "a"', "label.positive"),
        ('classes = ["a", "b", "a"]', "listed twice"),
        ('classes = ["a", "b", "missing"]', "a code of its own"),
        ('positive = "a"', "label.negative"),
    ],
)
def test_contradictory_labels_are_refused(label: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        Contract.parse(f'name = "k"\nlabel = {{ column = "y", {label} }}\npeers.one.features = {{ u = "numeric" }}')


def test_contracts_of_two_values_keep_their_fingerprint() -> None:
    assert Contract.parse(EXAMPLE).fingerprint.startswith("4daccfd837be6fa1")


def test_words_for_several_classes() -> None:
    assert "which of a, b, c kind is" in describe_contract(THREE)


@pytest.mark.parametrize(("peer", "codes"), [("one", {1, 2, 3}), ("two", {0})])
def test_noise_knows_classes_and_peers_without_them(peer: str, codes: set[int]) -> None:
    """Counts by label are surer than single cells, and every moment is off by about its noise."""
    spelled = THREE.model_dump(mode="json")
    spelled["label"]["held_by"] = ["one"]
    contract = Contract.model_validate(spelled)
    table = people(20_000) if peer == "one" else people(20_000).drop_columns(["kind"])
    cells = noisy_part(table, contract, peer).cells(contract)
    assert {*cells.labels.tolist()} == codes
    assert len(cells.by_label) == len(codes)
    tally = craft(table, contract, peer, constants=cells.constants)
    off = [cells.rows[cells.labels == code].sum() - tally.rows[tally.labels == code].sum() for code in codes]
    assert 0 < np.abs(off).max() < 3 * cells.levels.rows * len(cells.rows) ** 0.5
    moments = cells.by_label[:, :2, :2] - tally.moments[:, :2, :2] / GRID**2
    assert 0.2 * cells.levels.moments < np.abs(moments).max() < 4 * cells.levels.moments


def test_with_noise_the_model_is_nearly_as_good(model: Model) -> None:
    test = people(20_000, seed=9)
    noisy = learn(parts_of(people(4000), THREE, Policy()), THREE, caution=0.0)
    truth = test.column("kind").to_numpy(zero_copy_only=False)
    exact, usual = (np.mean(np.array(THREE.label.names)[m.predict(test).chosen] != truth) for m in (model, noisy))
    assert usual < exact + 0.02
    assert noisy.estimate.outlooks[0].error == pytest.approx(usual, abs=0.02)
