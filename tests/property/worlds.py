"""Small worlds to test theorems in: a joined table that nobody has, cut among peers.

(VP) every peer sees every row; (G) each sees rows of its own choice. In both a
peer keeps its rows in an order of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from radocraft.arrays import Floats, Ints, add_up
from radocraft.contract._contract import Contract
from radocraft.gate._policy import Policy
from radocraft.gate._release import release
from radocraft.learning._blocks import Blocks, merge, merge_cells
from radocraft.parts._part import Part
from radocraft.rows import craft_rows
from radocraft.sums._cells import ROLLED, Cells, standardise
from radocraft.sums._tally import Tally


@dataclass(frozen=True)
class World:
    """The joined table (codes, labels, values per peer), and which rows each peer holds in which order."""

    contract: Contract
    codes: Ints
    labels: Ints
    values: tuple[Floats, ...]
    held: tuple[Ints, ...]

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(self.contract.peers)

    def tally(self, at: int, rows: Ints | None = None) -> Tally:
        rows = self.held[at] if rows is None else rows
        name = self.peers[at]
        columns = tuple(sorted(self.contract.peers[name].features))
        return craft_rows(
            self.contract,
            name,
            columns,
            codes=self.codes[rows],
            labels=self.labels[rows],
            values=self.values[at][rows],
            bounds=None,
        )

    def table(self, at: int, rows: Ints | None = None) -> pa.Table:
        """The peer's table as it would be in a file."""
        rows = self.held[at] if rows is None else rows
        columns = {"label": pa.array(self.labels[rows])}
        for place, shared in enumerate(self.contract.shared):
            raw = [*(shared.categories or ()), None, 99]
            columns[shared.name] = pa.array([raw[code] for code in self.codes[rows, place]], pa.int64())
        for place, name in enumerate(sorted(self.contract.peers[self.peers[at]].features)):
            columns[name] = pa.array(self.values[at][rows, place])
        return pa.table(columns)

    def parts(self, min_rows: int = 1) -> list[Part]:
        """What leaves the peers as exact sums."""
        return [
            Part.of(release(self.tally(at), self.contract, Policy.exact(min_rows))) for at in range(len(self.values))
        ]

    def cells(self, at: int, min_rows: int = 1) -> Cells:
        """The peer's cells, small ones rolled up as `rolled_up` has it."""
        return rolled_up(standardise(self.tally(at), self.contract), min_rows)

    def blocks(self, *min_rows: int) -> Blocks:
        """The peers' cells brought together; each peer may have a limit of its own, the last one is for the rest."""
        limits = [*(min_rows or (1,)), *[min_rows[-1] if min_rows else 1] * len(self.values)]
        cells = tuple(self.cells(at, limits[at]) for at in range(len(self.values)))
        return merge_cells(cells, self.contract)

    def gated(self, min_rows: int) -> Blocks:
        """What a learner makes of the peers' parts."""
        return merge(self.parts(min_rows), self.contract)

    def private(self, at: int) -> Floats:
        """The peer's columns of the joined table in the model's units, missing values as 0."""
        cells = self.cells(at)
        return np.nan_to_num((self.values[at] - cells.centre) / cells.scale, nan=0.0)

    def shared(self) -> Floats:
        """The constant (if the contract wants one) and the shared columns, row by row."""
        constant = np.ones((len(self.labels), int(self.contract.intercept)))
        return np.hstack([constant, self.contract.encode_shared(self.codes)])

    def joined(self) -> Floats:
        """The examples of the true joined table, one per row."""
        return np.hstack([self.shared(), *(self.private(at) for at in range(len(self.values)))])

    def matchings(self) -> Iterator[Floats]:
        """The examples under every matching that pairs only rows of equal signature and label."""
        keys = np.column_stack([self.codes, self.labels])
        groups = [np.flatnonzero((keys == key).all(axis=1)) for key in np.unique(keys, axis=0)]
        shared, private = self.shared(), [self.private(at) for at in range(len(self.values))]
        orders = [[list(order) for order in itertools.permutations(group)] for group in groups]
        others = len(private) - 1
        for choice in itertools.product(*orders * others):
            pieces = [shared, private[0]]
            for at in range(others):
                mine = choice[at * len(groups) : (at + 1) * len(groups)]
                shuffled = np.empty_like(private[at + 1])
                for group, order in zip(groups, mine, strict=True):
                    shuffled[group] = private[at + 1][order]
                pieces.append(shuffled)
            yield np.hstack(pieces)


def agree(
    widths: list[int],
    codes: list[int],
    *,
    intercept: bool = True,
    encoding: str = "one-hot",
    fixed: bool = True,
) -> Contract:
    """A contract for peers with that many numeric columns and shared features with that many categories."""
    scale = {"centre": 0.5, "scale": 2.0} if fixed else {}
    return Contract.model_validate(
        {
            "name": "world",
            "label": {"column": "label", "positive": 1, "negative": -1},
            "shared": [
                {"name": f"s{at}", "categories": list(range(count)), "encoding": encoding}
                for at, count in enumerate(codes)
            ],
            "peers": {
                f"p{peer}": {"features": {f"x{peer}_{at}": {"kind": "numeric", **scale} for at in range(width)}}
                for peer, width in enumerate(widths)
            },
            "intercept": intercept,
        }
    )


@st.composite
def contracts(draw: st.DrawFn, peers: tuple[int, int] = (2, 3), shared: tuple[int, int] = (0, 3)) -> Contract:
    """Contracts for `World`."""
    return agree(
        draw(st.lists(st.integers(1, 3), min_size=peers[0], max_size=peers[1])),
        draw(st.lists(st.integers(1, 3), min_size=shared[0], max_size=shared[1])),
        intercept=draw(st.booleans()),
        encoding=draw(st.sampled_from(["one-hot", "ordinal"])),
        fixed=draw(st.booleans()),
    )


def random_values(rng: np.random.Generator, contract: Contract, codes: Ints, labels: Ints) -> tuple[Floats, ...]:
    """Values that hang together inside and across peers: one hidden cause, the label, the codes, and noise."""
    cause = rng.normal(size=len(labels)) + 0.5 * labels + codes.sum(axis=1) * rng.normal()
    out = []
    for peer in contract.peers.values():
        width = len(peer.features)
        out.append(np.outer(cause, rng.normal(size=width)) + rng.normal(size=(len(labels), width)) + rng.normal())
    return tuple(out)


@st.composite
def worlds(
    draw: st.DrawFn,
    setting: str = "VP",
    missing: bool = False,
    rows: tuple[int, int] = (4, 40),
    shared: tuple[int, int] = (0, 3),
) -> World:
    """Worlds of some dozens of rows; every peer has both labels."""
    contract = draw(contracts(shared=shared))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(*rows))
    codes = np.column_stack(
        [np.empty((count, 0), dtype=np.int64), *(rng.integers(0, len(s.codes), count) for s in contract.shared)]
    )
    labels = rng.choice([-1, 1], size=count)
    labels[:4] = [-1, -1, 1, 1]
    values = random_values(rng, contract, codes, labels)
    if missing:
        for table in values:
            table[rng.random(table.shape) < rng.choice([0.0, 0.1, 0.7])] = np.nan
    held = []
    for _ in contract.peers:
        order = rng.permutation(count)
        if setting == "G":
            kept = rng.random(count) < rng.choice([0.4, 0.8])
            kept[:4] = True
            order = order[kept[order]]
        held.append(order)
    return World(contract, codes, labels, values, tuple(held))


@st.composite
def tiny_worlds(draw: st.DrawFn, most: int = 300, shared: tuple[int, int] = (0, 2), missing: bool = False) -> World:
    """(VP) worlds of a few small blocks, with at most ``most`` matchings in all."""
    contract = draw(contracts(shared=shared))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    every = list(itertools.product(*(range(len(s.codes)) for s in contract.shared), (-1, 1)))
    keys = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    others, budget, sizes = len(contract.peers) - 1, most, []
    for _ in keys:
        allowed = max(size for size in (1, 2, 3, 4) if math.factorial(size) ** others <= budget)
        sizes.append(draw(st.integers(1, allowed)))
        budget //= math.factorial(sizes[-1]) ** others
    absent = {-1, 1} - {key[-1] for key in keys}
    keys += [next(key for key in every if key[-1] == label) for label in absent]
    sizes += [1] * len(absent)
    table = np.repeat(np.array(keys, dtype=np.int64), sizes, axis=0)
    codes, labels = table[:, :-1], table[:, -1]
    values = random_values(rng, contract, codes, labels)
    if missing:
        for table in values:
            table[rng.random(table.shape) < 0.2] = np.nan
    held = tuple(rng.permutation(len(labels)) for _ in contract.peers)
    return World(contract, codes, labels, values, held)


def ridge(examples: Floats, labels: Ints | Floats, penalty: Floats) -> Floats:
    """Least squares with ``m * penalty`` on the diagonal, from its normal equation."""
    system = examples.T @ examples + len(labels) * np.diag(penalty)
    theta: Floats = np.linalg.lstsq(system, examples.T @ labels, rcond=None)[0]
    return theta


def ridge_loss(examples: Floats, labels: Ints | Floats, theta: Floats, penalty: Floats) -> float:
    """Mean of (1 - y theta^T x)^2, and the penalty."""
    return float(np.mean((1.0 - labels * (examples @ theta)) ** 2) + penalty @ theta**2)


def rolled_up(cells: Cells, min_rows: int) -> Cells:
    """A block with too few rows replaces its last code by "any", and so on; sums add, and nothing else changes.

    This is rolling up as the learners' mathematics has it, without the gate's further rules: what is left
    over at the top may be small.
    """
    codes = cells.codes.copy()
    for level in reversed(range(codes.shape[1])):
        keys, group = np.unique(np.column_stack([codes, cells.labels]), axis=0, return_inverse=True)
        rows = np.bincount(group.reshape(-1), cells.rows, len(keys))
        codes[rows[group.reshape(-1)] < min_rows, level] = ROLLED
    return cells.grouped(codes)


def finest_cell(cells: Cells, codes: Ints, labels: Ints) -> Ints:
    """For each row the finest of the peer's cells that contains its signature, -1 if there is none."""
    blocks, block = np.unique(np.column_stack([codes, labels]), axis=0, return_inverse=True)
    finest = np.full(len(blocks), -1)
    known = (cells.codes != ROLLED).sum(axis=1)
    for at, (*signature, label) in enumerate(blocks.tolist()):
        around = ((cells.codes == signature) | (cells.codes == ROLLED)).all(axis=1) & (cells.labels == label)
        if around.any():
            finest[at] = np.argmax(np.where(around, known, -1))
    return finest[block.reshape(-1)]


def assert_same_cells(one: Cells, other: Cells, world: World, at: int) -> None:
    """Equal to 1e-12, where a sum is measured by the sum of the absolute values that went into it."""
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.present, other.present)
    np.testing.assert_array_equal(one.shared.toarray(), other.shared.toarray())
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)
    assert (np.abs(one.centre - other.centre) <= 1e-12 * (np.abs(one.centre) + one.scale)).all()
    rows = world.held[at]
    values = np.abs(np.nan_to_num((world.values[at][rows] - one.centre) / one.scale, nan=0.0))
    cell = finest_cell(one, world.codes[rows], world.labels[rows])
    np.testing.assert_array_equal(np.bincount(cell, minlength=len(one.rows)), one.rows)
    assert (np.abs(one.sums - other.sums) <= 1e-12 * add_up(values, cell, len(one.rows))).all()
    shared = np.abs(world.contract.encode_shared(world.codes[rows]))
    everything = np.hstack([values, shared, np.ones((len(rows), 1))])
    assert (np.abs(one.moments - other.moments) <= 1e-12 * (everything.T @ everything)).all()
