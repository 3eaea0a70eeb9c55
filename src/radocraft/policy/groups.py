"""The groups of rows whose numbers a release tells of what its rolled-up cells hide.

The ledger keeps them, so that later releases can be looked at together with
this one (`privacy.joint`) without a row being read again: the blocks that
rolled-up cells hide, how they were recoded, and the number of rows of every
group that leaves. No number is kept that did not leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from radocraft.arrays import Ints, number_rows
from radocraft.cells import ROLLED, Cells
from radocraft.policy.recoding import Recoding, released_groups


@dataclass(frozen=True)
class Groups:
    """Hidden blocks, and what leaves about their numbers of rows.

    Parameters
    ----------
    codes, labels
        The blocks.
    found
        How these blocks enter the moments.
    rows
        The number of rows of each group of `indicators`.
    """

    codes: Ints
    labels: Ints
    found: Recoding
    rows: Ints

    @classmethod
    def of(cls, exact: Cells, found: Recoding) -> Groups:
        """What a release tells about the blocks that its cells hide."""
        some = np.flatnonzero(found.rolled.any(axis=1))
        cell = number_rows(found.cell[some, None])
        own = Recoding(found.codes[some], found.rolled[some], cell, found.hidden)
        rows = np.rint(_indicators(own) @ exact.rows[some]).astype(np.int64)
        return cls(exact.codes[some], exact.labels[some], own, rows)

    def indicators(self) -> csr_array:
        """One row per group, one column per block; the rolled-up cells come first."""
        return _indicators(self.found)

    def written(self) -> dict[str, Any]:
        """As the ledger keeps it; cells are beginnings of signatures, so how many codes they know says which."""
        return {
            "codes": self.codes.tolist(),
            "labels": self.labels.tolist(),
            "recoded": self.found.codes.tolist(),
            "known": (~self.found.rolled).sum(axis=1).tolist(),
            "hidden": [[*pair, table.astype(int).tolist()] for pair, table in self.found.hidden.items()],
            "rows": self.rows.tolist(),
        }

    @classmethod
    def read(cls, kept: dict[str, Any], features: int) -> Groups:
        """Back from the ledger."""
        labels, known = (np.array(kept[name], dtype=np.int64) for name in ("labels", "known"))
        codes, recoded = (
            np.array(kept[name], dtype=np.int64).reshape(len(labels), features) for name in ("codes", "recoded")
        )
        rolled = np.arange(features)[None] >= known[:, None]
        cell = number_rows(np.column_stack([np.where(rolled, ROLLED, codes), labels]))
        hidden = {(one, other): np.array(table, dtype=bool) for one, other, table in kept["hidden"]}
        return cls(codes, labels, Recoding(recoded, rolled, cell, hidden), np.array(kept["rows"], dtype=np.int64))


def _indicators(found: Recoding) -> csr_array:
    blocks = len(found.cell)
    if not blocks:
        return csr_array((0, 0))
    return vstack([group for group in released_groups(found, np.arange(blocks)) if group.shape[0]]).tocsr()
