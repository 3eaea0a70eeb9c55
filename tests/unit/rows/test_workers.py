"""Rows that are scored where they are: the same scores, and nothing but them comes back."""

import pickle
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor
from sqlglot import exp
from tests.unit.rows.people import agree, lines, people
from tests.unit.rows.test_scoring_rows import few_columns

from radocraft.errors import DataError, NotFinite, UnknownLabel, WrongType
from radocraft.rows import _chunks as chunks
from radocraft.rows import score_rows
from radocraft.rows.engines._base import Cluster, Source
from radocraft.rows.engines._opening import open_source
from radocraft.rows.engines._ranged import RangedSource, ranged
from radocraft.sums import Bounds, Range

LINEAR = LogisticRegression()
NARROW = {"signature", "label", "value", "scores", "key", "lot", "times"}


class Machines(RangedSource):
    """A table on three machines; what is sent to and from them is kept."""

    def __init__(self, table: Any) -> None:
        super().__init__(open_source(table), Range("bad", -1e9, 1e9))
        object.__setattr__(self, "collected", [])

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        raise AssertionError("rows are fetched")

    def mapped(
        self, query: exp.Query, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    ) -> Generator[pa.RecordBatch, None, None]:
        batches = list(self.whole.batches(query))
        if not batches:
            return
        rows = pa.Table.from_batches(batches)
        for at in range(3):
            share = rows.take(np.arange(at, len(rows), 3)).combine_chunks().to_batches()
            for batch in pickle.loads(pickle.dumps(work))(iter(share)):
                self.collected.append(batch)
                yield batch


def columns(rows: pa.Table, changed: dict[str, Any]) -> pa.Table:
    for name, values in changed.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values))
    return rows


CLASSES = {"bad": np.digitize(np.random.default_rng(0).normal(size=600), [-0.3, 0.8])}
NUMBERS = {"bad": np.random.default_rng(0).normal(size=600)}
KEY = '[[key]]\nname = "born"\nday_of_year = true'


@pytest.mark.parametrize(
    ("table", "contract", "model", "bounds"),
    [
        (people(), agree(key=KEY), LINEAR, None),
        (people(), agree('{ kind = "score", group = "born" }'), LINEAR, None),
        (people(), agree(), LINEAR, Bounds(person="born", rows_per_person=1)),
        (columns(people(), CLASSES), agree(label="classes = [0, 1, 2]"), LINEAR, None),
        (
            columns(people(), NUMBERS),
            agree(label='kind = "numeric"'),
            DecisionTreeRegressor(max_depth=4, random_state=0),
            None,
        ),
        (few_columns(), agree(), LINEAR, None),
        (columns(few_columns(600), CLASSES), agree(label="classes = [0, 1, 2]"), LINEAR, None),
    ],
    ids=["key", "group", "person", "classes", "numbers", "equal rows", "equal rows of classes"],
)
def test_workers_score_as_everybody_does(table, contract, model, bounds, monkeypatch):
    """In whatever pieces, and though equal rows of one fold and of another are on different machines."""
    expected, scorer = score_rows(table, contract, "bank", scorer=model, bounds=bounds)
    assert (len(scorer.lottery.repeated) > 0) == ("job" not in table.column_names)
    monkeypatch.setattr(chunks, "_CHUNK", 50)
    machines = Machines(table)
    assert isinstance(machines, Cluster)
    found, _ = score_rows(machines, contract, "bank", keep=scorer, bounds=bounds)
    assert lines(found) == lines(expected)
    assert len(machines.collected) >= 3
    assert {name for batch in machines.collected for name in batch.schema.names} <= NARROW


def test_new_rows_are_scored_there_and_come_back_with_what_is_to_be_kept():
    scorer = score_rows(people(), agree(), "bank", scorer=LINEAR)[1]
    machines = Machines(people(seed=1))
    found, expected = (scorer.score(data, keep=("born",)) for data in (machines, people(seed=1)))
    assert found.column_names == ["born", "signature", "risk"]
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"bad": [7, *[1, 0] * 300][:600]}, UnknownLabel),
        ({"income": [np.inf, *[0.5] * 599]}, NotFinite),
        ({"age": ["young", *["31"] * 599]}, WrongType),
    ],
)
def test_what_is_wrong_is_said_as_everywhere(changed, error):
    scorer = score_rows(people(), agree(), "bank", scorer=LINEAR)[1]
    said = []
    for source in (open_source(columns(people(), changed)), Machines(columns(people(), changed))):
        with pytest.raises(error) as caught:
            score_rows(source, agree(), "bank", keep=scorer)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_there_must_be_rows():
    scorer = score_rows(people(), agree(), "bank", scorer=LINEAR)[1]
    with pytest.raises(DataError, match="has no rows"):
        score_rows(Machines(people()[:0]), agree(), "bank", keep=scorer)


def test_a_range_of_a_cluster_is_scored_there_too():
    scorer = score_rows(people(), agree(), "bank", scorer=LINEAR)[1]
    young = Range("age", 0, 40)
    found, expected = (
        score_rows(ranged(source, young), agree(), "bank", keep=scorer)[0]
        for source in (Machines(people()), open_source(people()))
    )
    assert 0 < len(found) < 600
    assert lines(found) == lines(expected)
    assert not isinstance(ranged(open_source(people()), young), Cluster)
    assert isinstance(ranged(open_source(people()), young), Source)
