"""Small blocks worked out by linear algebra from everything that is released: cells, totals and moments."""

from itertools import combinations

import numpy as np
import pytest
from radocraft.policy.recoding import recode, released_groups
from tests.property.worlds import World, agree, finest_cell, random_values

from radocraft.gate._policy import Policy
from radocraft.gate._release import release
from radocraft.gate._rolling import rolled_up
from radocraft.ledger._lines import Limits
from radocraft.parts._part import Part
from radocraft.peer._counting import Counts
from radocraft.sums._cells import Cells, standardise

LIMIT = 10


def small_world(seed: int, rows: int = 260, shared: tuple[int, ...] = (3, 3)) -> World:
    rng = np.random.default_rng(seed)
    contract = agree([2, 1], list(shared), fixed=True)
    codes = np.column_stack([rng.choice(count + 1, rows, p=skewed(count + 1)) for count in shared])
    labels = rng.choice([-1, 1], rows, p=[0.6, 0.4])
    values = random_values(rng, contract, codes, labels)
    return World(contract, codes, labels, values, (np.arange(rows), np.arange(rows)))


def skewed(count: int) -> np.ndarray:
    weights = 0.55 ** np.arange(count)
    return weights / weights.sum()


class Attacker:
    """Knows the contract and every signature that occurs; solves for the blocks' row counts and sums.

    It reads each released number as the sum it would be of, whatever the gate
    did to it, and takes the least-squares solution.
    """

    def __init__(self, cells: Cells, exact: Cells, world: World) -> None:
        self.cells, self.exact, self.world = cells, exact, world
        encoded = world.contract.encode_shared(exact.codes)
        member = np.eye(len(cells.rows))[:, finest_cell(cells, exact.codes, exact.labels)]
        width = len(cells.columns)
        shared = slice(width, -1)
        per_label = [np.where(exact.labels == sign, 1.0, 0.0) for sign in (-1, 1)]
        totals = [cells.shared[cells.labels == sign].sum(axis=0) for sign in (-1, 1)]
        pairs = np.einsum("bi,bj->ijb", encoded, encoded).reshape(-1, len(encoded))
        inside = np.einsum("cb,bi->cib", member, encoded).reshape(-1, len(encoded))
        self.counting = np.vstack([member, *(encoded.T * one for one in per_label), pairs, inside])
        self.counted = np.concatenate(
            [cells.rows, *totals, cells.moments[shared, shared].ravel(), cells.shared.toarray().ravel()]
        )
        self.summing = np.vstack([member, encoded.T])
        self.summed = np.vstack([cells.sums, cells.moments[shared, :width]])

    def small(self) -> np.ndarray:
        return np.flatnonzero(self.exact.rows < LIMIT)

    def recovered(self) -> int:
        """Small blocks whose row count or a sum comes out exactly.

        Where some counts come out broken, hidden codes were divided by likely
        shares, and a whole number among them is chance.
        """
        rows = np.linalg.lstsq(self.counting, self.counted, rcond=None)[0]
        sums = np.linalg.lstsq(self.summing, self.summed, rcond=None)[0]
        fixed_rows, fixed_sums = determined(self.counting), determined(self.summing)
        honest = np.abs(rows[fixed_rows] - np.rint(rows[fixed_rows])).max(initial=0.0) < 1e-6
        hits = 0
        for at in self.small():
            by_rows = honest and fixed_rows[at] and abs(rows[at] - self.exact.rows[at]) < 1e-6
            by_sums = fixed_sums[at] and np.abs(sums[at] - self.exact.sums[at]).max() < 1e-6
            hits += bool(by_rows or by_sums)
        return hits


def determined(system: np.ndarray) -> np.ndarray:
    """Unknowns that the equations fix: their unit vector lies in the row space."""
    _, values, right = np.linalg.svd(system, full_matrices=False)
    basis = right[values > 1e-9 * values.max()]
    return np.abs(np.eye(system.shape[1]) - basis.T @ basis).max(axis=1) < 1e-8


def everything_exact(world: World, keep_small: bool) -> tuple[Cells, Cells]:
    """A gate that rolls up but lets exact sums of hidden codes and exact moments leave: the planted bug."""
    exact = standardise(world.tally(0), world.contract)
    if keep_small:
        return exact, exact
    return exact.grouped(rolled_up(Limits(exact, Counts.none(len(exact.rows)), LIMIT))), exact


@pytest.mark.parametrize("seed", range(5))
def test_rolling_up_alone_is_undone_by_subtraction(seed):
    cells, exact = everything_exact(small_world(seed), keep_small=False)
    attack = Attacker(cells, exact, small_world(seed))
    assert len(attack.small()) >= 5
    assert attack.recovered() > 0


def test_mode_none_gives_small_blocks_away():
    world = small_world(0)
    policy = Policy(mode="none", gives_away_single_rows=True)
    cells = Part.seal(release(world.tally(0), world.contract, policy)).cells(world.contract)
    attack = Attacker(cells, standardise(world.tally(0), world.contract), world)
    assert attack.recovered() == len(attack.small()) > 0


@pytest.mark.parametrize("shared", [(7,), (3, 3), (2, 2, 2)])
@pytest.mark.parametrize("policy", [Policy(LIMIT), Policy(LIMIT, signatures="labels-only")])
@pytest.mark.parametrize("seed", range(5))
def test_no_small_block_comes_back_from_a_released_part(seed, policy, shared):
    world = small_world(seed, shared=shared)
    cells = Part.seal(release(world.tally(0), world.contract, policy)).cells(world.contract)
    attack = Attacker(cells, standardise(world.tally(0), world.contract), world)
    assert len(attack.small())
    assert attack.recovered() == 0


@pytest.mark.parametrize("rows", [120, 160])
@pytest.mark.parametrize("shared", [(3, 3), (2, 2, 1)])
@pytest.mark.parametrize("seed", range(10))
def test_no_set_of_small_blocks_lies_in_the_row_space_of_what_is_released(seed, shared, rows):
    """Every union of hidden blocks with fewer rows than the limit, by brute force, against one who knows the gate."""
    world = small_world(seed, rows=rows, shared=shared)
    exact = standardise(world.tally(0), world.contract)
    limits = Limits(exact, Counts.none(len(exact.rows)), LIMIT)
    codes = rolled_up(limits)
    found = recode(limits, codes)
    hidden = np.flatnonzero(found.rolled.any(axis=1))
    system = np.vstack([group.toarray() for group in released_groups(found, hidden)])
    _, values, right = np.linalg.svd(system, full_matrices=False)
    basis = right[values > 1e-9 * values.max()]
    tried = 0
    for size in (1, 2, 3):
        for union in combinations(range(len(hidden)), size):
            if exact.rows[hidden[list(union)]].sum() >= LIMIT:
                continue
            target = np.zeros(len(hidden))
            target[list(union)] = 1.0
            tried += 1
            assert np.linalg.norm(target - basis.T @ (basis @ target)) > 1e-6, (union, size)
    assert tried > 20
