"""Which shared features help, judged from the parts alone.

The learner gives up shared features as keys of blocks, one subset after the
other, down to the labels only, learns each time, and judges every model by the
finest blocks there are. So peers can agree on a leaner contract before they
release again. A feature given up as a key still enters the model: its moments
are over the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from radocraft.arrays import Ints, one_thread
from radocraft.contract import Contract
from radocraft.learning._blocks import Blocks, join_cells, merge
from radocraft.learning._fit import Fit
from radocraft.learning._forecast import Forecast
from radocraft.learning._matching import DEFAULT_CAUTION, Ridge, fit_matching
from radocraft.parts import Part
from radocraft.progress import Progress, quiet
from radocraft.sums import ROLLED, Cells

MOST = 64


@dataclass(frozen=True)
class Advice:
    """One choice of shared features as keys, in roll-up order, and what it would give.

    ``loss`` is the expected loss of the model it leads to, ``error`` the error
    rate to expect, both judged by the finest blocks; ``smallest`` and
    ``typical`` are rows in a peer's cell.
    """

    keys: tuple[str, ...]
    blocks: int
    smallest: int
    typical: int
    loss: float
    error: float


@one_thread
def advise(
    parts: Sequence[Part | str | Path],
    contract: Contract,
    *,
    caution: float = DEFAULT_CAUTION,
    progress: Progress = quiet,
) -> list[Advice]:
    """What each subset of the shared features, as keys of blocks, would give; the best first.

    Up to six shared features every subset is tried; with more, features are
    given up one by one, each time the one whose loss costs least.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> sorted(advice.keys for advice in rc.advise(parts, contract))
    [(), ('age',), ('region',), ('region', 'age')]
    """
    finest = merge([part if isinstance(part, Part) else Part.read(part) for part in parts], contract)
    reference = fit_matching(finest, caution)
    names = tuple(shared.name for shared in contract.shared)
    every = [keys for size in range(len(names) + 1) for keys in combinations(names, size)]
    if len(every) <= MOST:
        advices = []
        for number, keys in enumerate(every):
            progress("subsets", number, len(every))
            advices.append(_try(keys, finest, reference, caution))
    else:
        advices = list(_one_by_one(names, finest, reference, caution))
    return sorted(advices, key=lambda advice: (advice.loss, len(advice.keys)))


def _one_by_one(names: tuple[str, ...], finest: Blocks, reference: Fit, caution: float) -> Iterator[Advice]:
    best = _try(names, finest, reference, caution)
    yield best
    while best.keys:
        fewer = [tuple(name for name in best.keys if name != gone) for gone in best.keys]
        best = min((_try(keys, finest, reference, caution) for keys in fewer), key=lambda advice: advice.loss)
        yield best


def _try(keys: tuple[str, ...], finest: Blocks, reference: Fit, caution: float) -> Advice:
    """Learn with these keys, judge by the finest blocks."""
    contract = finest.contract
    order = sorted(range(len(contract.shared)), key=lambda index: (contract.shared[index].name not in keys, index))
    leaner = contract.model_copy(update={"shared": tuple(contract.shared[index] for index in order)})
    cells = tuple(_regrouped(peer, contract, order, len(keys)) for peer in finest.cells)
    fit = fit_matching(join_cells(cells, leaner, finest.label_units), caution)
    theta = np.empty_like(fit.theta)
    theta[_coordinates(contract, order, fit)] = fit.theta
    judged = replace(reference, theta=theta, freedom=fit.freedom)
    rows = np.concatenate([peer.rows for peer in cells])
    return Advice(
        keys=keys,
        blocks=len(np.unique(np.vstack([np.column_stack([c.labels, c.codes]) for c in cells]), axis=0)),
        smallest=int(rows.min()),
        typical=int(np.median(rows)),
        loss=Ridge(reference.known, 0.0).loss(theta, 0.0),
        error=Forecast.of(finest, judged).figures()["error"],
    )


def _regrouped(cells: Cells, contract: Contract, order: list[int], kept: int) -> Cells:
    """A peer's cells with shared features in another order, those after the first ``kept`` given up."""
    codes = cells.codes[:, order]
    codes[:, kept:] = ROLLED
    columns = _shared_columns(contract, order)
    columns = np.concatenate([columns, np.arange(len(columns), cells.shared.shape[1])])  # a numeric label stays last
    width = len(cells.columns)
    pick = np.concatenate([np.arange(width), width + columns, [width + len(columns)]])
    moved = replace(cells, shared=cells.shared[:, columns], by_label=cells.by_label[:, pick][:, :, pick])
    return moved.grouped(codes)


def _shared_columns(contract: Contract, order: list[int]) -> Ints:
    """Positions of the shared columns when features come in another order."""
    starts = np.cumsum([0, *(len(shared.encoded) for shared in contract.shared)])
    pieces = [np.arange(starts[index], starts[index + 1]) for index in order]
    return np.concatenate([np.empty(0, dtype=np.int64), *pieces]).astype(np.int64)


def _coordinates(contract: Contract, order: list[int], fit: Fit) -> Ints:
    """Where each coordinate of the reordered model stands in the contract's own order."""
    start, stop = fit.layout.shared.start, fit.layout.shared.stop
    shared = start + _shared_columns(contract, order)
    return np.concatenate([np.arange(start), shared, np.arange(stop, fit.layout.size)]).astype(np.int64)


def leanest(advices: list[Advice], slack: float = 0.01) -> Advice:
    """The fewest keys, then the largest cells, among those within ``slack`` of the best loss."""
    best = min(advice.loss for advice in advices)
    near = [advice for advice in advices if advice.loss <= best * (1 + slack)]
    return min(near, key=lambda advice: (len(advice.keys), -advice.smallest))


def best_order(advices: list[Advice]) -> tuple[str, ...]:
    """The order to list shared features in: the first is kept longest, the last costs least to give up.

    Examples
    --------
    >>> def advice(loss, *keys):
    ...     return Advice(keys, blocks=1, smallest=1, typical=1, loss=loss, error=0.0)
    >>> best_order([advice(0.50, "region", "age"), advice(0.51, "age"), advice(0.55, "region"), advice(0.60)])
    ('age', 'region')
    """
    kept, order = max(advices, key=lambda advice: len(advice.keys)), []
    while kept.keys:
        fewer = [a for a in advices if len(a.keys) == len(kept.keys) - 1 and {*a.keys} < {*kept.keys}]
        best = min(fewer, key=lambda advice: advice.loss)
        order += [name for name in kept.keys if name not in best.keys]
        kept = best
    return tuple(reversed(order))
