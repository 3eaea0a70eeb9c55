"""Writing scores to a file, row by row, completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from radocraft.arrays import Floats
from radocraft.errors import FileError
from radocraft.files import writing
from radocraft.model._scores import ScoreModel, predict_scores
from radocraft.model._scoring import Scores, predict_batches
from radocraft.progress import Progress, quiet
from radocraft.rows import Scorer, Source, read_columns

if TYPE_CHECKING:
    from radocraft.model._model import Model

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+\-]?[0-9]+(\.[0-9]*)?([eE][+\-]?[0-9]+)?$"


@dataclass(frozen=True)
class Written:
    """What was written: rows, how many were given each of the label's values, and whose columns were there."""

    rows: int
    given: dict[str, int]
    view: tuple[str, ...]


def write_scores(
    model: Model, source: Source, path: Path, keep: tuple[str, ...] = (), progress: Progress = quiet
) -> Written:
    """Score a table into a CSV or Parquet file with the columns score, probability and class, after those to keep.

    With several classes there is a score and a probability of each, ``score:CLASS``
    and ``probability:CLASS``; with a numeric label there is one column, ``prediction``.
    """
    names = model.contract.label.names if model.odds is not None else ()
    given, rows = np.zeros(len(names), dtype=np.int64), 0
    view: tuple[str, ...] = ()
    with writing(path) as file:
        writer: pa.csv.CSVWriter | pq.ParquetWriter | None = None
        for scores, kept in predict_batches(model, source, keep):
            columns = dict(zip(keep, kept.columns, strict=True))
            table = pa.table(columns | _columns(scores, names))
            if path.suffix == ".csv":
                table = without_formulas(table)
            writer = writer or _writer(path, file, table.schema)
            writer.write_table(table)
            rows, view = rows + len(scores.score), scores.view
            if scores.chosen is not None:
                given += np.bincount(scores.chosen, minlength=len(names))
            progress("rows", rows, 0)
        if writer is not None:
            writer.close()
    return Written(rows, dict(zip(names, given.tolist(), strict=True)), view)


def write_joined(
    model: ScoreModel,
    sources: Sequence[Source],
    path: Path,
    *,
    on: str | None = None,
    keep: tuple[str, ...] = (),
    scorers: Sequence[Scorer | str | Path] = (),
) -> Written:
    """Bring peers' scores together into a file, with the columns to keep of the first table, and ``on``."""
    scores, names = predict_scores(model, [*sources], on, scorers), model.contract.label.names
    kept = dict.fromkeys([*([on] if on else []), *keep])
    columns = read_columns(sources[0], [*kept])
    write_table(pa.table(dict(zip(kept, columns.columns, strict=True)) | _columns(scores, names)), path)
    given = (
        np.zeros(len(names), dtype=np.int64)
        if scores.chosen is None
        else np.bincount(scores.chosen, minlength=len(names))
    )
    return Written(len(scores.score), dict(zip(names, given.tolist(), strict=True)), scores.view)


def write_table(table: pa.Table, path: Path) -> None:
    """A table as CSV or Parquet, whole or not at all; no text in it is a formula."""
    if path.suffix == ".csv":
        table = without_formulas(table)
    with writing(path) as file:
        writer = _writer(path, file, table.schema)
        writer.write_table(table)
        writer.close()


def _columns(scores: Scores, names: tuple[str, ...]) -> dict[str, Any]:
    if scores.probability is None or scores.chosen is None:
        return {"prediction": scores.score}
    columns = _by_class("score", scores.score, names) | _by_class("probability", scores.probability, names)
    return {**columns, "class": pa.array(names).take(pa.array(scores.chosen))}


def _by_class(name: str, values: Floats, classes: tuple[str, ...]) -> dict[str, Floats]:
    if values.ndim == 1:
        return {name: values}
    return {f"{name}:{label}": values[:, index] for index, label in enumerate(classes)}


def _writer(path: Path, file: IO[bytes], schema: pa.Schema) -> pa.csv.CSVWriter | pq.ParquetWriter:
    if path.suffix == ".csv":
        return pa.csv.CSVWriter(file, schema)
    if path.suffix == ".parquet":
        return pq.ParquetWriter(file, schema)
    raise FileError(f"Cannot tell the format of '{path}'. Name it with .csv or .parquet.")


def without_formulas(table: pa.Table) -> pa.Table:
    """A table whose texts no spreadsheet takes for a formula: such a text gets a leading apostrophe; numbers do not.

    Examples
    --------
    >>> without_formulas(pa.table({"=a": ["=1+1", "-5", "Bern", None]})).to_pydict()
    {"'=a": ["'=1+1", '-5', 'Bern', None]}
    """
    columns = [_escaped(column) if _is_text(column.type) else column for column in table.columns]
    names = _escaped(pa.chunked_array([pa.array(table.column_names, pa.string())])).to_pylist()
    return pa.table(columns, names=names)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _escaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = column.cast(pa.large_string())
    formula = pc.and_not(pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER))
    marked = pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, pa.scalar("", texts.type))
    return pc.if_else(pc.fill_null(formula, False), marked, texts)
