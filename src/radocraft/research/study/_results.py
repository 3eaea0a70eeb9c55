"""The results file: one Parquet file, one row for every cell and algorithm, every setting a column.

While a study runs, finished cells are appended to a journal beside it (one line
of JSON for each cell, on disk before the next is counted). A killed run loses
the cells it was working on and nothing else; the next run reads the journal,
skips what is done, and folds everything into the Parquet file at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from radocraft.errors import FileError, StudyError
from radocraft.files import writing
from radocraft.research.study._cell import Cell, Record

_TYPES = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
_LATER = ("gate", "log_loss")
SETTINGS = tuple(field.name for field in fields(Cell))
SCHEMA = pa.schema(
    [(field.name, _TYPES.get(str(field.type), pa.string())) for field in fields(Cell)]
    + [("algorithm", pa.string()), ("gate", pa.string()), ("caution", pa.float64()), ("peer", pa.int64())]
    + [(name, pa.float64()) for name in ("error", "auc", "log_loss", "best_peer", "mean_peer", "delta", "q")]
    + [(name, pa.float64()) for name in ("oracle_gap", "oracle_p")]
    + [("fold_errors", pa.list_(pa.float64())), ("calibration_error", pa.float64())]
    + [("reliability", pa.list_(pa.list_(pa.float64()))), ("seconds", pa.float64())]
)


def read_results(path: str | Path) -> list[Record]:
    """All records of a results file, a journal of a run under way included."""
    target = Path(path)
    if not target.exists() and not journal_of(target).exists():
        raise StudyError(f"There are no results at '{target}'. Make them with `radocraft study run -o {target.name}`.")
    return [*_saved(target), *(record for records in _journalled(journal_of(target)) for record in records)]


def journal_of(path: Path) -> Path:
    """The journal beside a results file."""
    return path.with_name(f"{path.name}.journal")


def key_of(settings: dict[str, Any]) -> str:
    """One text for every combination of settings."""
    return json.dumps({name: settings[name] for name in SETTINGS}, sort_keys=True)


def _saved(path: Path) -> list[Record]:
    if not path.exists():
        return []
    try:
        table = _with_defaults(pq.read_table(path))
        if table.schema.names != SCHEMA.names:
            raise StudyError(f"'{path}' holds no results of this version of the study. Give another name to -o.")
        return list(table.to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"Cannot read the results '{path}': {error}. Run the study anew.") from error


def _with_defaults(table: pa.Table) -> pa.Table:
    """The results with a column for every setting: cells that ran before there was one ran at its default."""
    defaults = {field.name: field.default for field in fields(Cell) if field.default is not MISSING}
    for at, field in enumerate(SCHEMA):
        if field.name not in table.schema.names and field.name in (*defaults, *_LATER):
            column = pa.array([defaults.get(field.name)] * table.num_rows, field.type)
            table = table.add_column(at, field, column)
    return table


def _journalled(path: Path) -> Iterable[list[Record]]:
    """Cells in the journal; a last line cut short by a kill is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return
            yield json.loads(line)


def forget(path: str | Path, algorithms: str) -> None:
    """Drop the cells with these algorithms from a results file, so that they run anew."""
    with Journal(path) as journal:
        journal.drop(algorithms)


class Journal:
    """Keeps what is done while a study runs; see the module's docstring."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._records = _saved(self.path)
        for records in _journalled(journal_of(self.path)):
            self._records += records
        self.done = {key_of(record) for record in self._records}

    def __enter__(self) -> Self:
        target = journal_of(self.path)
        _drop_cut_line(target)
        try:
            self._file = target.open("a", encoding="utf-8")
        except OSError as error:
            raise FileError(f"Cannot write '{target}': {error.strerror or error}. Choose another place.") from error
        return self

    def add(self, cell: Cell, records: list[Record]) -> None:
        """Keep the records of a finished cell."""
        self._file.write(json.dumps(records) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._records += records
        self.done.add(key_of(asdict(cell)))

    def drop(self, algorithms: str) -> None:
        """Keep no record of cells with these algorithms."""
        self._records = [record for record in self._records if record["algorithms"] != algorithms]
        self.done = {key_of(record) for record in self._records}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        with writing(self.path) as file:
            pq.write_table(pa.Table.from_pylist(self._records, schema=SCHEMA), file, compression="zstd")
        journal_of(self.path).unlink()


def _drop_cut_line(path: Path) -> None:
    """Cut off what a killed run left of an unfinished line."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with writing(path) as file:
            file.write(whole)
