"""Scoring full and partial views, explaining, keeping as a file, exporting."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Policy, example_peers, learn
from radocraft.demo._example import example_people
from radocraft.errors import DataError, EmptyTable, FileError, MissingColumn, NotFinite, WrongType
from radocraft.model._explanation import sentence
from radocraft.model._output import write_scores
from radocraft.rows.engines._opening import open_source


@pytest.fixture(scope="module")
def model() -> Model:
    contract, tables = example_peers(rows=3000)
    parts = [noisy_part(tables[peer], contract, peer, Policy.exact(10)) for peer in tables]
    return learn(parts, contract)


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return example_people(400, seed=7)


def without(table: pa.Table, model: Model, *peers: str) -> pa.Table:
    return table.drop_columns([name for peer in peers for name in model.contract.peers[peer].features])


def test_rows_keep_their_order(model: Model, people: pa.Table) -> None:
    order = np.random.default_rng(0).permutation(people.num_rows)
    np.testing.assert_allclose(model.predict(people.take(order)).score, model.predict(people).score[order], rtol=1e-12)


def test_views_are_told(model: Model, people: pa.Table) -> None:
    assert model.predict(people).view == ("bank", "insurer")
    assert model.predict(without(people, model, "insurer")).view == ("bank",)
    assert model.predict(without(people, model, "bank", "insurer")).view == ()


def test_a_peers_own_column_names_are_found(model: Model, people: pa.Table) -> None:
    insurer = without(people, model, "bank")
    own = insurer.rename_columns([{"age": "age_at_signing"}.get(name, name) for name in insurer.column_names])
    np.testing.assert_array_equal(model.predict(own).score, model.predict(insurer).score)


def test_partial_view_takes_the_mean_over_the_signatures_two_blocks(model: Model, people: pa.Table) -> None:
    bank = without(people, model, "insurer")
    row = bank.slice(0, 1)
    codes = [
        ["north", "east", "south", "west"].index(row.column("region")[0].as_py()),
        int(np.searchsorted([30, 45, 60], row.column("age")[0].as_py(), side="right")),
    ]
    blocks = model.blocks
    mine = [at for at, block in enumerate(blocks.codes) if block == codes]
    assert len(mine) == 2, "the example has every signature with both labels"
    filled = np.average([blocks.peers["insurer"][at] for at in mine], weights=[blocks.weights[at] for at in mine])
    own = [c for c in model.of_peer("insurer")]
    full = row
    for name in model.contract.peers["insurer"].features:
        full = full.append_column(name, people.slice(0, 1).column(name))
    contribution = model.predict(full).score[0] - model.predict(row).score[0] + filled
    raw = {name: values[0] for name, values in people.slice(0, 1).to_pydict().items()}
    expected = sum(c.standardised * (_value(c.name, raw) - c.centre) / c.scale for c in own)
    assert contribution == pytest.approx(expected, rel=1e-9)


def _value(name: str, raw: dict[str, object]) -> float:
    feature, equals, code = name.partition("=")
    return float(raw[feature] == code) if equals else float(raw[feature])  # type: ignore[arg-type]


def test_signature_never_seen_falls_back_to_a_coarser_level(model: Model, people: pa.Table) -> None:
    bank = without(people, model, "insurer")
    elsewhere = bank.set_column(1, "region", pa.array(["island"] * people.num_rows))
    assert np.isfinite(model.predict(elsewhere).score).all()
    weights, mean = np.array(model.blocks.weights), np.array(model.blocks.peers["insurer"])
    unseen = next(c for c in model.coefficients if c.name == "region=unseen").standardised
    only_shared = model.predict(without(elsewhere, model, "bank").slice(0, 1)).score[0]
    ages = {c.name: c.standardised for c in model.coefficients if c.feature == "age"}
    overall = np.average(mean + np.array(model.blocks.peers["bank"]), weights=weights)
    assert min(abs(only_shared - (model.intercept + unseen + age + overall)) for age in ages.values()) < 1e-9


def test_rolled_up_blocks_never_give_one_labels_mean() -> None:
    contract, tables = example_peers(rows=300)
    parts = [noisy_part(tables[p], contract, p, Policy.exact(12)) for p in tables]
    model = learn(parts, contract)
    assert any(-1 in codes for codes in model.blocks.codes)
    scores = model.predict(example_people(300, seed=1).select(["region", "age"]))
    low = min(model.predict(example_people(300, seed=1)).score)
    assert np.isfinite(scores.score).all()
    assert scores.score.min() > low


def test_missing_values_count_as_the_mean(model: Model, people: pa.Table) -> None:
    gone = people.set_column(people.column_names.index("income"), "income", pa.nulls(people.num_rows, pa.float64()))
    income = next(c for c in model.coefficients if c.name == "income")
    values = people.column("income").to_numpy()
    moved = model.predict(people).score - model.predict(gone).score
    np.testing.assert_allclose(moved, income.raw * (values - income.centre), rtol=1e-9, atol=1e-12)


def test_scores_do_not_depend_on_the_format(model: Model, people: pa.Table, tmp_path: Path) -> None:
    people.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    expected = model.predict(people)
    for data in (people.to_pandas(), tmp_path / "people.csv"):
        np.testing.assert_allclose(model.predict(data).score, expected.score, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda t: t.drop_columns(["claims"]), MissingColumn, "lacks 'claims'"),
        (lambda t: t.drop_columns(["region"]), MissingColumn, "shared by all peers"),
        (lambda t: t.slice(0, 0), EmptyTable, "no rows"),
        (
            lambda t: t.set_column(t.column_names.index("income"), "income", pa.array(["a"] * len(t))),
            WrongType,
            "income",
        ),
        (
            lambda t: t.set_column(t.column_names.index("income"), "income", pa.array([np.inf] * len(t))),
            NotFinite,
            "inf",
        ),
    ],
)
def test_tables_that_cannot_be_scored(model: Model, people: pa.Table, change, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        model.predict(change(people))


def test_keeps_as_json_that_a_stranger_can_read(model: Model, people: pa.Table, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again = Model.load(tmp_path / "model.json")
    assert again == model
    np.testing.assert_array_equal(again.predict(people).score, model.predict(people).score)
    held = json.loads((tmp_path / "model.json").read_text())
    assert held["contract"]["name"] == "default within a year"
    assert {"standardised", "raw", "peer"} <= held["coefficients"][0].keys()


@pytest.mark.parametrize("content", ["", "{", '{"format": 1}', '{"format": 99}', "[]"])
def test_files_that_are_no_model(content: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(FileError, match="not a model"):
        Model.load(tmp_path / "model.json")


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Cannot read the model"):
        Model.load(tmp_path / "model.json")


def test_sklearn_pipeline_gives_the_same(model: Model, people: pa.Table) -> None:
    pipeline, scores = model.to_sklearn(), model.predict(people)
    names = [coefficient.name for coefficient in model.coefficients]
    assert pipeline[0].get_feature_names_out().tolist() == names
    assert model.to_sklearn()[0].set_output(transform="pandas").transform(people).columns.tolist() == names
    frame = people.to_pandas()
    frame.loc[3, "income"] = np.nan
    scores = model.predict(frame)
    np.testing.assert_allclose(pipeline.predict_proba(frame)[:, 1], scores.probability, rtol=1e-9)
    assert list(pipeline.predict(frame)) == [model.classes[int(positive)] for positive in scores.positive]


def test_explanation_adds_up(model: Model) -> None:
    told = model.explain()
    assert sum(peer.share for peer in told.peers) == pytest.approx(1.0)
    effects = [abs(c.effect) for c in told.coefficients]
    assert effects == sorted(effects, reverse=True)
    for block in told.blocks:
        assert block.score == pytest.approx(model.intercept + sum(block.contributions.values()))
    assert sum(block.weight for block in told.blocks) == pytest.approx(3000)


def test_sentence_promises_only_what_holds() -> None:
    contract, tables = example_peers(rows=1000)
    parts = [noisy_part(tables[peer], contract, peer, Policy.exact(10)) for peer in tables]
    assert "as released" in learn(parts, contract, caution=1.0).explain().sentence
    careless = learn(parts, contract, caution=0.0)
    assert careless.certificate is not None
    if careless.certificate.worst > min(careless.certificate.peers.values()):
        assert "under the worst of them" in careless.explain().sentence
    assert "no bound" in sentence(None)
    by_noise = learn([noisy_part(tables[peer], contract, peer) for peer in tables], contract, caution=1.0)
    assert by_noise.certificate.guaranteed is None, "nothing is called guaranteed that a test cannot confirm"
    assert by_noise.certificate.worst == by_noise.certificate.as_released
    noisy = by_noise.explain()
    assert "no guarantee" in noisy.sentence
    assert "Whatever the true matching" not in noisy.sentence


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_scores_go_to_a_file_beside_what_is_kept(model: Model, people: pa.Table, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"scores.{suffix}"
    written = write_scores(model, open_source(people), target, keep=("age",))
    read = pd.read_csv(target) if suffix == "csv" else pd.read_parquet(target)
    assert list(read.columns) == ["age", "score", "probability", "class"]
    assert written.rows == len(read) == people.num_rows
    assert written.given["yes"] == (read["class"] == "yes").sum()
    np.testing.assert_allclose(read["score"], model.predict(people).score, rtol=1e-12)
    assert (read["age"].to_numpy() == people.column("age").to_numpy()).all()


def test_a_failure_leaves_no_half_written_scores(model: Model, people: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "scores.csv"
    target.write_text("old")
    with pytest.raises(DataError):
        write_scores(model, open_source(people.slice(0, 0)), target)
    with pytest.raises(MissingColumn, match="to keep"):
        write_scores(model, open_source(people), target, keep=("nobody",))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_model_without_shared_features(tmp_path: Path) -> None:
    contract = Contract.parse(
        'name = "n"\nlabel = { column = "y", positive = 1, negative = 0 }\n'
        'peers.a.features = { u = "numeric" }\npeers.b.features = { v = "numeric" }'
    )
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    table = pa.table({"y": y, "u": rng.normal(size=200) + y, "v": rng.normal(size=200) - y})
    parts = [noisy_part(table.select(["y", x]), contract, p) for p, x in (("a", "u"), ("b", "v"))]
    model = learn(parts, contract)
    assert model.predict(table.select(["u"])).view == ("a",)
    assert np.isfinite(model.predict(table.select(["v", "u"])).score).all()


def test_a_value_counts_no_more_when_scored_than_when_summed(people: pa.Table) -> None:
    """Where rows are bounded, weights are learned of bounded values: beyond the bounds they say nothing."""
    contract, tables = example_peers(rows=3000)
    bounded = learn([noisy_part(tables[peer], contract, peer) for peer in tables], contract)
    (balance,) = (c for c in bounded.coefficients if c.name == "balance")
    assert (balance.low, balance.high) == (balance.centre - 4.0 * balance.scale, balance.centre + 4.0 * balance.scale)
    rich, at = people.slice(0, 3), people.column_names.index("balance")
    limits = [balance.centre, balance.high, 1e12]
    rich = rich.take([0, 0, 0]).set_column(at, "balance", pa.array(limits))
    mean, most, beyond = bounded.predict(rich).score
    assert most == beyond == pytest.approx(mean + 4.0 * balance.standardised)
    exported = bounded.to_sklearn().predict_proba(rich)[:, 1]
    np.testing.assert_allclose(exported, bounded.predict(rich).probability, rtol=1e-9)


def test_exact_sums_bound_nothing(model: Model) -> None:
    assert {(c.low, c.high) for c in model.coefficients} == {(None, None)}
