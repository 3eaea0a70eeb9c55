"""What leaves about the shared features of rolled-up rows.

A rolled-up cell hides codes, yet the learner needs to know how the hidden codes
are spread and how they go with the private columns. Counts and sums by hidden
code are cells too, and the exact ones would give small blocks away (a block is
what is left when all else is subtracted). So for every shared feature and label:

- the rows whose code is hidden are pooled over all rolled-up cells;
- among them a rare code is counted as its neighbour, until every code kept has
  enough rows (`merged`); these *recoded* rows are what moments are made of;
- each rolled-up cell is given the pooled shares, not its own;
- the moments of two shared features are those of the recoded rows where every
  entry has enough rows or none, else as if the two were unrelated inside cells;
- and if some small group could still be worked out (`recovery`), one more table
  is given up, until none can. At the end each label has one hidden code per
  feature, and everything is a sum of whole cells.

The moments stay those of a table of rows (or, where two features are taken as
unrelated, a mixture of such), and the label's totals of each kept code are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, Truths, add_up, number_rows
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.policy.limits import Limits
from radocraft.policy.recovery import determined, indicators, natural_groups


@dataclass(frozen=True)
class Recoding:
    """How rolled-up rows enter the moments.

    ``codes`` are the blocks' codes as the moments see them, ``rolled`` says
    which of them the cells hide, ``pairs`` which tables of two features leave.
    """

    codes: Ints
    rolled: Truths
    pairs: tuple[tuple[int, int], ...]


def recode(limits: Limits, cell_codes: Ints) -> Recoding:
    """The finest recoding from which no small group can be worked out."""
    rolled = cell_codes == ROLLED
    codes = limits.cells.codes.copy()
    labels = limits.cells.labels
    for at in range(codes.shape[1]):
        for label in (-1, 1):
            pick = np.flatnonzero(rolled[:, at] & (labels == label))
            codes[pick, at] = merged(limits, codes[pick, at], pick)
    pairs = tuple(pair for pair in combinations(range(codes.shape[1]), 2) if pair_is_safe(limits, codes, rolled, pair))
    found = Recoding(codes, rolled, pairs)
    if limits.rows > 1:
        while len(leak := leaking(limits, cell_codes, found)):
            found = coarsened(limits, found, leak)
    return found


def merged(limits: Limits, codes: Ints, pick: Ints) -> Ints:
    """Count rare codes as a neighbour, until each code kept has enough rows; the larger of two gives its name."""
    while len(kept := np.unique(codes)) > 1:
        group = np.searchsorted(kept, codes)
        broken = limits.broken(group, pick)
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


def pair_is_safe(limits: Limits, codes: Ints, rolled: Truths, pair: tuple[int, int]) -> bool:
    """Whether the table of two features over the rows that hide one of them may leave."""
    pick = np.flatnonzero(rolled[:, list(pair)].any(axis=1))
    return not limits.few(number_rows(codes[:, list(pair)][pick]), pick).any()


def released_groups(cell_codes: Ints, labels: Ints, found: Recoding) -> list[csr_array]:
    """Every group of rolled-up blocks whose rows or sums leave."""
    count = len(labels)
    out = [indicators(number_rows(np.column_stack([cell_codes, labels])), count)]
    for at in range(cell_codes.shape[1]):
        out.append(_inside(found.rolled[:, at], np.column_stack([found.codes[:, at], labels])))
    for pair in found.pairs:
        columns = list(pair)
        out.append(_inside(np.asarray(found.rolled[:, columns].any(axis=1)), found.codes[:, columns]))
    return out


def _inside(where: Truths, keys: Ints) -> csr_array:
    group = np.full(len(where), -1, dtype=np.int64)
    group[where] = number_rows(keys[where])
    return indicators(group, len(where))


def leaking(limits: Limits, cell_codes: Ints, found: Recoding) -> Ints:
    """Blocks in a group with too few rows that follows from what is released."""
    some = np.flatnonzero(found.rolled.any(axis=1))
    if not len(some):
        return some
    labels, codes = limits.cells.labels[some], limits.cells.codes[some]
    inner = Recoding(found.codes[some], found.rolled[some], found.pairs)
    small = []
    for group in natural_groups(codes, labels):
        few = limits.few(group, some)
        small.append(np.where(few[group], group, -1))
    hidden = np.where(inner.rolled, inner.codes, ROLLED)
    for at in range(codes.shape[1]):
        group = number_rows(np.column_stack([cell_codes[some], labels, hidden[:, at]]))
        small.append(np.where(limits.few(group, some)[group], group, -1))
    answers = determined(released_groups(cell_codes[some], labels, inner), small)
    leaks = np.zeros(len(some), dtype=bool)
    for group, follows in zip(small, answers, strict=True):
        leaks |= (group >= 0) & np.append(follows, False)[group]
    return some[leaks]


def coarsened(limits: Limits, found: Recoding, leak: Ints) -> Recoding:
    """Give up one table: a pair of features, else one hidden code of a label that leaks."""
    if found.pairs:
        return Recoding(found.codes, found.rolled, found.pairs[:-1])
    labels, codes = limits.cells.labels, found.codes.copy()
    choices = []
    for label in {*labels[leak].tolist()}:
        for at in range(codes.shape[1]):
            pick = np.flatnonzero(found.rolled[:, at] & (labels == label))
            if (kept := len(np.unique(codes[pick, at]))) > 1:
                choices.append((kept, at, label))
    if not choices:
        choices = [
            (len(np.unique(codes[found.rolled[:, at] & (labels == label), at])), at, label)
            for label in (-1, 1)
            for at in range(codes.shape[1])
        ]
    _, at, label = max(choices)
    pick = np.flatnonzero(found.rolled[:, at] & (labels == label))
    codes[pick, at] = join_smallest(limits, codes[pick, at], pick)
    return Recoding(codes, found.rolled, ())


def released_cells(exact: Cells, contract: Contract, cell_codes: Ints, found: Recoding) -> Cells:
    """The cells and moments that leave."""
    encoded = contract.encode_shared(found.codes)
    spread = pooled_shares(exact, contract, encoded, found.rolled)
    cells = Cells(**{**vars(exact), "shared": spread * exact.rows[:, None]}).grouped(cell_codes)
    width = len(exact.columns)
    outer = np.column_stack([encoded, np.ones(len(encoded))])
    cross = exact.sums.T @ outer
    shared = (outer.T * exact.rows) @ outer
    means = cells.shared / cells.rows[:, None]
    apart = (means.T * cells.rows) @ means
    slices = feature_slices(contract)
    for one, other in combinations(range(len(slices)), 2):
        if (one, other) not in found.pairs:
            for row, column in ((slices[one], slices[other]), (slices[other], slices[one])):
                shared[row, column] = apart[row, column]
    moments = np.block([[exact.moments[:width, :width], cross], [cross.T, shared]])
    return Cells(**{**vars(cells), "moments": moments})


def pooled_shares(exact: Cells, contract: Contract, encoded: Floats, rolled: Truths) -> Floats:
    """Per block the encoding of its known codes, and the label's pooled mean encoding of those that are hidden."""
    out = encoded.copy()
    for at, columns in enumerate(feature_slices(contract)):
        hidden = rolled[:, at]
        group = (exact.labels[hidden] > 0).astype(np.int64)
        rows = exact.rows[hidden]
        total = add_up(encoded[hidden, columns] * rows[:, None], group, 2)
        out[hidden, columns] = (total / np.maximum(np.bincount(group, rows, 2), 1)[:, None])[group]
    return out


def feature_slices(contract: Contract) -> list[slice]:
    """Where each shared feature's columns stand among the shared columns."""
    stops = np.cumsum([0, *(len(shared.encoded) for shared in contract.shared)]).tolist()
    return [slice(low, high) for low, high in pairwise(stops)]
