"""How scores of a fit spread inside blocks, label by label.

Peers release their second moments for every label, so what scores vary by inside
blocks is known for every label too: rows of a rare label often vary several times
more than others, and one variance for all of them flatters the model. Nothing here
moves a coefficient.

Seen by its scores a fit has few columns: of each peer the sum of what it alone adds,
one for every score, and the columns that several hold. `complete` of these, over the
blocks of one label, gives the same E, V_j and worst case as of all columns. A fit's
own completion says how much scores vary over all labels, v; how that divides among
labels is told here, each drawn to an even share by

    v_c = v + w (v_c - v),    w = P / (P + e_c^2 / v^2),

with e_c its standard error by rows and noise, and P = 0.25: labels are taken to differ
by about half of v.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from radocraft.arrays import Floats, Ints, Truths
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import Completion, complete
from radocraft.learning._fit import Fit, Layout
from radocraft.sums import Cells

_PRIOR, _LEAST = 0.25, 0.05
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class LabelSpread:
    """Of one score and every label, in the contract's order.

    Parameters
    ----------
    shares
        Its share of the rows.
    ratios
        The variance of scores inside its blocks over that inside all blocks, at caution 0.
    worst
        How many times as much it is at caution 1.
    errors
        Standard error of the ratio, by rows and by the parts' noise.
    """

    shares: Floats
    ratios: Floats
    worst: Floats
    errors: Floats


def variance_inside(known: Completion, theta: Floats, caution: float) -> float:
    """Of a score inside blocks, from expected (0) to the worst there can be (1)."""
    found = float(known.squares(theta, caution) - theta @ known.between @ theta)
    return max(found / known.total, _NO_SPREAD)


def spread_by_label(blocks: Blocks, fit: Fit) -> tuple[LabelSpread, ...]:
    """Of every score of a fit whose label has values."""
    thetas, codes = fit.theta.reshape(len(fit.theta), -1), blocks.contract.label.codes
    small, short = by_scores(blocks, fit.layout, thetas)
    shares = np.array([blocks.weights[blocks.labels == code].sum() for code in codes]) / fit.known.total
    found = {at: complete(only(small, code)) for at, code in enumerate(codes) if seen_by_all(small, code)}
    out = []
    for score, known in enumerate(fit.known.each()):
        theta, brief, whole = thetas[:, score], short[:, score], variance_inside(known, thetas[:, score], 0.0)
        raw, worst = np.full(len(codes), whole), np.ones(len(codes))
        for at, of_label in found.items():
            raw[at] = variance_inside(of_label, brief, 0.0)
            worst[at] = variance_inside(of_label, brief, 1.0) / raw[at]
        errors = standard_errors(blocks, fit.layout, theta, shares * fit.known.total, whole)
        ratios = raw / float(shares @ raw)
        drawn = np.maximum(1.0 + _PRIOR / (_PRIOR + errors**2) * (ratios - 1.0), _LEAST)
        out.append(LabelSpread(shares, drawn / float(shares @ drawn), worst, errors))
    return tuple(out)


def standard_errors(blocks: Blocks, layout: Layout, theta: Floats, rows: Floats, variance: float) -> Floats:
    """Of the variance of a score inside blocks of every label, over that of all: by its rows, and by noise in moments.

    Noise of standard deviation s in the entries of a matrix moves theta^T Q theta by about 2^(1/2) s |theta|^2.
    """
    noise = np.zeros(len(rows))
    for cells, own in zip(blocks.cells, layout.held, strict=True):
        noise += 2.0 * (cells.levels.moments * float(theta[own] @ theta[own])) ** 2
    rows = np.maximum(rows, 1.0)
    return np.asarray((2.0 / rows + noise / (rows * variance) ** 2) ** 0.5)


def by_scores(blocks: Blocks, layout: Layout, thetas: Floats) -> tuple[Blocks, Floats]:
    """The blocks with each peer's own columns added up to its share of every score, and the weights of these."""
    count = thetas.shape[1]
    cells = tuple(
        added_up(one, held, np.isin(held, alone), thetas)
        for one, held, alone in zip(blocks.cells, layout.held, layout.alone, strict=True)
    )
    small = replace(blocks, cells=cells, uncertainty={}, certainty={}, among=None)
    weights = [thetas[: layout.shared.stop]]
    for at, (held, alone) in enumerate(zip(layout.held, layout.alone, strict=True)):
        common = thetas[held[~np.isin(held, alone)]]
        weights.append(np.vstack([np.eye(count), common])[small.owned(at)])
    return small, np.vstack(weights)


def added_up(cells: Cells, held: Ints, alone: Truths, thetas: Floats) -> Cells:
    """One peer's cells with its share of every score in place of the columns that it holds alone."""
    common = np.flatnonzero(~alone)
    change = np.hstack([np.where(alone[:, None], thetas[held], 0.0), np.eye(len(held))[:, common]])
    rest = np.eye(cells.by_label.shape[1])[:, len(held) :]
    whole = np.hstack([np.vstack([change, np.zeros((len(rest) - len(held), change.shape[1]))]), rest])
    names = tuple(f"{cells.peer}, score {at}" for at in range(thetas.shape[1]))
    width = change.shape[1]
    return replace(
        cells,
        columns=(*names, *(cells.columns[at] for at in common)),
        centre=np.zeros(width),
        scale=np.ones(width),
        sums=np.asarray(cells.sums @ change),
        present=np.zeros((len(cells.rows), width), dtype=np.int64),
        by_label=whole.T @ cells.by_label @ whole,
    )


def seen_by_all(blocks: Blocks, code: int) -> bool:
    """Whether every peer has rows of a label."""
    return bool((blocks.rows[:, blocks.labels == code].sum(axis=1) > 0).all())


def only(blocks: Blocks, code: int) -> Blocks:
    """The blocks of one label, with its moments."""
    some = blocks.pick(np.flatnonzero(blocks.labels == code))
    place = [*blocks.contract.label.codes].index(code)
    return replace(some, cells=tuple(replace(one, by_label=moments_of(one, code, place)[None]) for one in blocks.cells))


def moments_of(cells: Cells, code: int, place: int) -> Floats:
    """Second moments over the rows of one label.

    Where a peer lacks the label its sums by label are estimates, and rows vary inside cells of any label alike.
    """
    if len(cells.by_label) > 1:
        return np.asarray(cells.by_label[place])
    rows = np.asarray(cells.rows, dtype=np.float64)
    sums = np.hstack([cells.sums, cells.shared.toarray(), rows[:, None]])
    mine = cells.labels == code
    between, own = ((sums[some].T / rows[some]) @ sums[some] for some in (rows > 0, mine & (rows > 0)))
    return np.asarray(own + (cells.moments - between) * float(rows[mine].sum() / rows.sum()))
