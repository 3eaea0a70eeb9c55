"""Cells: block sums in the model's units, some of them rolled up.

A tally speaks of exact blocks in raw units; cells are what a learner works
with. The code `ROLLED` (-1) stands for "any". Rolling up goes from the last
shared feature of the contract to the first, so a cell is a prefix of a
signature: the codes before the first "any" are known, those after it are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows
from radocraft.contract import Contract
from radocraft.encoding import Column, Constants, summed_columns
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
        Per cell: codes of the shared features (`ROLLED` for any), the label's code, rows.
    sums, present
        Per cell and private column: sum of the values, number of values present.
    shared
        Per cell and shared column of the model: sum of the encodings, sparse since most are 0.
    moments
        Over the table: second moments of (private columns, shared columns, 1).
    constants
        What the contract leaves to the peer's data; see `settle`.
    noise
        Standard deviation of the noise in each second moment of two private columns; 0 without noise.
    total_noise
        The same of the sum of a private column over all rows.
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
    shared: csr_array
    moments: Floats
    constants: Constants = field(default_factory=dict)
    noise: float = 0.0
    total_noise: float = 0.0

    @property
    def total(self) -> int:
        """Rows in all."""
        return round(float(self.rows.sum()))

    def grouped(self, codes: Ints) -> Cells:
        """Cells with equal new codes (and label) added together."""
        at = number_rows(np.column_stack([codes, self.labels]))
        if np.array_equal(at, np.arange(len(at))):
            return replace(self, codes=codes)
        first = first_of_each(at)
        return replace(
            self,
            codes=codes[first],
            labels=self.labels[first],
            rows=add_up(self.rows, at, len(first)),
            sums=add_up(self.sums, at, len(first)),
            present=add_up(self.present.astype(np.int64, copy=False), at, len(first)),
            shared=add_up(self.shared, at, len(first)),
        )


def locate(cell_codes: Ints, cell_labels: Ints, codes: Ints, labels: Ints) -> Ints:
    """The finest of some cells that contains each signature with its label, -1 where there is none."""
    mine = np.column_stack([cell_labels, cell_codes])
    theirs = np.column_stack([labels, codes])
    found = np.full(len(labels), -1, dtype=np.int64)
    for level in reversed(range(codes.shape[1] + 1)):
        coarse = theirs.copy()
        coarse[:, level + 1 :] = ROLLED
        number = number_rows(np.vstack([mine, coarse]))
        place = np.full(number.max() + 1, -1, dtype=np.int64)
        place[number[: len(mine)]] = np.arange(len(mine))
        found = np.where(found < 0, place[number[len(mine) :]], found)
    return found


def standardise(tally: Tally, contract: Contract) -> Cells:
    """The tally's blocks in the model's units: (x - centre) / scale, 0 where x is missing.

    Centre and scale are the contract's constants, else the mean and standard
    deviation of the peer's present values (1 for a column that is constant).
    """
    columns = summed_columns(contract, tally.peer)
    centre, scale = centre_and_scale(tally, columns)
    tally = tally.rebased(centre, scale)
    width = len(columns)
    outer = beside_ones(encoded_sums(contract, tally.codes, np.ones(len(tally.rows))))
    cross = (outer.T @ tally.sums).T
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
        shared=encoded_sums(contract, tally.codes, tally.rows),
        moments=np.block([[tally.moments[:width, :width], cross], [cross.T, shared_moments(outer, tally.rows)]]),
        constants=tally.constants,
    )


def beside_ones(encoded: csr_array) -> csr_array:
    """Shared columns of blocks, and 1."""
    return hstack([encoded, csr_array(np.ones((encoded.shape[0], 1)))], format="csr")


def shared_moments(outer: csr_array, rows: Ints) -> Floats:
    """Second moments of columns that are constant in blocks of so many rows."""
    out: Floats = (outer.T @ (by_rows(rows) @ outer)).toarray()
    return out


def by_rows(rows: Ints) -> csr_array:
    """The matrix that multiplies blocks by their numbers of rows when it stands on their left."""
    return diags_array(rows.astype(np.float64), format="csr")


def encoded_sums(contract: Contract, codes: Ints, rows: Ints | Floats) -> csr_array:
    """Sums of the shared columns by cell, as the codes tell; nothing where a code is `ROLLED`.

    In both encodings a code has a number in one column at most.
    """
    column, value = np.empty(codes.shape, dtype=np.int32), np.empty(codes.shape)
    start = 0
    for at, shared in enumerate(contract.shared):
        place = np.abs(shared.matrix).argmax(axis=1)
        column[:, at] = start + place[codes[:, at]]
        value[:, at] = np.where(codes[:, at] == ROLLED, 0.0, shared.matrix[codes[:, at], place[codes[:, at]]] * rows)
        start += len(shared.encoded)
    ends = codes.shape[1] * np.arange(len(rows) + 1)
    return csr_array((value.ravel(), column.ravel(), ends), shape=(len(rows), start))


def centre_and_scale(tally: Tally, columns: tuple[Column, ...]) -> tuple[Floats, Floats]:
    """The contract's constants where it fixes them, else mean and standard deviation."""
    width = len(columns)
    count = np.maximum(tally.present.sum(axis=0), 1)
    mean = tally.sums.sum(axis=0) / count
    variance = np.maximum(np.diag(tally.moments)[:width] / count - mean**2, 0.0)
    size = np.abs(tally.unit)  # a truth value may be kept upside down
    centre, scale = tally.origin + tally.unit * mean, size * np.sqrt(variance)
    scale = np.where(scale <= _CONSTANT * np.maximum(np.abs(centre), size), 1.0, scale)
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
    columns = summed_columns(contract, cells.peer)
    alive = {column.feature for column, varies in zip(columns, varying, strict=True) if varies}
    return sorted({column.feature for column in columns} - alive)
