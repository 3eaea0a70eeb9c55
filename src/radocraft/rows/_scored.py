"""Scored rows: a place, a label and a score per row, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, Ints
from radocraft.rows._folds import lots, mixed
from radocraft.sums import GRID

_ROWS = 2**18
_LANES = 4


@dataclass(frozen=True)
class ScoredRows:
    """One entry per row; the order of rows means nothing. These stay at the peer: the gate sums them.

    Parameters
    ----------
    signatures
        The row's place in the grid of agreed codes, the last shared feature running fastest.
    labels
        The label's code; of a numeric label, its bin's.
    values
        Of a numeric label, its value; else None.
    scores
        Log-odds, out of fold and calibrated; with several classes a column for each; for a numeric label the
        number to expect.
    keys
        The key's value from 0, -1 where the row has none; None without a key.
    """

    signatures: Ints
    labels: Ints
    values: Floats | None
    scores: Floats
    keys: Ints | None

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    def pieces(self, rows: int | None = None) -> Iterator[ScoredRows]:
        """The rows, some at a time, for sums over more of them than fit in memory as wide numbers."""
        step = rows or _ROWS
        for start in range(0, len(self), step):
            some = slice(start, start + step)
            yield ScoredRows(
                self.signatures[some].astype(np.int64),
                self.labels[some].astype(np.int64),
                None if self.values is None else self.values[some].astype(np.float64),
                self.scores[some].astype(np.float64),
                None if self.keys is None else self.keys[some].astype(np.int64),
            )

    def digest(self) -> str:
        """By which a release of the same rows is known, in whatever order they come.

        Each row is mixed into a few numbers, and these are added up: rows need not be sorted, nor fit in memory twice.
        """
        total = np.zeros(_LANES, dtype=np.uint64)
        for rows in self.pieces():
            places = [column for column in (rows.signatures, rows.labels, rows.keys) if column is not None]
            columns = [*places, np.rint(rows.scores * GRID), *([] if rows.values is None else [rows.values])]
            row = lots(np.column_stack(columns).astype(np.float64), seed=0)
            total += np.array([mixed(row ^ np.uint64(lane)).sum(dtype=np.uint64) for lane in range(_LANES)])
        return hashlib.sha256(f"{len(self)} rows {total.tolist()}".encode()).hexdigest()

    def narrow(self) -> ScoredRows:
        """The same in the narrowest numbers that hold it; scores that are multiples of 1/1024 stay what they are."""
        return ScoredRows(
            _narrow(self.signatures),
            _narrow(self.labels),
            self.values,
            self.scores.astype(np.float32) if self.values is None else self.scores,
            None if self.keys is None else _narrow(self.keys),
        )

    def packed(self) -> dict[str, pa.Array]:
        """As columns; a row's scores are one list."""
        columns = {"signature": self.signatures, "label": self.labels, "value": self.values, "key": self.keys}
        arrays = {name: pa.array(column) for name, column in columns.items() if column is not None}
        width = self.scores[0].size
        return arrays | {"scores": pa.FixedSizeListArray.from_arrays(pa.array(self.scores.ravel()), width)}

    @classmethod
    def unpacked(cls, batch: pa.RecordBatch, shape: tuple[int, ...]) -> ScoredRows:
        """From such columns; ``shape`` is that of a row's scores."""

        def column(name: str) -> Any:
            return batch.column(name).to_numpy(zero_copy_only=False) if name in batch.schema.names else None

        scores = batch.column("scores").flatten().to_numpy(zero_copy_only=False).reshape(batch.num_rows, *shape)
        return cls(column("signature"), column("label"), column("value"), scores, column("key"))


def _narrow(numbers: Any) -> Any:
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    wide = np.promote_types(np.min_scalar_type(min(low, -1)), np.min_scalar_type(high))
    return numbers.astype(wide)


def concatenate(pieces: list[ScoredRows]) -> ScoredRows:
    """All pieces as one; the list is emptied, and each column is freed once it is copied."""
    columns: list[list[Any]] = [[getattr(piece, field.name) for piece in pieces] for field in fields(ScoredRows)]
    pieces.clear()
    return ScoredRows(*map(_emptied, columns))


def _emptied(parts: list[Any]) -> Any:
    out = None if parts[0] is None else np.concatenate(parts)
    parts.clear()
    return out
