"""How related peers' scores are, from sums by group: right on average and as sure as it says, whatever the groups.

People, what the peers know of them and their sums are drawn as the gate would have them, without the gate.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import f as fisher
from tests.unit.learning.scored import agreed

from radocraft.contract import Contract
from radocraft.errors import LearnError
from radocraft.learning._correlation import PRIOR, check_neutral, correlate
from radocraft.learning._virtual import Merged
from radocraft.sums import BINS, CLIP_GROUP, EDGES, ScoreCells, ScoreLevels

DRAWS = 200


@dataclass(frozen=True)
class Drawn:
    """Residuals of two peers by label, with the group of each row; the first ``common`` rows are the same people."""

    residuals: tuple[np.ndarray, np.ndarray]
    groups: np.ndarray
    labels: np.ndarray
    count: int

    def cells(self, peer: int, noise: float, rng: np.random.Generator) -> ScoreCells:
        """What would leave a peer."""
        own, (of, groups) = self.residuals[peer], (self.labels[peer], self.groups[peer])
        sums = [
            np.bincount(groups[of == label], np.clip(own[of == label], -CLIP_GROUP, CLIP_GROUP), self.count)
            for label in (0, 1)
        ]
        histogram = np.array([np.histogram(np.clip(own[of == label], -39, 39), EDGES)[0] for label in (0, 1)])
        rows = np.bincount(of, minlength=2).astype(float)
        return ScoreCells(
            f"p{peer}",
            np.zeros((2, 1), dtype=np.int64),
            np.array([-1, 1]),
            rows,
            histogram=histogram.astype(float),
            margins=np.zeros((2, BINS)),
            groups=tuple(each + noise * rng.normal(size=self.count) for each in sums),
            levels=ScoreLevels(groups=(noise, noise)),
        )


def keyed(values: int) -> Contract:
    """A contract whose key has so many values."""
    tree = agreed(2).model_dump(mode="json", exclude_none=True)
    return Contract.model_validate({**tree, "key": [{"name": "born", "edges": [*range(1, values)]}]})


def drawn(
    rows: int,
    count: int,
    related: float,
    common: float,
    rng: np.random.Generator,
    *,
    told: float = 0.0,
) -> Drawn:
    """So many people at each peer; the key tells ``told`` deviations of what the first peer knows."""
    same = round(common * rows)
    pair = rng.normal(size=(rows, 2)) @ np.linalg.cholesky([[1.0, related], [related, 1.0]]).T
    pair[same:, 1] = rng.normal(size=rows - same)
    groups = rng.integers(0, count, (2, rows))
    groups[1, :same] = groups[0, :same]
    labels = (rng.random((2, rows)) < 0.3).astype(np.int64)
    labels[1, :same] = labels[0, :same]
    pair[:, 0] += told * rng.normal(size=count)[groups[0]]
    return Drawn((pair[:, 0], pair[:, 1]), groups, labels, count)


@pytest.mark.parametrize(
    ("rows", "count", "common", "noise"),
    [
        (4000, 100, 1.0, 0.0),
        (4000, 100, 1.0, 3.0),
        (1500, 200, 1.0, 1.0),
        (8000, 64, 0.5, 3.0),
        (3000, 365, 0.8, 0.5),
    ],
)
def test_the_estimate_is_right_on_average_and_as_sure_as_it_says(
    rows: int, count: int, common: float, noise: float
) -> None:
    """Groups of 4 to 60 rows of a label, all people in common or half of them, little noise or much."""
    rng, contract, off, errors = np.random.default_rng([rows, count]), keyed(count), [], []
    for _ in range(DRAWS):
        related = float(np.clip(rng.normal(*PRIOR), -0.6, 0.97))
        world = drawn(rows, count, related, common, rng)
        merged = Merged(contract, tuple(world.cells(peer, noise, rng) for peer in (0, 1)))
        found = correlate(merged, common)
        off.append(found.mean[0, 1] - related)
        errors.append(found.error[0, 1])
    off, errors = np.array(off), np.array(errors)
    assert abs(off.mean()) < 4 * off.std() / DRAWS**0.5
    assert 0.87 <= np.mean(np.abs(off) < 2 * errors) <= 0.98


def test_the_error_falls_like_one_over_the_root_of_the_groups() -> None:
    """Whatever their rows: a hundred times the groups, a tenth of the error."""
    rng = np.random.default_rng(0)
    errors = {}
    for count in (100, 1000, 10_000):
        world = drawn(20 * count, count, 0.4, 1.0, rng)
        merged = Merged(keyed(count), tuple(world.cells(peer, 1.0, rng) for peer in (0, 1)))
        errors[count] = correlate(merged).error[0, 1] * count**0.5
    assert errors[10_000] == pytest.approx(errors[1000], rel=0.1)
    assert errors[1000] == pytest.approx(errors[100], rel=0.25), "of few groups the prior tells a part"


@pytest.mark.parametrize("told", [0.1, 0.15, 0.2, 0.3])
def test_a_key_that_tells_is_refused_at_least_as_often_as_by_an_f_test_of_the_same_size(told: float) -> None:
    """One way of variance, rows known; of our test only the sums by group are."""
    rng, contract, ours, theirs, count, draws = np.random.default_rng(7), keyed(365), 0, 0, 365, 60
    for _ in range(draws):
        world = drawn(6000, count, 0.3, 1.0, rng, told=told)
        cells = world.cells(0, 0.0, rng)
        merged = Merged(contract, (cells, world.cells(1, 0.0, rng)))
        try:
            check_neutral(cells, merged)
        except LearnError:
            ours += 1
        theirs += _f_test(world, count) < 1e-5
    assert ours >= theirs - 2 * (draws * 0.25) ** 0.5


def _f_test(world: Drawn, count: int) -> float:
    """Of both labels together: groups of each against what is left in them."""
    between, within, above, below = 0.0, 0.0, 0, 0
    for label in (0, 1):
        own = world.labels[0] == label
        values, groups = np.clip(world.residuals[0][own], -CLIP_GROUP, CLIP_GROUP), world.groups[0][own]
        size = np.bincount(groups, minlength=count)
        means = np.bincount(groups, values, count) / np.maximum(size, 1)
        between += float((size * (means - values.mean()) ** 2).sum())
        within += float(((values - means[groups]) ** 2).sum())
        above, below = above + int((size > 0).sum()) - 1, below + len(values) - int((size > 0).sum())
    return float(fisher.sf(between / above / (within / below), above, below))
