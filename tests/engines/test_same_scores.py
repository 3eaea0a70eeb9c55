"""One table, one scorer, one set of scored rows: whatever engine holds the table."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from tests.engines.test_same_tally import ENGINES, hold
from tests.unit.rows.people import agree, lines, people

from radocraft.gate import Noise, Policy, release_scores
from radocraft.rows import ScoredRows, Scorer, score_rows
from radocraft.sums import Bounds

KEY = '[[key]]\nname = "born"\nday_of_year = true'
CONTRACT = agree(key=KEY)
LINEAR = LogisticRegression()


def customers() -> pa.Table:
    """With a name that a third of them share, and columns that engines hold differently."""
    table, rng = people(500), np.random.default_rng(0)
    table = table.append_column("who", pa.array([f"P{at}" for at in rng.integers(0, 200, len(table))]))
    table = table.append_column("single", pa.array(rng.normal(size=len(table)).astype(np.float32)))
    words = [None if at % 7 == 0 else f" {x:.3f}" for at, x in enumerate(rng.normal(size=len(table)))]
    return table.append_column("written", pa.array(words))


@cache
def expected() -> tuple[ScoredRows, Scorer]:
    return score_rows(customers(), CONTRACT, "bank", scorer=LINEAR)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_scores(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Fitted there, and scored by a scorer that was fitted elsewhere."""
    source = hold(engine, customers(), tmp_path, request)
    rows, scorer = expected()
    fresh, fitted = score_rows(source, CONTRACT, "bank", scorer=LINEAR)
    assert fitted.columns == scorer.columns
    assert lines(fresh) == lines(rows)
    kept, _ = score_rows(source, CONTRACT, "bank", keep=scorer)
    assert lines(kept) == lines(rows)
    one, other = (
        release_scores(
            CONTRACT,
            "bank",
            signatures=scored.signatures,
            labels=scored.labels,
            scores=scored.scores,
            keys=scored.keys,
            policy=Policy(),
            noise=Noise.seeded("engines"),
        ).cells
        for scored in (rows, kept)
    )
    for name in ("rows", "sums", "spreads", "histogram", "margins"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_of_each_person_every_engine_scores_the_same_rows(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bounds = Bounds(person="who", rows_per_person=2)
    expected, scorer = score_rows(customers(), CONTRACT, "bank", scorer=LINEAR, bounds=bounds)
    source = hold(engine, customers(), tmp_path, request)
    assert lines(score_rows(source, CONTRACT, "bank", keep=scorer, bounds=bounds)[0]) == lines(expected)
    per_person = np.unique(customers()["who"].to_numpy(zero_copy_only=False), return_counts=True)[1]
    assert len(expected) == np.minimum(per_person, 2).sum()


@pytest.mark.parametrize("engine", ["parquet", "duckdb", "postgres", "spark"])
def test_a_sample_is_drawn_by_the_engine_and_is_the_same_every_time(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = hold(engine, customers(), tmp_path, request)
    one, other = (score_rows(source, CONTRACT, "bank", scorer=LINEAR, fit_rows=300) for _ in range(2))
    assert len(one[0]) == 500
    assert 200 < one[1].rows == other[1].rows <= 300
    assert lines(one[0]) == lines(other[0])
    assert [line[:2] for line in lines(one[0])] == [line[:2] for line in lines(expected()[0])]


@pytest.mark.parametrize("engine", ["csv", "postgres", "spark"])
def test_new_rows_have_the_same_scores_wherever_they_are(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source, scorer = hold(engine, customers(), tmp_path, request), expected()[1]
    found, wanted = (scorer.score(data, keep=("who",)) for data in (source, customers()))
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))


def test_spark_sends_no_columns_to_the_driver(
    spark: Any, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that comes back is read here: few bytes a row, and none of the words and numbers that rows hold."""
    rows, scorer = expected()
    source, collected = hold("spark", customers(), tmp_path, request), list[pa.Buffer]()
    opened = pa.ipc.open_stream

    def refused(*given: Any, **more: Any) -> Any:
        raise AssertionError("rows are fetched")

    def listening(piece: Any) -> Any:
        collected.append(piece)
        return opened(piece)

    monkeypatch.setattr(type(source), "batches", refused)
    monkeypatch.setattr(type(source), "table", refused)
    monkeypatch.setattr(pa.ipc, "open_stream", listening)
    assert lines(score_rows(source, CONTRACT, "bank", keep=scorer)[0]) == lines(rows)
    batches = [batch for piece in collected for batch in opened(piece)]
    assert {name for batch in batches for name in batch.schema.names} == {"signature", "label", "key", "scores"}
    assert sum(batch.nbytes for batch in batches) <= 12 * len(rows)
    sent = b"".join(piece.to_pybytes() for piece in collected)
    incomes = customers()["income"].drop_null().to_numpy()
    assert not spark.sparkContext._jsc.getPersistentRDDs(), "nothing stays on the workers, either"
    assert not [word for word in (b"clerk", b"farmer", b"income") if word in sent]
    assert not [income for income in incomes if income.tobytes() in sent]


def test_equal_rows_that_workers_hold_apart_are_told_apart(
    spark: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = customers().select(["bad", "member"])
    table = table.append_column("age", pa.array(np.arange(len(table)) % 7 * 10))
    rows, scorer = score_rows(table, agree(), "bank", scorer=LINEAR)
    assert len(scorer.lottery.repeated)
    source = hold("spark", table, tmp_path, request)
    assert lines(score_rows(source, agree(), "bank", keep=scorer)[0]) == lines(rows)
