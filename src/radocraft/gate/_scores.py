"""From a peer's scores to a release: six small tables, one after the other.

1. Rows are counted: all, by label, by agreed signature; small signatures are rolled up.
2. Scores are summed in the cells that remain, and
3. their distances from the cells' means, as these leave (`radocraft.sums.ScoreCells`).
4. Residuals, by the deviations that leave, are counted in bins, a histogram for each label.
5. They are summed by groups of the key, if the contract has one.
6. The scores themselves are counted in bins: how good they are alone is measured, not concluded from the rest.

Each table is measured by numbers that left before, so one row moves it by its clip at
most, and everything that sets the noise is public or noisy already. Values are whole
numbers on the grid. With a dial f the noise is f times the sampling error that is in a
number anyway, and at least a row's worth; a cell counts as 30 rows at least.

What this promises speaks of the scores: a row also moved the model that scored others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from radocraft.arrays import Floats, Ints, first_of_each, number_rows
from radocraft.contract import Contract
from radocraft.errors import OneClass, PolicyRefusal
from radocraft.gate._account import Spend, rho_of
from radocraft.gate._levels import TOTAL
from radocraft.gate._noise import Noise
from radocraft.gate._policy import Policy
from radocraft.gate._release import Release, check_allowed, noisy
from radocraft.gate._rolling import coarsened
from radocraft.gate._signatures import Counted, check_labels, fitted
from radocraft.sums import (
    BINS,
    CLIP_GROUP,
    CLIP_SPREAD,
    CLIP_SUM,
    EDGES,
    GRID,
    ROLLED,
    UNIT,
    ScoreCells,
    ScoreLevels,
    count_groups,
)

_LABELS, _FEWEST = 2.0, 30.0
_CLEAR, _EVEN = 1.0, EDGES[-1] - 1e-9
_SMALLEST, _LARGEST, _HALVINGS = 1e-6, 1e6, 60
_PIECE = 2**18


@dataclass(frozen=True)
class ScoreTerms:
    """What noise is measured by: noisy or public numbers, and how many rows the protected unit may have.

    ``signatures`` are those of values that are there: what is missing or unseen is rare.
    """

    rows: float
    signatures: int
    per_unit: int

    def counts(self, f: float) -> float:
        """Standard deviation of the noise in the count of a signature."""
        return self._of(f, self.rows / (2 * self.signatures))

    def labels(self, f: float) -> float:
        """... in the count of a label."""
        return self.per_unit * max(_LABELS, f * math.sqrt(self.rows / 2.0) / 4.0)

    def cells(self, f: float) -> float:
        """... in a cell's sums."""
        return self._of(f, max(self.rows / (2 * self.signatures), _FEWEST))

    def bins(self, f: float) -> float:
        """... in the count of a bin."""
        return self._of(f, self.rows / (2 * BINS))

    def groups(self, f: float, rows: float) -> float:
        """... in the sum of a group of so many rows, 30 at least."""
        return self._of(f, max(rows, _FEWEST))

    def margins(self, f: float, rows: float) -> float:
        """... in the count of a bin of scores, of so many rows of a label."""
        return self._of(f, max(rows / BINS, _FEWEST))

    def _of(self, f: float, rows: float) -> float:
        return self.per_unit * max(1.0, f * math.sqrt(max(rows, 0.0)))

    def spend(self, f: float, groups: float, margins: float) -> Spend:
        """What all tables cost.

        ``groups`` is the least noise in a group's sum, infinite without a key, ``margins`` that in a bin of
        scores: both are by label, and a row has one.
        """
        tables = (1.0, self.labels(f)), (1.0, self.counts(f)), (1.0, self.bins(f)), (1.0, margins)
        sums = (CLIP_SUM, self.cells(f)), (CLIP_SPREAD, self.cells(f)), (CLIP_GROUP, groups)
        rho = sum(0.5 * (self.per_unit * reach / sd) ** 2 for reach, sd in (*tables, *sums))
        return Spend(0.5 / TOTAL**2) + Spend(rho)

    def dial(self, rho: float, *, with_key: bool) -> float:
        """The smallest f whose noise costs no more than ``rho``."""

        def cost(f: float) -> float:
            return self.spend(f, self.groups(f, _FEWEST) if with_key else math.inf, self.margins(f, 0.0)).rho

        low, high = _SMALLEST, _LARGEST
        if cost(high) > rho:
            raise PolicyRefusal("This epsilon is spent before anything leaves. Raise it, or leave it out: see `noise`.")
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if cost(middle) <= rho else (middle, high)
        return high


def release_scores(
    contract: Contract,
    peer: str,
    *,
    signatures: Ints,
    labels: Ints,
    scores: Floats,
    keys: Ints | None = None,
    policy: Policy | None = None,
    noise: Noise | None = None,
    notes: tuple[str, ...] = (),
) -> Release[ScoreCells]:
    """Let a peer's scores through the gate.

    Parameters
    ----------
    contract, peer
        What was agreed, and whose scores these are.
    signatures, labels, scores, keys
        Of every row: its place in the grid of shared codes, its label's code, its score out of fold
        as log-odds, and the value of its key (-1 where it has none); no keys if the contract has none.
        In numbers as narrow as they come: rows are summed some at a time.
    policy
        The peer's rules; those of `Policy()` if None.
    noise
        Where noise comes from; the operating system's randomness if None.
    notes
        What else a reader of the part should know.

    Examples
    --------
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... shared = [{ name = "age", edges = [40] }]
    ... peers.bank.features = { risk = "score" }
    ... peers.shop.features = { habit = "score" }
    ... ''')
    >>> rng = np.random.default_rng(0)
    >>> labels, signatures = rng.choice([-1, 1], 5000), rng.integers(0, 2, 5000)
    >>> scores = labels + rng.normal(size=5000)
    >>> released = release_scores(contract, "bank", signatures=signatures, labels=labels, scores=scores)
    >>> released.cells.histogram.shape, 0.0 < released.spend.rho < 0.2
    ((2, 20), True)
    """
    policy = policy or Policy()
    check_allowed(contract, peer, policy)
    given = _Given(contract, peer, signatures, labels, scores, keys)
    cells, spend, moved = (_noisy if policy.noisy else _exact)(given, policy, noise or Noise())
    return Release(contract, policy, cells, spend, moved, notes)


@dataclass(frozen=True)
class _Given:
    """The rows, as they come; `pieces` has some at a time as wide numbers."""

    contract: Contract
    peer: str
    signatures: Ints
    label_codes: Ints
    scores: Floats
    keys: Ints | None

    @property
    def known(self) -> list[int]:
        """The label's two codes."""
        return sorted(self.contract.label_codes(self.peer))

    @property
    def which(self) -> Ints:
        """0 or 1 for each row."""
        return np.searchsorted(self.known, self.label_codes)

    @property
    def count(self) -> int:
        """How many signatures there are."""
        return prod(len(shared.codes) for shared in self.contract.shared)

    def agreed(self) -> tuple[Ints, Ints]:
        """Codes and label of every agreed signature, those of the first label first."""
        shape = tuple(len(shared.codes) for shared in self.contract.shared)
        codes = np.array(np.unravel_index(np.arange(self.count), shape), dtype=np.int64).T.reshape(
            self.count, len(shape)
        )
        return np.vstack([codes, codes]), np.repeat(np.array(self.known), self.count)

    def pieces(self) -> Iterator[_Given]:
        """Some rows at a time: a hundred million fit in memory as narrow numbers only."""
        for start in range(0, len(self.scores), _PIECE):
            some = slice(start, start + _PIECE)
            yield replace(
                self,
                signatures=self.signatures[some].astype(np.int64),
                label_codes=self.label_codes[some].astype(np.int64),
                scores=self.scores[some].astype(np.float64),
                keys=None if self.keys is None else self.keys[some].astype(np.int64),
            )

    def counts(self) -> Floats:
        """Rows of every agreed signature."""
        return self.counted(lambda rows: rows.which * rows.count + rows.signatures, 2 * self.count)

    def counted(self, place: Callable[[_Given], Ints], size: int) -> Floats:
        """How many rows have each place."""
        out = np.zeros(size)
        for rows in self.pieces():
            out += np.bincount(place(rows), minlength=size)
        return out

    def summed(self, placed: Callable[[_Given], tuple[Ints, Floats]], clip: float, size: int) -> Floats:
        """Sums of clipped values by place, in whole steps of the grid."""
        out = np.zeros(size)
        for rows in self.pieces():
            place, values = placed(rows)
            out += np.bincount(place, np.rint(np.clip(values, -clip, clip) * GRID), size)
        return out


def _noisy(given: _Given, policy: Policy, noise: Noise) -> tuple[ScoreCells, Spend, int]:
    per_unit = policy.rows_per_person
    rows = max(len(given.scores) + float(noise.draw(1, TOTAL * per_unit)[0]), 1.0)
    terms = ScoreTerms(rows, prod(shared.known for shared in given.contract.shared), per_unit)
    f = _dial(terms, policy, with_key=given.keys is not None)
    exact = given.counts()
    by_label = exact.reshape(2, -1).sum(axis=1) + noise.draw(2, terms.labels(f))
    named = dict(zip(given.known, by_label.tolist(), strict=True))
    check_labels(named, given.contract, given.peer, max(policy.min_rows, 4.0 * terms.labels(f)))
    codes, labels = given.agreed()
    sd = terms.counts(f)
    counted = Counted(codes, labels, np.arange(len(labels)), exact + noise.draw(exact.shape, sd))
    counted = fitted(counted, named, sd, terms.labels(f))
    least = np.maximum(float(policy.min_rows), _CLEAR * sd * np.arange(len(labels) + 1) ** 0.5)
    after = _rolled(codes, labels, counted.counts, least, policy)
    values = 0 if given.contract.key is None or given.keys is None else given.contract.key.values
    groups = [count_groups(total, values) if values else 0 for total in by_label]
    group_sds = tuple(
        terms.groups(f, max(total, 0.0) / count) if count else 0.0
        for total, count in zip(by_label, groups, strict=True)
    )
    margin_sds = tuple(terms.margins(f, max(total, 0.0)) for total in by_label)
    levels = ScoreLevels(sd, terms.cells(f), terms.cells(f), terms.bins(f), group_sds, margin_sds)
    cells = _Tables(given, levels, noise).fill(after, labels, counted.counts, least, groups)
    least_groups = min((sd for sd in group_sds if sd), default=math.inf)
    return cells, terms.spend(f, least_groups, min(margin_sds)), int((after != codes).any(axis=1).sum())


def _exact(given: _Given, policy: Policy, noise: Noise) -> tuple[ScoreCells, Spend, int]:
    counts = given.counts()
    by_label = counts.reshape(2, -1).sum(axis=1)
    if by_label.min() == 0:
        raise OneClass(
            f"Only one value of the label '{given.contract.label.column}' occurs at '{given.peer}'. "
            "A model needs two; check [label] in the contract, or give more rows."
        )
    codes, labels = given.agreed()
    least = np.full(len(labels) + 1, float(max(policy.min_rows, 1)))
    after = _rolled(codes, labels, counts, least, policy)
    values = 0 if given.contract.key is None or given.keys is None else given.contract.key.values
    groups = [count_groups(total, values) if values else 0 for total in by_label]
    cells = _Tables(given, ScoreLevels(groups=(0.0, 0.0)), noise).fill(after, labels, counts, least, groups)
    return cells, Spend(0.0), int((after != codes).any(axis=1)[counts > 0].sum())


def _rolled(codes: Ints, labels: Ints, counts: Floats, least: Floats, policy: Policy) -> Ints:
    if policy.signatures == "labels-only":
        return np.full_like(codes, ROLLED)
    return coarsened(codes, labels, counts, least)


def joined(number: Ints, labels: Ints, counts: Floats, least: Floats) -> Ints:
    """Cells that count too little (what is left over of a label) join its largest, which keeps its codes.

    A few rows among many move its mean less than giving up its codes would.

    Examples
    --------
    >>> joined(np.array([0, 0, 1, 2]), np.array([1, 1, 1, 1]), np.array([30.0, 20.0, 2.0, 12.0]), np.full(5, 10.0))
    array([0, 0, 0, 1])
    """
    out, first = number.copy(), first_of_each(number)
    size = np.bincount(number, counts)
    small = size < least[np.bincount(number)]
    for cell in np.flatnonzero(small):
        own = labels[first] == labels[first[cell]]
        out[number == cell] = int(np.argmax(np.where(own, size, -np.inf)))
    return number_rows(out[:, None])


def _dial(terms: ScoreTerms, policy: Policy, *, with_key: bool) -> float:
    if policy.epsilon is None:
        return policy.noise
    return terms.dial(rho_of(policy.epsilon, policy.delta), with_key=with_key)


@dataclass(frozen=True)
class _Tables:
    """Sums, distances, histograms and groups, each measured by those before."""

    given: _Given
    levels: ScoreLevels
    noise: Noise

    def fill(self, codes: Ints, labels: Ints, counts: Floats, least: Floats, groups: list[int]) -> ScoreCells:
        """All of them, of cells with these codes; ``counts`` are rows of every agreed signature."""
        given, levels = self.given, self.levels
        number = joined(number_rows(np.column_stack([labels, codes])), labels, counts, least)
        first = first_of_each(number)
        rows = np.maximum(np.rint(np.bincount(number, counts)), 1.0)
        cells = ScoreCells(given.peer, codes[first], labels[first], rows, counts=counts.reshape(2, -1), levels=levels)

        def cell(rows: _Given) -> Ints:
            return np.asarray(number[rows.which * rows.count + rows.signatures])

        def centred(rows: _Given) -> tuple[Ints, Floats]:
            return cell(rows), (rows.scores - cells.centre) / UNIT

        cells = replace(cells, sums=self.summed(centred, CLIP_SUM, len(first), levels.sums))

        def distances(rows: _Given) -> tuple[Ints, Floats]:
            own = cell(rows)
            return own, np.abs(rows.scores - cells.means[own]) / UNIT

        cells = replace(cells, spreads=self.summed(distances, CLIP_SPREAD, len(first), levels.spreads))

        def residuals(rows: _Given) -> Floats:
            own = cell(rows)
            return np.asarray((rows.scores - cells.means[own]) / cells.deviations[own])

        return replace(
            cells,
            histogram=self.histogram(residuals),
            groups=tuple(self.grouped(residuals, label, groups[label]) for label in (0, 1)),
            margins=self.margins(cells.margin_edges),
        )

    def histogram(self, residuals: Callable[[_Given], Floats]) -> Floats:
        """Rows by label and bin of their residuals."""
        exact = self.binned(residuals, EDGES)
        return np.asarray(exact + self.noise.draw(exact.shape, self.levels.bins))

    def margins(self, edges: Floats) -> Floats:
        """Rows by label and bin of their scores."""
        exact = self.binned(lambda rows: rows.scores, edges)
        return np.array([each + self.noise.draw(BINS, sd) for each, sd in zip(exact, self.levels.margins, strict=True)])

    def binned(self, values: Callable[[_Given], Floats], edges: Floats) -> Floats:
        """How many rows of each label have values in each bin; those outside are in the last ones."""

        def place(rows: _Given) -> Ints:
            bins = np.searchsorted(edges, values(rows), side="right") - 1
            return np.asarray(rows.which * BINS + np.clip(bins, 0, BINS - 1))

        return self.given.counted(place, 2 * BINS).reshape(2, BINS)

    def grouped(self, residuals: Callable[[_Given], Floats], label: int, groups: int) -> Floats:
        """Sums of a label's residuals by group of the key."""
        if self.given.keys is None or not groups:
            return np.zeros(0)

        def placed(rows: _Given) -> tuple[Ints, Floats]:
            keys = np.zeros_like(rows.which) if rows.keys is None else rows.keys
            own = (rows.which == label) & (keys >= 0)
            return keys[own] % groups, residuals(rows)[own]

        return self.summed(placed, CLIP_GROUP, groups, self.levels.groups[label])

    def summed(self, placed: Callable[[_Given], tuple[Ints, Floats]], clip: float, size: int, sd: float) -> Floats:
        """Sums of clipped values by place, with noise."""
        exact = self.given.summed(placed, clip, size)
        return np.asarray(noisy(exact, sd * GRID, self.noise) / GRID if sd else exact / GRID)
