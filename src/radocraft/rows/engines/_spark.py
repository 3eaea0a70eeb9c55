"""A Spark data frame: the same statement, run on the cluster.

Moments are pair sums while columns are few; else every partition adds up its
own rows (`mapInArrow`), and only those sums come back. For that workers need NumPy and
pyarrow, not radocraft; to score rows they need radocraft, too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.contract import Kind
from radocraft.errors import DataError, SourceError, WrongType
from radocraft.rows import _moments as moments
from radocraft.rows._expressions import double
from radocraft.rows._moments import Advance, RowLayout
from radocraft.rows.engines import _pairs as pairs
from radocraft.rows.engines._base import ROWS, Settings, Work
from radocraft.rows.engines._driver import driver
from radocraft.rows.engines._statement import written
from radocraft.sums import Piece

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = ("float", "double", "decimal")
_DATES = ("date", "timestamp", "timestamp_ntz")
_TEXTS = ("string", "varchar", "char")


@dataclass(frozen=True)
class SparkSource:
    """A data frame under a temporary name of its own in its session."""

    name: str
    frame: Any
    sum_function: str = "SUM"
    room: int = 0
    threads: int = 1
    view: str = field(default_factory=lambda: f"radocraft_{uuid4().hex}")

    def __post_init__(self) -> None:
        self.frame.createOrReplaceTempView(self.view)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The frame, by what it is computed from."""
        return (Piece(self.name, f"spark {self.frame.semanticHash()}"),)

    def row_count(self) -> int:
        """Not known without reading."""
        return 0

    def kinds(self) -> dict[str, Kind]:
        """The frame's columns and their kinds."""
        return {column.name: _kind(column.dataType.simpleString()) for column in self.frame.schema.fields}

    def table(self, query: exp.Query) -> pa.Table:
        """The answer, whole."""
        with _explaining(self.name):
            return self._run(query).toArrow()

    def batches(self, query: exp.Query, *, ordered: bool = True) -> Generator[pa.RecordBatch, None, None]:
        """The answer, one partition after the other."""
        with _explaining(self.name), _by_value():
            yield from _unpacked(self._run(query).mapInArrow(moments.packed, "piece binary"))

    def mapped(self, query: exp.Query, work: Work) -> Generator[pa.RecordBatch, None, None]:
        """What workers make of their rows, all at once; it waits with them and is fetched by partitions."""
        with _explaining(self.name, "radocraft, or a package that the scorer's models are made of"):
            made = self._run(query).mapInArrow(lambda batches: moments.packed(work(batches)), "piece binary").persist()
            try:
                made.count()  # fetching alone would set workers on one partition after the other
                yield from _unpacked(made)
            finally:
                made.unpersist()

    def moments(
        self, values: exp.Select, layout: RowLayout, gaps: Sequence[int], labels: int, advance: Advance
    ) -> Floats:
        """Pair sums while they are few, else every partition's own sums."""
        if pairs.count(layout.width, gaps) <= pairs.MOST_SUMS:
            return pairs.moments(self.table(pairs.statement(values, layout, gaps)), layout.width, gaps, labels)
        share = partial(moments.partial, layout=layout, gaps=tuple(gaps), labels=labels)
        with _explaining(self.name), _by_value():
            shares = self._run(values).mapInArrow(share, moments.PARTIAL).toArrow()
        return moments.of_partials(shares, layout.width, labels)

    def sample(self, rows: int) -> exp.Query:
        """The first rows Spark finds."""
        return exp.select("*").from_(ROWS).limit(rows)

    def draw(self, rows: int, of: int, seed: int) -> exp.Query:
        """By Spark's own seeded numbers, which go by partition: rows have no place of their own there."""
        lot = exp.Anonymous(this="RAND", expressions=[exp.Literal.number(seed)])
        return exp.select("*").from_(ROWS).where(exp.LT(this=lot, expression=double(rows / of)))

    def _run(self, query: exp.Query) -> Any:
        return self.frame.sparkSession.sql(written(query, "spark", exp.to_table(self.view)))


def is_spark(data: Any) -> bool:
    """Whether it is a Spark data frame, asked without importing Spark."""
    return any(
        kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in type(data).__mro__
    )


def from_spark(frame: Any, settings: Settings) -> SparkSource:
    """A Spark data frame, classic or Connect."""
    if settings != Settings():
        raise DataError(
            "Spark has its own memory, temporary files and order of adding: leave memory_limit, temp_directory and "
            "exact out. For the same bits on every run, craft from files."
        )
    return SparkSource("Spark data frame", frame)


def _unpacked(pieces: Any) -> Iterator[pa.RecordBatch]:
    for row in pieces.toLocalIterator():
        with pa.ipc.open_stream(pa.py_buffer(row.piece)) as reader:
            yield from reader


@contextmanager
def _by_value() -> Iterator[None]:
    """Send the functions themselves to the workers, not their names."""
    cloudpickle = driver("pyspark.cloudpickle", "Spark", "spark")
    cloudpickle.register_pickle_by_value(moments)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(moments)


def _kind(spark_type: str) -> Kind:
    base = spark_type.split("(", 1)[0]
    if base in _TEXTS:
        return "text"
    if base == "boolean":
        return "boolean"
    if base in _INTEGERS:
        return "integer"
    if base in _DATES:
        return "date"
    return "number" if base in _NUMBERS else "other"


@contextmanager
def _explaining(name: str, needed: str = "pyarrow or NumPy") -> Iterator[None]:
    """Say what went wrong; Spark puts values into its messages, so only its error class is passed on."""
    errors = driver("pyspark.errors", "Spark", "spark")
    bridge = driver("py4j.protocol", "Spark", "spark")
    try:
        yield
    except errors.AnalysisException as error:
        raise DataError(f"'{name}' could not be read: Spark says {_condition(error)}.") from error
    except errors.PythonException as error:
        raise _of_worker(name, needed, error) from error
    except errors.PySparkException as error:
        condition = _condition(error)
        if "CAST" in condition or "OVERFLOW" in condition or "NUMERIC" in condition:
            raise WrongType(
                f"'{name}' holds a value that Spark cannot convert ({condition}). Clean the column first."
            ) from error
        raise SourceError(f"Spark failed while reading '{name}' ({condition}). Its own log says why.") from error
    except (bridge.Py4JError, ConnectionError) as error:
        if "api.python.PythonException" in str(error):  # so it comes where partitions are fetched one by one
            raise _of_worker(name, needed, error) from error
        raise SourceError(
            f"The connection to Spark was lost while reading '{name}'. Nothing was written; start the session again."
        ) from error


def _of_worker(name: str, needed: str, error: Exception) -> SourceError:
    if "ModuleNotFoundError" in str(error):
        return SourceError(
            f"Spark's workers lack {needed}. Install what is here where they run, too, or point PYSPARK_PYTHON at a "
            "Python that has it."
        )
    return SourceError(f"A Spark worker failed while reading '{name}'. Its own log says why.")


def _condition(error: Any) -> str:
    return str(error.getCondition() or type(error).__name__)
