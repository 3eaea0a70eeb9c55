"""Warnings about a release: labels and features that do not vary, categories that do not occur."""

from __future__ import annotations

import numpy as np

from radocraft.contract import Contract, Number, summed_columns
from radocraft.errors import OneClass
from radocraft.sums import Cells

_CONSTANT = 1e-12
_FULL = 0.9
_VARIES = 4.0


def check_number(cells: Cells, contract: Contract) -> None:
    """A numeric label must vary, as far as noise lets tell; of ``cells``, moments are of the private columns alone."""
    name = contract.label.column
    if not isinstance(contract.label, Number) or name not in cells.columns:
        return
    at, levels = cells.columns.index(name), cells.levels
    mean = float(cells.sums[:, at].sum()) / cells.total
    variance = float(cells.moments[at, at]) / cells.total - mean**2
    off_moment = levels.moments * len(cells.by_label) ** 0.5
    off_mean = 2.0 * abs(mean) * levels.sums * len(cells.rows) ** 0.5
    if variance < _VARIES * float(np.hypot(off_moment, off_mean)) / cells.total:
        raise OneClass(
            f"The label '{name}' is the same in all rows at '{cells.peer}', or its variance does not stand out of the "
            "noise. Check [label] in the contract, or give more rows."
        )


def remarks(cells: Cells, contract: Contract) -> tuple[str, ...]:
    """What the noisy numbers show to be odd."""
    said = list(unseen(cells, contract))
    share = cells.levels.moments * 2.0 * len(cells.columns) ** 0.5 / cells.total
    if share > 0.1:
        said.append("the noise is more than a tenth of a column's variance: expect a weak model from this few rows")
    return tuple(said)


def unseen(cells: Cells, contract: Contract) -> tuple[str, ...]:
    """Shared features of which nearly no row has an agreed category."""
    sums, start, out = np.asarray(cells.shared.sum(axis=0)).ravel(), 0, []
    for shared in contract.shared:
        own = sums[start : start + len(shared.encoded)]
        if shared.categories is not None and shared.encoding == "one-hot" and own[-1] > _FULL * cells.total:
            out.append(
                f"nearly no row has an agreed category of '{shared.name}': compare the spelling with the contract"
            )
        start += len(shared.encoded)
    return tuple(out)


def constant_features(cells: Cells, contract: Contract) -> list[str]:
    """Private features with one value throughout: they carry nothing, and their weights will be 0."""
    width, total = len(cells.columns), cells.total
    mean = cells.moments[:width, -1] / total
    variance = np.diag(cells.moments)[:width] / total - mean**2
    varying = variance > _CONSTANT * np.maximum(mean**2, _CONSTANT)
    columns = summed_columns(contract, cells.peer)
    alive = {column.feature for column, varies in zip(columns, varying, strict=True) if varies}
    return sorted({column.feature for column in columns} - alive)
