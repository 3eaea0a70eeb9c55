"""What follows from noisy counts of signatures: sums of the shared columns by cell, and their moments.

No exact number of the rows is seen here, so nothing needs noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, add_up
from radocraft.contract import Contract
from radocraft.gate._signatures import Counted
from radocraft.sums import ROLLED, Cells, assemble, encoded_sums, hidden_sums, of_label


def with_shared(cells: Cells, contract: Contract, counted: Counted, group: Ints) -> Cells:
    """The cells with sums of the shared columns, and moments with them, as far as noisy counts tell.

    A cell's rows are spread over the signatures in it as their counts, none below zero.
    Inside a cell, hidden codes are taken to be unrelated to private columns and to
    each other.
    """
    likely = np.maximum(counted.counts, 0.0) + 1e-9
    likely *= (cells.rows / np.bincount(group, likely))[group]
    shared = add_up(encoded_sums(contract, counted.codes, likely), group, len(cells.rows))
    squares = add_up(encoded_sums(contract, counted.codes, likely, power=2), group, len(cells.rows))
    if (counted.codes == ROLLED).any():
        shared, squares = (
            csr_array(one + _spread(one, cells, contract, counted, likely=likely, group=group))
            for one in (shared, squares)
        )
    cells = replace(cells, shared=shared)
    hidden = hidden_evenly(cells, contract, squares)
    return replace(cells, by_label=assemble(contract, cells, cells.by_label, hidden))


def _spread(
    known: csr_array, cells: Cells, contract: Contract, counted: Counted, *, likely: Floats, group: Ints
) -> csr_array:
    """Sums over rows whose code was not counted: as over all others with their label."""
    widths = [len(shared.encoded) for shared in contract.shared]
    lacking = np.column_stack(
        [np.bincount(group, likely * column, len(cells.rows)) for column in (counted.codes == ROLLED).T]
    )
    out = np.zeros(known.shape)
    for label in np.unique(cells.labels):
        own = cells.labels == label
        seen = np.maximum(cells.rows[own].sum() - lacking[own].sum(axis=0), 1.0)
        mean = np.asarray(known[np.flatnonzero(own)].sum(axis=0)).ravel() / np.repeat(seen, widths)
        out[own] = np.repeat(lacking[own], widths, axis=1) * mean
    return csr_array(out)


def hidden_evenly(cells: Cells, contract: Contract, squares: csr_array) -> Floats:
    """By label, products of hidden shared columns with the private ones and each other, as if unrelated in a cell."""
    sums, which = hidden_sums(contract, cells), of_label(contract, cells.peer, cells.labels)
    inside = hidden_sums(contract, replace(cells, shared=squares))
    feature = np.repeat(np.arange(len(contract.shared)), [len(shared.encoded) for shared in contract.shared])
    width, size = len(cells.columns), len(feature)
    out = np.zeros((len(cells.by_label), size, width + size))
    for at, moments in enumerate(out):
        own = np.flatnonzero(which == at)
        share = csr_array(sums[own] / cells.rows[own, None])
        moments[:, :width] = share.T @ cells.sums[own]
        between = (share.T @ sums[own]).toarray()
        within = np.diag(np.asarray(inside[own].sum(axis=0)).ravel())
        moments[:, width:] = np.where(feature[:, None] == feature, within, between)
    return out
