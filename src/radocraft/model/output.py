"""Scores to a file, row after row, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from radocraft.craft import Progress, quiet
from radocraft.errors import FileError
from radocraft.features import show
from radocraft.model.record import Record
from radocraft.model.scoring import predict_batches
from radocraft.sources import Source
from radocraft.storage import writing


@dataclass(frozen=True)
class Written:
    """What was written: rows, how many were given the positive label, and whose columns were there."""

    rows: int
    positive: int
    view: tuple[str, ...]


def write_scores(
    model: Record, source: Source, path: Path, keep: tuple[str, ...] = (), progress: Progress = quiet
) -> Written:
    """Score a table into a CSV or Parquet file with the columns score, probability and class, after those to keep."""
    classes = np.array([show(value) for value in model.classes], dtype=object)
    rows = positive = 0
    view: tuple[str, ...] = ()
    with writing(path) as file:
        writer: pa.csv.CSVWriter | pq.ParquetWriter | None = None
        for scores, kept in predict_batches(model, source, keep):
            columns = dict(zip(keep, kept.columns, strict=True))
            columns |= {"score": scores.score, "probability": scores.probability}
            table = pa.table(columns | {"class": pa.array(classes[scores.positive.astype(int)], pa.string())})
            writer = writer or _writer(path, file, table.schema)
            writer.write_table(table)
            rows, positive, view = rows + len(scores.score), positive + int(scores.positive.sum()), scores.view
            progress("rows", rows, 0)
        if writer is not None:
            writer.close()
    return Written(rows, positive, view)


def _writer(path: Path, file: IO[bytes], schema: pa.Schema) -> pa.csv.CSVWriter | pq.ParquetWriter:
    if path.suffix == ".csv":
        return pa.csv.CSVWriter(file, schema)
    if path.suffix == ".parquet":
        return pq.ParquetWriter(file, schema)
    raise FileError(f"Cannot tell the format of '{path}'. Name it with .csv or .parquet.")
