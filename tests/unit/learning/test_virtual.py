"""Rows that could be: every peer's own margins to the last digit, and any correlation between peers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logit
from scipy.stats import norm
from tests.unit.learning.scored import SIGNATURES, people

from radocraft import Policy
from radocraft.learning._virtual import Merged, VirtualRows, positive, virtual_rows
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


correlations = arrays(np.float64, (PEERS, 2), elements=st.floats(-1, 1)).map(
    lambda roots: positive(np.eye(PEERS) + roots @ roots.T)
)


@given(correlation=correlations, seed=st.integers(0, 100))
def test_margins_are_the_peers_own_whatever_the_correlation(merged, correlation, seed):
    """In each cell the i-th lowest of n scores is mean + deviation * Q((i - 1/2) / n)."""
    rows = virtual_rows(merged, correlation, seed)
    labels, signatures = places(merged, rows)
    for at, cells in enumerate(merged.peers):
        cell = merged.cells[at][labels, signatures]
        for number in np.unique(cell):
            scores = np.sort(rows.features[cell == number, at])
            share = (np.arange(len(scores)) + 0.5) / len(scores)
            residuals = cells.quantile(int(cells.which[number]), share)
            theirs = cells.means[number] + cells.deviations[number] * residuals
            np.testing.assert_allclose(scores, np.clip(theirs, -TOP, TOP), rtol=1e-12)
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
    np.testing.assert_allclose(merged.rows, counted, rtol=1e-3)


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
    np.testing.assert_allclose(merged.log_odds, logit(positives), atol=0.005)
    few = people(60, 2, positive=0.3).merged()
    base = logit(few.rows[1].sum() / few.rows.sum())
    with np.errstate(divide="ignore"):
        raw = np.log(few.rows[1] / few.rows[0])
    assert (np.abs(few.log_odds - base) < np.abs(raw - base)).all()


def test_the_nearest_correlation_that_can_be():
    sound = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    np.testing.assert_allclose(positive(sound), sound, atol=1e-12)
    impossible = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    mended = positive(impossible)
    np.testing.assert_allclose(np.diag(mended), 1.0)
    assert np.linalg.eigvalsh(impossible).min() < 0 < np.linalg.eigvalsh(mended).min()
    assert (np.sign(mended) == np.sign(impossible)).all()
