"""What a part's cells hide: shared columns whose code was rolled up, and the moments that come with them."""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats, Ints, Truths
from radocraft.contract import Contract, moment_labels
from radocraft.sums import ROLLED, Cells, assemble, of_label


def taken_apart(contract: Contract, cells: Cells) -> tuple[Floats, Floats]:
    """What `assemble` was given: the moments of private columns and of hidden shared ones, by label."""
    width, shared = len(cells.columns), len(contract.shared_columns)
    private = cells.by_label[:, :width, :width]
    known = assemble(contract, cells, private, np.zeros((len(private), shared, width + shared)))
    return private, (cells.by_label - known)[:, width : width + shared, : width + shared]


def hidden_columns(contract: Contract, cells: Cells) -> list[Ints]:
    """For each of the `moment_labels`, the shared columns whose feature some of its cells hide."""
    which = of_label(contract, cells.peer, cells.labels)
    labels = range(len(moment_labels(contract, cells.peer)))
    return [_columns_of(contract, (cells.codes[which == label] == ROLLED).any(axis=0)) for label in labels]


def _columns_of(contract: Contract, features: Truths) -> Ints:
    widths = [len(shared.encoded) for shared in contract.shared]
    return np.flatnonzero(np.repeat(features, widths)).astype(np.int64)
