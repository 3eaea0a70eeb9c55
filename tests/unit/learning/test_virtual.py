"""Rows that could be: every peer's own margins to the last digit, and any correlation between peers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, logit
from scipy.stats import norm
from tests.unit.learning.scored import SIGNATURES, people

from radocraft import Policy
from radocraft.learning._virtual import Merged, VirtualRows, matched, positive, smoothed_log_odds, virtual_rows
from radocraft.sums import ROLLED, TOP, ScoreCells

PEERS = 3
POLICIES = {
    "exact": Policy.exact(),
    "noisy": Policy(),
    "rolled up": Policy.exact(120),
    "labels only": Policy(signatures="labels-only"),
}


@pytest.fixture(scope="module", params=[*POLICIES])
def merged(request: pytest.FixtureRequest) -> Merged:
    return people(1500, 1, peers=PEERS, positive=0.3).merged(POLICIES[request.param])


def places(merged: Merged, rows: VirtualRows) -> tuple[np.ndarray, np.ndarray]:
    """Label and signature of every virtual row: they come in that order, by the peers' counts."""
    wanted = np.clip(4 * merged.total, 6_000, 30_000)
    labels, signatures = [], []
    for label in (0, 1):
        count = np.rint(merged.rows[label] * wanted / merged.rows.sum()).astype(int)
        signatures.append(np.repeat(np.arange(len(count)), count))
        labels.append(np.full(count.sum(), label))
    assert rows.labels.tolist() == np.concatenate(labels).tolist()
    return np.concatenate(labels), np.concatenate(signatures)


@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_scores_are_moved_to_the_bins_they_were_counted_in(noise: float) -> None:
    """Wrong means are put right: shares are those that were counted, and order and inner distances stay."""
    rng, edges = np.random.default_rng(0), np.array([-9.0, -1.0, -0.3, 0.3, 1.0, 9.0])
    true, wrong = rng.normal(0.2, 0.8, 20_000), rng.normal(0.0, 1.0, 5000)
    counts = np.histogram(true, edges)[0] + noise * rng.normal(size=5)
    moved = matched(wrong, counts, noise, edges)
    shares = np.histogram(moved, edges)[0] / len(moved)
    np.testing.assert_allclose(shares, counts / counts.sum(), atol=0.002)
    assert (np.diff(moved[np.argsort(wrong)]) >= 0).all()
    assert abs(np.mean(moved) - 0.2) < 0.03 < abs(np.mean(wrong) - 0.2)


def test_counts_that_are_all_noise_move_nothing() -> None:
    scores = np.random.default_rng(0).normal(size=4000)
    loud = 1e5 * np.random.default_rng(1).normal(size=4)
    moved = matched(scores, loud + 1000.0 - loud.mean(), 1e5, np.array([-9.0, -1.0, 0.0, 1.0, 9.0]))
    assert np.abs(moved - scores).max() < 0.02


correlations = arrays(np.float64, (PEERS, 2), elements=st.floats(-1, 1)).map(
    lambda roots: positive(np.eye(PEERS) + roots @ roots.T)
)


@given(correlation=correlations, seed=st.integers(0, 100))
def test_margins_are_the_peers_own_whatever_the_correlation(merged, correlation, seed):
    """In each cell the i-th lowest of n scores is mean + deviation * Q((i - 1/2) / n), then moved with its label's."""
    rows = virtual_rows(merged, correlation, seed)
    labels, signatures = places(merged, rows)
    for at, cells in enumerate(merged.peers):
        cell, theirs = merged.cells[at][labels, signatures], np.empty(len(labels))
        for number in np.unique(cell):
            own = np.flatnonzero(cell == number)
            own = own[np.argsort(rows.features[own, at], kind="stable")]
            residuals = cells.quantile(int(cells.which[number]), (np.arange(len(own)) + 0.5) / len(own))
            theirs[own] = np.clip(cells.means[number] + cells.deviations[number] * residuals, -TOP, TOP)
        for label in (0, 1):
            moved = matched(
                theirs[labels == label], cells.margins[label], cells.levels.margins[label], cells.margin_edges
            )
            np.testing.assert_allclose(np.sort(moved), np.sort(rows.features[labels == label, at]), rtol=1e-12)
    np.testing.assert_array_equal(rows.features[:, -1], merged.log_odds[signatures])


@pytest.mark.parametrize("related", [-0.4, 0.0, 0.6])
def test_ranks_inside_label_and_signature_are_as_correlated_as_was_asked_for(merged, related):
    rows = virtual_rows(merged, (1 - related) * np.eye(PEERS) + related, 0)
    labels, signatures = places(merged, rows)
    ranks = np.empty((len(labels), PEERS))
    for at in range(PEERS):
        cell = merged.cells[at][labels, signatures]
        for number in np.unique(cell):
            own = np.flatnonzero(cell == number)
            ranks[own[np.argsort(rows.features[own, at], kind="stable")], at] = (np.arange(len(own)) + 0.5) / len(own)
    found = np.corrcoef(norm.ppf(ranks).T)[~np.eye(PEERS, dtype=bool)]
    np.testing.assert_allclose(found, related, atol=4 / len(labels) ** 0.5)


def test_every_peer_counts_all_its_rows_once(merged):
    """A cell's rows go to its signatures; of all peers it is the mean."""
    assert merged.rows.shape == (2, SIGNATURES)
    assert merged.rows.min() > 0
    by_peer = [np.bincount(cells.which, cells.rows, 2) for cells in merged.peers]
    np.testing.assert_allclose(merged.rows.sum(axis=1), np.mean(by_peer, axis=0))
    assert merged.total == pytest.approx(np.mean([cells.rows.sum() for cells in merged.peers]))
    for at, cells in enumerate(merged.peers):
        assert {*cells.which[merged.cells[at][0]]} == {0}
        assert {*cells.which[merged.cells[at][1]]} == {1}


def test_a_rolled_up_cell_is_shared_out_as_its_signatures_were_counted():
    world = people(1500, 1, peers=2, positive=0.3)
    merged = world.merged(Policy.exact(120))
    assert any((cells.codes == ROLLED).any() for cells in merged.peers)
    counted = np.array([np.bincount(world.signatures[world.labels == label], minlength=SIGNATURES) for label in (0, 1)])
    np.testing.assert_allclose(merged.counted, counted, rtol=1e-3)


def without(cells: ScoreCells, gone: int) -> ScoreCells:
    """As if a cell had left nothing."""
    kept = np.arange(len(cells.rows)) != gone
    names = ("codes", "labels", "rows", "sums", "spreads")
    return replace(cells, **{name: getattr(cells, name)[kept] for name in names})


def test_a_signature_outside_all_cells_goes_to_the_largest_of_its_label():
    world = people(1500, 1, peers=1, positive=0.3)
    whole = world.merged().peers[0]
    gone = int(np.flatnonzero(whole.which == 1)[0])
    merged = Merged(world.contract, (without(whole, gone),))
    code, (kept,) = int(whole.codes[gone, 0]), merged.peers
    largest = np.flatnonzero(kept.which == 1)[np.argmax(kept.rows[kept.which == 1])]
    assert largest != np.flatnonzero(kept.which == 1)[0]
    assert merged.cells[0][1, code] == largest
    others = np.delete(np.arange(SIGNATURES), code)
    assert kept.codes[merged.cells[0][1, others], 0].tolist() == others.tolist()


def test_shares_of_a_cell_are_drawn_to_even_ones_by_the_noise_in_a_count():
    """A count of 9 beside counts of 100, with noise of 10 in each, weighs (9 + 10) / (100 + 10) as much as they do."""
    world = people(1500, 1, peers=1, positive=0.3)
    cells = world.cells(0, Policy(signatures="labels-only"))
    counts = np.full_like(cells.counts, 100.0)
    counts[:, 2] = 9.0
    loud = replace(cells, counts=counts, levels=replace(cells.levels, rows=10.0))
    rows = Merged(world.contract, (loud,)).rows
    np.testing.assert_allclose(rows[:, 2] / rows[:, 0], 19 / 110)
    np.testing.assert_allclose(np.delete(rows, 2, axis=1), rows[:, :1] @ np.ones((1, SIGNATURES - 1)))


def test_log_odds_of_signatures_are_those_of_the_rows_drawn_a_little_to_the_base_rate():
    world = people(60_000, 2, positive=0.3)
    merged = world.merged()
    positives = np.array([world.labels[world.signatures == at].mean() for at in range(SIGNATURES)])
    np.testing.assert_allclose(merged.log_odds, logit(positives), atol=0.02)
    few = people(60, 2, positive=0.3).merged()
    base = logit(few.counted[1].sum() / few.counted.sum())
    with np.errstate(divide="ignore"):
        raw = np.log(few.counted[1] / few.counted[0])
    assert (np.abs(few.log_odds - base) < np.abs(raw - base)).all()
    np.testing.assert_allclose(expit(few.log_odds), few.rows[1] / few.rows.sum(axis=0), rtol=0.3)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_shares_of_signatures_mean_what_they_say(spread: float, noise: float) -> None:
    """The log loss they promise is the one that new rows have, however little signatures tell."""
    rng, told, true = np.random.default_rng(3), [], []
    for _ in range(40):
        share = expit(logit(0.1) + spread * rng.normal(size=60))
        total = rng.integers(100, 500, 60)
        ones = rng.binomial(total, share)
        log_odds = smoothed_log_odds(np.array([total - ones, ones]) + noise * rng.normal(size=(2, 60)), noise)
        said = expit(log_odds)
        told.append(np.average(-said * np.log(said) - (1 - said) * np.log1p(-said), weights=total))
        true.append(np.average(-share * np.log(said) - (1 - share) * np.log1p(-said), weights=total))
    off = np.array(told) - true
    assert abs(off.mean()) < 0.003 + 4 * off.std() / 40**0.5


def test_the_nearest_correlation_that_can_be():
    sound = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    np.testing.assert_allclose(positive(sound), sound, atol=1e-12)
    impossible = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    mended = positive(impossible)
    np.testing.assert_allclose(np.diag(mended), 1.0)
    assert np.linalg.eigvalsh(impossible).min() < 0 < np.linalg.eigvalsh(mended).min()
    assert (np.sign(mended) == np.sign(impossible)).all()
