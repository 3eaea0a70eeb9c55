"""A model as one SELECT gives what predicting gives, in every engine that is here."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlglot import parse_one
from tests.engines import worlds
from tests.engines.test_same_tally import as_text, hold

import radocraft as rc
from radocraft.errors import DataError, LearnError, MissingColumn
from radocraft.gate import Policy

LABELS = {
    "two values": worlds.CONTRACT.label.model_dump(mode="json"),
    "classes": {"column": "region", "classes": ["north", "sou'th", "wëst"]},
    "number": {"column": "far", "kind": "numeric", "edges": []},
}
FAR = np.array([1e9, -1e12, 1e15, 0.0])


def world(label: str) -> tuple[rc.Model, pa.Table]:
    """A model of everything that engines treat differently, and rows to score."""
    rows = worlds.table()
    spelled = worlds.CONTRACT.model_dump(mode="json")
    spelled["label"], column = LABELS[label], LABELS[label]["column"]
    spelled["shared"] = [shared for shared in spelled["shared"] if shared["name"] != column]
    features = spelled["peers"]["bank"]["features"]
    features.pop(column, None)
    features["income"] = {"kind": "spline", "knots": [20_000, 30_000, 45_000]}
    features["both"] = {"kind": "interact", "of": ["job", "said"]}
    theirs = {name: features.pop(name) for name in ("level", "small", "price")}
    spelled["peers"]["insurer"] = {"features": theirs, "columns": spelled["peers"]["bank"]["columns"]}
    contract = rc.Contract.model_validate(spelled)
    if contract.label.values:
        rows = rows.filter(pc.is_in(rows[column], pa.array(contract.label.values)))
    parts = [rc.share(rows, contract, peer, policy=Policy.exact(1)) for peer in contract.peers]
    model = rc.learn(parts, contract)
    assert isinstance(model, rc.Model)
    return model, rows


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_one_select_scores_as_predict_does(
    engine: str, label: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine != "duckdb" and label == "number":
        pytest.skip("the other labels ask the engine for more")
    model, rows = world(label)
    rows = rows.drop_columns(["ignored"]).append_column("row", pa.array(range(rows.num_rows)))
    expected = model.predict(rows)
    source = hold(engine, rows, tmp_path, request)
    found = answered(source, model, engine, tmp_path).sort_by("row")
    assert found.column_names[: rows.num_columns] == rows.column_names
    scores = [name for name in found.column_names if name.startswith("score")]
    chances = [name for name in found.column_names if name.startswith("probability")]
    close(np.column_stack([found[name].to_numpy() for name in scores]), expected.score)
    assert (expected.probability is None) == (not chances)
    if expected.probability is not None:
        close(np.column_stack([found[name].to_numpy() for name in chances]), expected.probability)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-9, atol=1e-9)


def answered(source: Any, model: rc.Model, engine: str, folder: Path) -> pa.Table:
    """The statement's answer, by the engine itself."""
    if engine == "duckdb":
        with duckdb.connect(str(folder / "rows.duckdb"), read_only=True) as database:
            return database.sql(model.to_sql(source, engine, '"the rows"')).to_arrow_table()
    if engine == "spark":
        return source.frame.sparkSession.sql(model.to_sql(source, engine, source.view)).toArrow()
    with source.connection.cursor() as cursor:
        cursor.execute(model.to_sql(source, engine, '"Peer schema".customers'))
        return cursor.fetch_arrow_table()


@pytest.mark.parametrize("dialect", ["snowflake", "bigquery"])
def test_for_engines_that_are_not_here_it_is_one_select_of_theirs(dialect: str) -> None:
    model, rows = world("two values")
    statement = parse_one(model.to_sql(rows, dialect, "people"), dialect=dialect)
    assert statement.named_selects[-2:] == ["score", "probability"]
    assert "RADOCRAFT_LOOK_UP" not in statement.sql(dialect)


def test_text_files_can_be_the_example_and_far_scores_do_not_overflow() -> None:
    model, rows = world("two values")
    far = rows.slice(0, 4)
    far = far.set_column(far.column_names.index("far"), "far", pa.array(FAR))
    text = as_text(far)
    text = pa.table({name: text[name].cast(pa.string()) for name in text.column_names})
    with duckdb.connect() as database:
        database.register("people", text)
        found = database.sql(model.to_sql(text)).to_arrow_table()
    close(found["probability"].to_numpy(), model.predict(text).probability)


def test_what_a_statement_cannot_do_is_said() -> None:
    contract, tables = rc.example_peers(rows=500)
    model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
    assert isinstance(model, rc.Model)
    with pytest.raises(MissingColumn, match="no columns of 'insurer'"):
        model.to_sql(tables["bank"])
    with pytest.raises(LearnError, match="no SQL for 'oracle'"):
        model.to_sql(tables["bank"], "oracle")
    single, rows = world("two values")
    with pytest.raises(DataError, match="column 'score' already"):
        single.to_sql(rows.append_column("score", rows["far"]))
