"""What leaves about the shared features of rolled-up rows.

A rolled-up cell hides codes, yet the learner needs to know how the hidden codes
are spread and how they go with the private columns. Counts and sums by hidden
code are cells too, and the exact ones would give small blocks away (a block is
what is left when all else is subtracted). So:

- inside each rolled-up cell a rare hidden code is counted as its neighbour,
  until every code kept there has enough rows (`merged`). Such a row then stands
  for every code so counted, in likely shares; the cell's shared sums and the
  moments are made of these *recoded* rows;
- in the table of two shared features over rolled-up rows small counts are hidden,
  with as many others as it takes, and filled in as if the two features were
  unrelated inside cells (`pairs`);
- if some small group could still be worked out (`recovery`), one more table or
  code is given up, until none can. At the end each rolled-up cell has one hidden
  code per feature, and everything is a sum of whole cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from radocraft.arrays import Floats, Ints, Truths, gathering, number_rows
from radocraft.cells import ROLLED, Cells, beside_ones, by_rows, shared_moments
from radocraft.contract import Contract
from radocraft.policy.limits import Limits
from radocraft.policy.pairs import filled, hide_small
from radocraft.policy.recovery import determined, determined_few, indicators, natural_groups

Pair = tuple[int, int]
_ROUNDS = 30


@dataclass(frozen=True)
class Recoding:
    """How rolled-up rows enter the moments.

    Parameters
    ----------
    codes
        The blocks' codes as the moments see them.
    rolled
        Which of them the cells hide.
    cell
        The number of each block's cell.
    hidden
        Per pair of features, which counts of their table over rolled-up rows are hidden.
    """

    codes: Ints
    rolled: Truths
    cell: Ints
    hidden: dict[Pair, Truths]

    def inside(self, pair: Pair) -> Ints:
        """The blocks that hide one of two features."""
        return np.flatnonzero(self.rolled[:, list(pair)].any(axis=1)).astype(np.int64)

    def table(self, pair: Pair, rows: Ints) -> Floats:
        """Rows by the codes of two features, over the blocks that hide one of them; codes given up keep their place."""
        pick = self.inside(pair)
        shape = self.hidden[pair].shape if pair in self.hidden else self.codes[:, list(pair)].max(axis=0, initial=0) + 1
        counts = np.zeros(shape)
        np.add.at(counts, tuple(self.codes[pick][:, list(pair)].T), rows[pick])
        return counts


def recode(limits: Limits, cell_codes: Ints) -> Recoding:
    """The finest recoding from which no small group can be worked out."""
    cells = limits.cells
    cell = number_rows(np.column_stack([cell_codes, cells.labels]))
    found = Recoding(cells.codes.copy(), cell_codes == ROLLED, cell, {})
    for at, pick in hiding(found):
        found.codes[pick, at] = merged(limits, found.codes[pick, at], pick)
    found = replace(found, hidden=hidden_counts(limits, found))
    while limits.rows > 1 and len(leak := leaking(limits, found)):
        found = coarsened(limits, found, leak)
    return found


def hiding(found: Recoding) -> Iterator[tuple[int, Ints]]:
    """Each feature with the blocks of each cell that hides it."""
    for pick in by_cell(found, np.flatnonzero(found.rolled.any(axis=1)).astype(np.int64)):
        yield from ((int(at), pick) for at in np.flatnonzero(found.rolled[pick[0]]))


def by_cell(found: Recoding, some: Ints) -> list[Ints]:
    """Some blocks, apart by the cell they are in."""
    order = some[np.argsort(found.cell[some], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(found.cell[order])) + 1) if len(some) else []


def hidden_counts(limits: Limits, found: Recoding) -> dict[Pair, Truths]:
    """Which counts of each pair's table to hide."""
    pairs = combinations(range(found.codes.shape[1]), 2)
    return {pair: hide_small(found.table(pair, limits.cells.rows), limits.rows) for pair in pairs}


def merged(limits: Limits, codes: Ints, pick: Ints) -> Ints:
    """Count rare codes as a neighbour, until each code kept has enough rows; the larger of two gives its name."""
    while len(kept := np.unique(codes)) > 1:
        group = np.searchsorted(kept, codes)
        broken = limits.few(group, pick) | limits.dominated(group, pick)
        if not broken.any():
            break
        codes = join_smallest(limits, codes, pick, np.flatnonzero(broken))
    return codes


def join_smallest(limits: Limits, codes: Ints, pick: Ints, among: Ints | None = None) -> Ints:
    """Join the smallest code (of those numbered ``among``) with its smaller neighbour in the contract's order."""
    kept = np.unique(codes)
    rows = np.bincount(np.searchsorted(kept, codes), limits.cells.rows[pick])
    among = np.arange(len(kept)) if among is None else among
    smallest = int(among[np.argmin(rows[among])])
    beside = [at for at in (smallest - 1, smallest + 1) if 0 <= at < len(kept)]
    other = min(beside, key=lambda at: rows[at])
    name = kept[smallest] if rows[smallest] > rows[other] else kept[other]
    out: Ints = np.where((codes == kept[smallest]) | (codes == kept[other]), name, codes)
    return out


def released_groups(found: Recoding, pick: Ints) -> list[csr_array]:
    """Every group of rolled-up blocks whose rows leave, over the blocks ``pick``."""
    codes, rolled, cell = found.codes[pick], found.rolled[pick], found.cell[pick]
    out = [indicators(number_rows(cell[:, None]), len(pick))]
    for at in range(codes.shape[1]):
        out.append(_within(rolled[:, at], np.column_stack([codes[:, at], cell])))
    for pair, hidden in found.hidden.items():
        shown = np.asarray(rolled[:, list(pair)].any(axis=1)) & ~hidden[tuple(codes[:, list(pair)].T)]
        out.append(_within(shown, codes[:, list(pair)]))
    return out


def _within(where: Truths, keys: Ints) -> csr_array:
    group = np.full(len(where), -1, dtype=np.int64)
    group[where] = number_rows(keys[where])
    return indicators(group, len(where))


def leaking(limits: Limits, found: Recoding) -> Ints:
    """Blocks in a group with too few rows that follows from what is released."""
    some = np.flatnonzero(found.rolled.any(axis=1)).astype(np.int64)
    if not len(some):
        return some
    labels = limits.cells.labels[some]
    groups = [*natural_groups(limits.cells.codes[some], labels), *natural_groups(found.codes[some], labels)]
    groups += natural_groups(found.codes[some], found.cell[some])
    small = [np.where(limits.few(group, some)[group], group, -1) for group in groups]
    leaks = np.zeros(len(some), dtype=bool)
    for group, follows in zip(small, determined(released_groups(found, some), small), strict=True):
        leaks |= (group >= 0) & np.append(follows, False)[group]
    leaks[determined_few(released_groups(found, some), limits.cells.rows[some], limits.rows)] = True
    return some[leaks]


def coarsened(limits: Limits, found: Recoding, leak: Ints) -> Recoding:
    """Give up the counts a leak goes through, else one table of two features, else one hidden code of a cell."""
    for pair in reversed(found.hidden):
        through = tuple(found.codes[np.intersect1d(leak, found.inside(pair))][:, list(pair)].T)
        if not found.hidden[pair][through].all():
            more = found.hidden[pair].copy()
            more[through] = True
            return replace(found, hidden={**found.hidden, pair: more})
    for pair in reversed(found.hidden):
        if not found.hidden[pair].all():
            everything = {**found.hidden, pair: np.ones_like(found.hidden[pair])}
            return replace(found, hidden=everything)
    codes = found.codes.copy()
    choices = [(len(np.unique(codes[pick, at])), at, pick) for at, pick in hiding(found)]
    near = [choice for choice in choices if np.isin(choice[2], leak).any() and choice[0] > 1]
    _, at, pick = max(near or choices, key=lambda choice: choice[0])
    codes[pick, at] = join_smallest(limits, codes[pick, at], pick)
    return replace(found, codes=codes)


def mixes_of(limits: Limits, contract: Contract, cell_codes: Ints, found: Recoding) -> list[csr_array]:
    """Per shared feature and block, the codes it stands for, as shares.

    A row whose hidden code was counted as another's stands for all codes so
    counted in its cell, in proportions that are the same for both labels
    (`shares`): else a name, being its cell's own, would seem to tell the label.
    """
    return [mixed(limits, contract, cell_codes, found, at) for at in range(found.codes.shape[1])]


def encoded_by(mixes: list[csr_array], contract: Contract, blocks: int) -> csr_array:
    """Per block the mean encoding of the codes it stands for."""
    pieces = [mix @ csr_array(shared.matrix) for mix, shared in zip(mixes, contract.shared, strict=True)]
    return hstack(pieces, format="csr") if pieces else csr_array((blocks, 0))


def released_cells(exact: Cells, contract: Contract, found: Recoding, mixes: list[csr_array], sums: Floats) -> Cells:
    """The cells and moments that leave; ``sums`` are those by block that moments by code are made of."""
    encoded = encoded_by(mixes, contract, len(exact.rows))
    cells = replace(exact, shared=by_rows(exact.rows) @ encoded).grouped(np.where(found.rolled, ROLLED, exact.codes))
    width, matrices = len(exact.columns), [shared.matrix for shared in contract.shared]
    outer = beside_ones(encoded)
    cross = (outer.T @ sums).T
    shared = shared_moments(outer, exact.rows)
    slices = feature_slices(contract)
    for at, (mix, matrix) in enumerate(zip(mixes, matrices, strict=True)):
        shared[slices[at], slices[at]] = matrix.T @ ((mix.T @ exact.rows)[:, None] * matrix)
    for one, other in combinations(range(len(mixes)), 2):
        between = paired(exact, found, (one, other), mixes)
        shared[slices[one], slices[other]] = matrices[one].T @ between @ matrices[other]
        shared[slices[other], slices[one]] = shared[slices[one], slices[other]].T
    moments = np.block([[exact.moments[:width, :width], cross], [cross.T, shared]])
    return replace(cells, moments=moments)


def mixed(limits: Limits, contract: Contract, cell_codes: Ints, found: Recoding, at: int) -> csr_array:
    """Per block, the codes of a feature it stands for, as shares."""
    exact, size = limits.cells, len(contract.shared[at].codes)
    itself = eye_array(size, format="csr")
    hides = np.flatnonzero(found.rolled[:, at])
    if not len(hides):
        return itself[exact.codes[:, at]]
    shown_cells = {(*codes, label) for codes, label in zip(cell_codes.tolist(), exact.labels.tolist(), strict=True)}
    beside = {(*cell[: at + 1], cell[-1]) for cell in shown_cells if cell[at] != ROLLED}
    group = np.empty(len(exact.rows), dtype=np.int64)
    held: list[Floats] = []
    own: list[int] = []
    for feature, pick in hiding(found):
        if feature == at:
            names, place = np.unique(found.codes[pick, at], return_inverse=True)
            before, label = tuple(cell_codes[pick[0], :at].tolist()), int(exact.labels[pick[0]])
            absent = [code for code in range(size) if ROLLED not in before and (*before, code, label) in beside]
            group[pick] = len(held) + place
            held += list(nearest(names, np.setdiff1d(absent, names), size))
            own += names.tolist()
    rows = np.bincount(group[hides], exact.rows[hides]).astype(np.float64)
    shown = np.bincount(np.delete(exact.codes[:, at], hides), np.delete(exact.rows, hides), size).astype(np.float64)
    seen = (shown > 0) | np.isin(np.arange(size), found.codes[hides, at])
    stand = shares(np.array(held) * seen, rows, shown, np.array(own), (limits.rows - 1) / 2.0)
    line = exact.codes[:, at].copy()
    line[hides] = size + group[hides]
    return vstack([itself, csr_array(stand)], format="csr")[line]


def nearest(names: Ints, absent: Ints, size: int) -> Floats:
    """Which codes each name may stand for: those nearest to it, but for codes known to be elsewhere."""
    closest = np.abs(np.arange(size)[None] - names[:, None]).argmin(axis=0)
    held: Floats = (closest[None] == np.arange(len(names))[:, None]).astype(np.float64)
    held[:, absent.astype(np.int64)] = 0.0
    return held


def shares(held: Floats, rows: Floats, shown: Floats, own: Ints, most: float) -> Floats:
    """How codes divide groups of rows, given which codes each group may hold, from nothing but what is released.

    The likeliest shares if codes are spread alike everywhere (expectation and
    maximisation): a code's part of a group is its part of all rows, counted
    where it is shown and as divided elsewhere. But a code other than the one
    that gave the group its name (``own``) was counted with it for being rare:
    anybody can tell that it has from 0 rows to one less than the limit, so it is
    taken to have at most the middle of that (``most``).

    Examples
    --------
    >>> shares(np.array([[1.0, 1.0]]), np.array([10.0]), np.array([30.0, 10.0]), np.array([0]), 5.0).round(2)
    array([[0.75, 0.25]])
    >>> shares(np.array([[1.0, 1.0]]), np.array([20.0]), np.array([10.0, 30.0]), np.array([0]), 5.0).round(2)
    array([[0.75, 0.25]])
    """
    group = np.arange(len(rows))
    divided: Floats = held / held.sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        weight = held * (shown + rows @ divided)
        divided = np.minimum(weight / weight.sum(axis=1, keepdims=True), most / rows[:, None])
        divided[group, own] = 0.0
        divided[group, own] = 1.0 - divided.sum(axis=1)
    return divided


def paired(exact: Cells, found: Recoding, pair: Pair, mixes: list[csr_array]) -> Floats:
    """Rows by the codes of two features: exact where both are shown, else through what each name stands for."""
    left, right = (mixes[at] for at in pair)
    inside = found.inside(pair)
    shown = np.setdiff1d(np.arange(len(exact.rows)), inside)
    table: Floats = (left[shown].T @ (by_rows(exact.rows[shown]) @ right[shown])).toarray()
    if len(inside):
        counts = found.table(pair, exact.rows) + hidden_change(exact, found, pair, found.hidden[pair])
        means = [
            by_name(mix, found.codes[:, at], exact.rows, inside, size)
            for mix, at, size in zip((left, right), pair, counts.shape, strict=True)
        ]
        table = table + means[0].T @ counts @ means[1]
    return table


def by_name(mix: csr_array, names: Ints, rows: Ints, inside: Ints, size: int) -> Floats:
    """What each name stands for on average, over the blocks ``inside``."""
    total: Floats = (gathering(names[inside], size) @ (by_rows(rows[inside]) @ mix[inside])).toarray()
    weight = np.bincount(names[inside], rows[inside], size)
    return total / np.maximum(weight, 1.0)[:, None]


def hidden_change(exact: Cells, found: Recoding, pair: Pair, hidden: Truths) -> Floats:
    """What filling in the hidden counts of a table adds to the exact ones."""
    counts = found.table(pair, exact.rows)
    guess = np.zeros_like(counts)
    for inner in by_cell(found, found.inside(pair)):
        left, right = (
            np.bincount(found.codes[inner, at], exact.rows[inner], size)
            for at, size in zip(pair, counts.shape, strict=True)
        )
        guess += np.outer(left, right) / exact.rows[inner].sum()
    return filled(counts, hidden, guess) - counts


def feature_slices(contract: Contract) -> list[slice]:
    """Where each shared feature's columns stand among the shared columns."""
    stops = np.cumsum([0, *(len(shared.encoded) for shared in contract.shared)]).tolist()
    return [slice(low, high) for low, high in pairwise(stops)]
