"""The correlation of peers' scores, measured from sums by group of a key: what it is off by, and how sure it is."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.learning.scored import DAYS, People, people

from radocraft import Policy
from radocraft.errors import LearnError
from radocraft.learning._correlation import NOT_NEUTRAL, PRIOR, Correlation, coarser, correlate, variance_ratio
from radocraft.learning._virtual import Merged

DRAWS = 150


def drawn(in_common: float, policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    """How far estimates are off, and their standard errors, where correlations are what the prior says they are."""
    rng, off, errors = np.random.default_rng(5), [], []
    for seed in range(DRAWS):
        related = float(np.clip(rng.normal(*PRIOR), -0.6, 0.97))
        world = people(6000, seed, positive=0.3, related=related, in_common=in_common, key=True)
        measured = correlate(world.merged(policy, seed), in_common)
        assert measured.measured
        off.append(measured.mean[0, 1] - related)
        errors.append(measured.error[0, 1])
    return np.array(off), np.array(errors)


@pytest.mark.parametrize("in_common", [1.0, 0.5])
@pytest.mark.parametrize("policy", [Policy.exact(), Policy()], ids=["exact", "noisy"])
def test_it_is_right_on_average_and_says_how_sure_it_is(in_common: float, policy: Policy) -> None:
    """Through the gate, clips and noise included: no key is refused by chance, and errors are what they say."""
    off, errors = drawn(in_common, policy)
    assert abs(off.mean()) < 4 * off.std() / DRAWS**0.5
    assert 0.87 < np.mean(np.abs(off) < 2 * errors) < 0.98
    assert np.median(errors) < 0.7 * PRIOR[1], "it has learned something"


def test_who_takes_all_people_for_common_measures_the_share_of_it() -> None:
    """So `in_common` is what the measured covariance is divided by."""
    found = [
        correlate(people(12_000, seed, related=0.6, in_common=0.5, key=True).merged(), 1.0).mean[0, 1]
        for seed in range(10)
    ]
    assert np.mean(found) == pytest.approx(0.3, abs=4 * np.std(found) / 10**0.5)


def telling(share: float, seed: int = 0, rows: int = 6000) -> People:
    """Each day of birth moves what the first peer knows of its people, by this share of a deviation."""
    world = people(rows, seed, key=True)
    moved = world.scores.copy()
    moved[:, 0] += 1.5 * share * np.random.default_rng(seed).normal(size=DAYS)[world.born]
    return replace(world, scores=moved)


@pytest.mark.parametrize("policy", [Policy.exact(), Policy()], ids=["exact", "noisy"])
def test_a_key_that_tells_something_is_refused(policy: Policy) -> None:
    with pytest.raises(LearnError, match=r"The key 'born' is not neutral: sums of 'p0' by group vary \d.*another key"):
        correlate(telling(0.5).merged(policy))


def test_how_much_groups_vary_is_1_for_a_neutral_key_and_grows_with_what_it_tells() -> None:
    """Of a group's m rows, what the key tells of each adds m times its square to a variance of 1."""
    by_share = {}
    for share in (0.0, 0.2, 0.4):
        found = [variance_ratio(telling(share, seed).cells(0, Policy.exact()), DAYS) for seed in range(12)]
        (freedom,) = {round(freedom, 9) for _, freedom in found}
        error = (2.0 / freedom) ** 0.5
        ratios = np.array([ratio for ratio, _ in found])
        by_share[share] = ratios.mean()
        if not share:
            assert abs(ratios.mean() - 1.0) < 4 * error / 12**0.5
            assert ratios.std() == pytest.approx(error, rel=0.7)
            assert ratios.max() < 1.0 + 4.0 * error
    assert NOT_NEUTRAL < by_share[0.2] < by_share[0.4]


def test_without_a_key_it_is_what_is_usual() -> None:
    usual = correlate(people(1000, 0, peers=3).merged())
    assert not usual.measured
    off = ~np.eye(3, dtype=bool)
    assert usual.mean[off] == pytest.approx(PRIOR[0], abs=0.005)
    assert usual.error[off] == pytest.approx(PRIOR[1], abs=0.01)
    assert np.diag(usual.mean).tolist() == [1.0, 1.0, 1.0]
    assert not np.diag(usual.error).any()


def test_pairs_are_told_apart() -> None:
    """Two peers that know much the same, and one that knows something else."""
    world = people(12_000, 3, peers=3, key=True)
    scores = world.scores.copy()
    inside = scores - world.log_odds[:, None] - 1.5**2 * (world.labels - 0.5)[:, None]
    scores[:, 1] += 0.8 * inside[:, 0] - 0.4 * inside[:, 1]
    found = correlate(replace(world, scores=scores).merged())
    assert (found.mean == found.mean.T).all()
    assert found.mean[0, 1] == pytest.approx(0.8, abs=3 * found.error[0, 1])
    for pair in ((0, 2), (1, 2)):
        assert found.mean[pair] == pytest.approx(0.0, abs=3 * found.error[pair])


def test_groups_of_peers_with_different_rows_are_made_alike() -> None:
    """Group g of 128 goes to g modulo 32; nothing is lost, and so many times as much noise is in each sum."""
    cells = people(3000, 0, key=True).cells(0, Policy(), 0)
    fine, label = cells.groups[1], 1
    same = coarser(cells, label, len(fine) // 4)
    assert same.groups[label] == pytest.approx(fine.reshape(4, -1).sum(axis=0))
    assert same.groups[0] is cells.groups[0]
    assert same.levels.groups == (cells.levels.groups[0], 2 * cells.levels.groups[1])
    assert coarser(cells, label, len(fine)) is cells


def test_peers_of_different_size_are_compared_by_the_coarser_groups() -> None:
    world = people(10_000, 1, related=0.6, key=True)
    small = replace(world, known=(world.known[0], world.known[1][:2000]))
    merged = small.merged()
    sizes = [[len(sums) for sums in cells.groups] for cells in merged.peers]
    assert sizes[0] > sizes[1]
    shared = 2000 / (10_000 * 2000) ** 0.5  # of both peers' rows, by their geometric mean
    found = correlate(merged, shared)
    assert found.mean[0, 1] == pytest.approx(0.6, abs=3 * found.error[0, 1])


def test_so_many_errors_off_is_still_a_correlation() -> None:
    found = Correlation(np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([[0.0, 0.1], [0.1, 0.0]]), True)
    assert found.moved(2.0)[0, 1] == 0.97
    assert found.moved(-2.0)[0, 1] == pytest.approx(0.7)
    assert np.diag(found.moved(5.0)).tolist() == [1.0, 1.0]


def test_one_peer_has_nobody_to_be_related_to() -> None:
    world = people(1000, 0, key=True)
    alone = correlate(Merged(world.contract, world.merged().peers[:1]))
    assert alone.mean.tolist() == [[1.0]]
