"""Cells: block sums in the model's units, some of them rolled up.

A tally speaks of exact blocks in raw units; cells are what a learner works
with. The code `ROLLED` (-1) stands for "any". Rolling up goes from the last
shared feature of the contract to the first, so a cell is a prefix of a
signature: the codes before the first "any" are known, those after it are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows
from radocraft.contract import Contract
from radocraft.encoding import Column, Constants, private_columns
from radocraft.tally import Tally

ROLLED = -1
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Cells:
    """One peer's sums by cell and moments over its table.

    Parameters
    ----------
    peer, columns
        Whose they are, and the names of its private columns.
    centre, scale
        Raw value = centre + scale * value; a missing value counts as 0.
    codes, labels, rows
        Per cell: codes of the shared features (`ROLLED` for any), +1 or -1, rows.
    sums, present
        Per cell and private column: sum of the values, number of values present.
    shared
        Per cell and shared column of the model: sum of the encodings.
    moments
        Over the table: second moments of (private columns, shared columns, 1).
    constants
        What the contract leaves to the peer's data; see `settle`.
    noise
        Standard deviation of the noise in each second moment of two private columns; 0 without noise.
    """

    peer: str
    columns: tuple[str, ...]
    centre: Floats
    scale: Floats
    codes: Ints
    labels: Ints
    rows: Ints
    sums: Floats
    present: Ints
    shared: Floats
    moments: Floats
    constants: Constants = field(default_factory=dict)
    noise: float = 0.0

    @property
    def total(self) -> int:
        """Rows in all."""
        return int(self.rows.sum())

    def grouped(self, codes: Ints) -> Cells:
        """Cells with equal new codes (and label) added together."""
        at = number_rows(np.column_stack([codes, self.labels]))
        first = first_of_each(at)
        return replace(
            self,
            codes=codes[first],
            labels=self.labels[first],
            rows=add_up(self.rows, at, len(first)),
            sums=add_up(self.sums, at, len(first)),
            present=add_up(self.present, at, len(first)),
            shared=add_up(self.shared, at, len(first)),
        )


def standardise(tally: Tally, contract: Contract) -> Cells:
    """The tally's blocks in the model's units: (x - centre) / scale, 0 where x is missing.

    Centre and scale are the contract's constants, else the mean and standard
    deviation of the peer's present values (1 for a column that is constant).
    """
    columns = private_columns(contract, tally.peer)
    centre, scale = centre_and_scale(tally, columns)
    tally = tally.rebased(centre, scale)
    width = len(columns)
    encoded = contract.encode_shared(tally.codes)
    outer = np.column_stack([encoded, np.ones(len(encoded))])
    cross = tally.sums.T @ outer
    return Cells(
        tally.peer,
        tally.columns,
        centre,
        scale,
        codes=tally.codes,
        labels=tally.labels,
        rows=tally.rows,
        sums=tally.sums,
        present=tally.present,
        shared=encoded * tally.rows[:, None],
        moments=np.block([[tally.moments[:width, :width], cross], [cross.T, (outer.T * tally.rows) @ outer]]),
        constants=tally.constants,
    )


def centre_and_scale(tally: Tally, columns: tuple[Column, ...]) -> tuple[Floats, Floats]:
    """The contract's constants where it fixes them, else mean and standard deviation."""
    width = len(columns)
    count = np.maximum(tally.present.sum(axis=0), 1)
    mean = tally.sums.sum(axis=0) / count
    variance = np.maximum(np.diag(tally.moments)[:width] / count - mean**2, 0.0)
    centre, scale = tally.origin + tally.unit * mean, tally.unit * np.sqrt(variance)
    scale = np.where(scale <= _CONSTANT * np.maximum(np.abs(centre), tally.unit), 1.0, scale)
    for at, column in enumerate(columns):
        if column.centre is not None and column.scale is not None:
            centre[at], scale[at] = column.centre, column.scale
    return centre, scale


def constant_features(cells: Cells, contract: Contract) -> list[str]:
    """Private features with one value throughout: they carry nothing, and their weights will be 0."""
    width, total = len(cells.columns), cells.total
    mean = cells.moments[:width, -1] / total
    variance = np.diag(cells.moments)[:width] / total - mean**2
    varying = variance > _CONSTANT * np.maximum(mean**2, _CONSTANT)
    columns = private_columns(contract, cells.peer)
    alive = {column.feature for column, varies in zip(columns, varying, strict=True) if varies}
    return sorted({column.feature for column in columns} - alive)
