"""Cells: block sums in the model's units, some of them rolled up.

A tally holds exact blocks in raw units; cells are what a learner works
with. The code `ROLLED` (-1) stands for "any". Rolling up goes from the last
shared feature of the contract to the first, so a cell is a prefix of a
signature: the codes before the first "any" are known, those after it are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows
from radocraft.contract import Column, Constants, Contract, moment_labels, summed_columns
from radocraft.sums._tally import Tally

ROLLED = -1
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Levels:
    """Standard deviations of the noise in each number of some cells; all 0 where there is none.

    Parameters
    ----------
    rows
        In each count of rows.
    sums
        In each sum, of a private or a shared column.
    hidden
        In each product of a shared column, summed over the cells that hide its code.
    moments
        In each second moment of two private columns.
    """

    rows: float = 0.0
    sums: float = 0.0
    hidden: float = 0.0
    moments: float = 0.0


@dataclass(frozen=True)
class Cells:
    """One peer's sums by cell and moments by label.

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
    by_label
        Second moments of (private columns, shared columns, 1), one matrix for each label of `moment_labels`.
    levels
        How much noise is in all of these.
    constants
        What the contract leaves to the peer's data; see `Constants`.
    limits
        By private column the least and the most that a raw value counts, where it is summed and where it is scored;
        None where nothing was cut off.
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
    by_label: Floats
    levels: Levels = Levels()
    constants: Constants = field(default_factory=dict)
    limits: tuple[Floats, Floats] | None = None

    @cached_property
    def moments(self) -> Floats:
        """Second moments over the whole table, whatever the label."""
        out: Floats = self.by_label.sum(axis=0)
        return out

    @property
    def total(self) -> int:
        """Rows in all."""
        return round(float(self.rows.sum()))

    def grouped(self, codes: Ints) -> Cells:
        """Cells with equal new codes (and label) added together."""
        group = number_rows(np.column_stack([codes, self.labels]))
        if np.array_equal(group, np.arange(len(group))):
            return replace(self, codes=codes)
        first = first_of_each(group)
        return replace(
            self,
            codes=codes[first],
            labels=self.labels[first],
            rows=add_up(self.rows, group, len(first)),
            sums=add_up(self.sums, group, len(first)),
            present=add_up(self.present.astype(np.int64, copy=False), group, len(first)),
            shared=add_up(self.shared, group, len(first)),
        )


def locate(cell_codes: Ints, cell_labels: Ints, codes: Ints, labels: Ints) -> Ints:
    """The finest of some cells that contains each signature with its label, -1 where there is none."""
    mine = np.column_stack([cell_labels, cell_codes])
    theirs = np.column_stack([labels, codes])
    places = np.full(len(labels), -1, dtype=np.int64)
    for level in reversed(range(codes.shape[1] + 1)):
        coarse = theirs.copy()
        coarse[:, level + 1 :] = ROLLED
        number = number_rows(np.vstack([mine, coarse]))
        place = np.full(number.max() + 1, -1, dtype=np.int64)
        place[number[: len(mine)]] = np.arange(len(mine))
        places = np.where(places < 0, place[number[len(mine) :]], places)
    return places


class Summed(Protocol):
    """What `assemble` has to know of cells."""

    @property
    def peer(self) -> str:
        """Whose they are."""

    @property
    def codes(self) -> Ints:
        """Codes of the shared features by cell."""

    @property
    def labels(self) -> Ints:
        """The label's code by cell."""

    @property
    def rows(self) -> Ints:
        """Rows by cell."""

    @property
    def sums(self) -> Floats:
        """Sums of the private columns by cell."""

    @property
    def shared(self) -> csr_array:
        """Sums of the shared columns by cell."""


def of_label(contract: Contract, peer: str, labels: Ints) -> Ints:
    """Which of the `moment_labels` each cell counts for."""
    codes = [*moment_labels(contract, peer)]
    return np.searchsorted(codes, labels) if len(codes) > 1 else np.zeros_like(labels)


def assemble(contract: Contract, cells: Summed, private: Floats, hidden: Floats) -> Floats:
    """Second moments of (private columns, shared columns, 1) by label, from everything in a part.

    With s_c a cell's private sums, n_c its rows, e_c the encoding of its codes (0 where hidden)
    and h_c the sums of the shared columns whose code it hides, the blocks are, over the cells of a label,

    | private x private       released: ``private``
    | shared x private        sum e_c s_c^T  + released: ``hidden``
    | shared x shared         sum n_c e_c e_c^T + h_c e_c^T + e_c h_c^T  + released: ``hidden``
    | with 1                  sum (s_c, n_c e_c + h_c, n_c)

    Parameters
    ----------
    contract, cells
        The cells and what their codes mean.
    private
        By label (`moment_labels`), second moments of the private columns.
    hidden
        By label, second moments of (hidden shared columns) x (private columns, hidden shared columns), summed over
        the rows of the cells that hide them; 0 for a column that is hidden nowhere.
    """
    which = of_label(contract, cells.peer, cells.labels)
    known = encoded_sums(contract, cells.codes, np.ones(len(cells.rows)))
    unknown = hidden_sums(contract, cells)
    width, size = private.shape[1], private.shape[1] + known.shape[1] + 1
    shared, last = slice(width, size - 1), size - 1
    out = np.zeros((len(private), size, size))
    for label, moments in enumerate(out):
        mine = (which == label).astype(np.float64)
        here = csr_array(diags_array(mine) @ known)
        here.eliminate_zeros()
        counted = diags_array(mine * cells.rows) @ here
        mixed = (unknown.T @ here).toarray()
        moments[:width, :width] = private[label]
        moments[shared, :width] = here.T @ cells.sums + hidden[label][:, :width]
        moments[shared, shared] = (here.T @ counted).toarray() + mixed + mixed.T + hidden[label][:, width:]
        moments[last, :width] = mine @ cells.sums
        moments[last, shared] = mine @ counted + mine @ unknown
        moments[last, last] = mine @ cells.rows
        moments[:width, width:] = moments[width:, :width].T
        moments[shared, last] = moments[last, shared]
    return out


def hidden_sums(contract: Contract, cells: Summed) -> csr_array:
    """Sums of the shared columns by cell where the cell hides the code, nothing elsewhere."""
    place = coo_array(cells.shared)
    feature = np.repeat(np.arange(len(contract.shared)), [len(shared.encoded) for shared in contract.shared])
    kept = cells.codes[place.row, feature[place.col]] == ROLLED
    return csr_array((place.data[kept], (place.row[kept], place.col[kept])), shape=cells.shared.shape)


def encoded_sums(contract: Contract, codes: Ints, rows: Ints | Floats, power: int = 1) -> csr_array:
    """Sums of the shared columns (or of a power of them) by cell, as the codes tell; nothing where a code is `ROLLED`.

    In both encodings a code has a number in one column at most.
    """
    column, value = np.empty(codes.shape, dtype=np.int32), np.empty(codes.shape)
    start = 0
    for index, shared in enumerate(contract.shared):
        place = np.abs(shared.matrix).argmax(axis=1)
        column[:, index] = start + place[codes[:, index]]
        value[:, index] = np.where(
            codes[:, index] == ROLLED, 0.0, shared.matrix[codes[:, index], place[codes[:, index]]] ** power * rows
        )
        start += len(shared.encoded)
    ends = codes.shape[1] * np.arange(len(rows) + 1)
    return csr_array((value.ravel(), column.ravel(), ends), shape=(len(rows), start))


def standardise(tally: Tally, contract: Contract) -> Cells:
    """The tally's blocks in the model's units: (x - centre) / scale, 0 where x is missing.

    Centre and scale are the contract's constants, else the mean and standard
    deviation of the peer's present values (1 for a column that is constant).
    """
    columns = summed_columns(contract, tally.peer)
    centre, scale = centre_and_scale(tally, columns)
    tally = tally.rebased(centre, scale)
    width, shared = len(columns), len(contract.shared_columns)
    cells = Cells(
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
        by_label=np.empty((0, 0, 0)),
        constants=tally.constants,
    )
    private = tally.moments[:, :width, :width]
    nothing = np.zeros((len(private), shared, width + shared))
    return replace(cells, by_label=assemble(contract, cells, private, nothing))


def centre_and_scale(tally: Tally, columns: tuple[Column, ...]) -> tuple[Floats, Floats]:
    """The contract's constants where it fixes them, else mean and standard deviation."""
    width = len(columns)
    count = np.maximum(tally.present.sum(axis=0), 1)
    mean = tally.sums.sum(axis=0) / count
    variance = np.maximum(np.diag(tally.moments.sum(axis=0))[:width] / count - mean**2, 0.0)
    size = np.abs(tally.unit)  # a truth value may be kept upside down
    centre, scale = tally.origin + tally.unit * mean, size * np.sqrt(variance)
    scale = np.where(scale <= _CONSTANT * np.maximum(np.abs(centre), size), 1.0, scale)
    for index, column in enumerate(columns):
        if column.centre is not None and column.scale is not None:
            centre[index], scale[index] = column.centre, column.scale
    return centre, scale
