"""The head: Bayes' rule where peers are independent inside label and signature, and what it does where they are not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtri
from scipy.stats import norm
from sklearn.metrics import log_loss, roc_auc_score
from tests.unit.learning.scored import SIGNATURES, agreed, people

from radocraft import Policy
from radocraft.arrays import Floats
from radocraft.learning._correlation import Correlation, correlate
from radocraft.learning._head import FIT, Head, fit_head
from radocraft.learning._outlook import Quality, Trials, own_head
from radocraft.learning._virtual import Merged, virtual_rows
from radocraft.sums import BINS, ScoreCells

ROWS = 10_000_000


class Normal(ScoreCells):
    """Scores that are normal inside every cell, with means and deviations as they are."""

    def __init__(self, peer: str, apart: float, odds: Floats, positive: Floats) -> None:
        """Log-odds of values a distance apart; the log-odds of signatures, and their rows by label."""
        codes = np.tile(np.arange(SIGNATURES), 2)[:, None]
        labels = np.repeat([-1, 1], SIGNATURES)
        empty = np.zeros(2 * SIGNATURES)
        histogram, groups = np.zeros((2, BINS)), (np.zeros(0), np.zeros(0))
        means, deviations = apart**2 / 2 * labels + np.tile(odds, 2), np.full(2 * SIGNATURES, apart)
        super().__init__(peer, codes, labels, positive.ravel(), empty, empty, positive, histogram, histogram, groups)
        below = norm.cdf((self.margin_edges[:, None] - means) / deviations) * positive.ravel()
        self.__dict__["margins"] = np.diff(below, axis=0).T.reshape(2, SIGNATURES, BINS).sum(axis=1)
        self.__dict__.update(means=means, deviations=deviations)

    def quantile(self, label: int, share: Floats) -> Floats:
        """Of a normal."""
        return np.asarray(ndtri(share))


def world(aparts: list[float], positive: float = 0.5, slope: float = 0.3) -> Merged:
    """Peers that know so much each, where signatures have log-odds ``slope`` apart."""
    odds = logit(positive) + slope * (np.arange(SIGNATURES) - (SIGNATURES - 1) / 2)
    rows = ROWS / SIGNATURES * np.array([1 - expit(odds), expit(odds)])
    return Merged(agreed(len(aparts)), tuple(Normal(f"p{at}", d, odds, rows) for at, d in enumerate(aparts)))


def of(related: float, peers: int, error: float = 0.0) -> Correlation:
    """The same correlation of all peers."""
    off = 1 - np.eye(peers)
    return Correlation(np.eye(peers) + related * off, error * off, True)


def standard_errors(merged: Merged, correlation: Correlation, head: Head) -> Floats:
    """Of intercept and weights, from as many rows as are drawn (Fisher's information)."""
    features = virtual_rows(merged, correlation.mean, FIT).features
    design = np.column_stack([np.ones(len(features)), features])
    share = expit(head.log_odds(features))
    return np.asarray(np.diag(np.linalg.inv((design.T * (share * (1 - share))) @ design)) ** 0.5)


@given(
    aparts=st.lists(st.floats(0.6, 1.3), min_size=1, max_size=5),
    positive=st.floats(0.1, 0.9),
    slope=st.sampled_from([0.3, -0.4]),
)
@settings(max_examples=25)
def test_weights_are_those_of_bayes_where_peers_are_independent(aparts, positive, slope):
    """1 for every score, 1 - p for the signature: whatever p, the base rate and how much each peer knows."""
    merged, independent = world(aparts, positive, slope), of(0.0, len(aparts))
    head = fit_head(merged, independent)
    bayes = np.array([0.0, *(1.0 for _ in aparts), 1.0 - len(aparts)])
    off = np.abs(np.array([head.intercept, *head.weights]) - bayes)
    assert (off < 4 * standard_errors(merged, independent, head)).all()


@pytest.mark.parametrize("related", [-0.2, 0.3, 0.7])
@pytest.mark.parametrize("peers", [2, 4])
def test_what_several_peers_know_alike_counts_once(peers: int, related: float) -> None:
    """Equal peers: log-odds of correlated normals are the sum of scores over 1 + (p - 1) r."""
    merged, correlation = world([1.2] * peers, 0.3, slope=0.0), of(related, peers)
    head = fit_head(merged, correlation)
    bayes = 1 / (1 + (peers - 1) * related)
    np.testing.assert_allclose(head.weights[:-1], bayes, atol=4 * 0.03 * bayes)
    log_odds = head.log_odds(virtual_rows(merged, correlation.mean, 7).features)
    labels = virtual_rows(merged, correlation.mean, 7).labels
    assert np.mean(expit(log_odds)) == pytest.approx(labels.mean(), abs=0.005), "slope and intercept are calibrated"


@pytest.mark.parametrize("related", [-0.5, 0.4])
def test_the_direction_is_half_that_of_independence(related: float) -> None:
    """What is wrong with a correlation is only half learned: each direction adds up to 1, and their mean counts."""
    aparts = np.array([1.3, 0.6])
    merged, correlation = world([*aparts], slope=0.0), of(related, 2)
    bayes = np.linalg.solve(correlation.mean, aparts) / aparts
    both = bayes / np.abs(bayes).sum() + 0.5
    weights = fit_head(merged, correlation).weights
    assert weights[0] / weights[1] == pytest.approx(both[0] / both[1], rel=0.08)
    assert abs(bayes[0] / bayes[1] / (both[0] / both[1]) - 1) > 0.2, "neither of them is this"
    assert abs(both[0] / both[1] - 1) > 0.1


def test_weights_of_scores_are_never_negative() -> None:
    """Where one peer knows less of the same, Bayes' rule would take it away from the other."""
    merged, correlation = world([1.3, 0.5], slope=0.0), of(0.9, 2)
    assert np.linalg.solve(correlation.mean, [1.3, 0.5])[1] < 0
    head = fit_head(merged, correlation)
    assert head.weights[0] > 0
    assert head.weights[1] >= 0


def test_a_head_over_some_peers_is_bayes_rule_of_those() -> None:
    merged, independent = world([1.0, 0.8, 1.2], 0.3), of(0.0, 3)
    for places in ((), (1,), (0, 2)):
        head = fit_head(merged, independent, places)
        bayes = [1.0] * len(places) + [1.0 - len(places)]
        assert head.weights == pytest.approx(bayes, abs=0.1)
        chosen = virtual_rows(merged, independent.mean, 3).features
        swapped = chosen.copy()
        swapped[:, [at for at in range(3) if at not in places]] = 99.0
        np.testing.assert_array_equal(head.log_odds(chosen), head.log_odds(swapped))


@pytest.mark.parametrize("aparts", [[1.0], [1.0, 1.0], [0.8, 1.2, 1.0]])
def test_what_to_expect_is_what_two_normals_have(aparts: list[float]) -> None:
    merged, peers = world(aparts, slope=0.0), len(aparts)
    head = fit_head(merged, of(0.0, peers))
    trials = Trials(merged, of(0.0, peers, 0.1), (head, *map(own_head, range(peers))))
    (error, area, loss), *alone = trials.reached(np.eye(peers))
    whole = np.sqrt(np.sum(np.square(aparts)))
    assert error == pytest.approx(norm.cdf(-whole / 2), abs=0.01)
    assert area == pytest.approx(norm.cdf(whole / 2**0.5), abs=0.01)
    for apart, own in zip(aparts, alone, strict=True):
        assert own[0] == pytest.approx(norm.cdf(-apart / 2), abs=0.005)
    if peers > 1:  # more of the same is worse
        less, more = (trials.reached(of(related, peers).mean)[0] for related in (-0.2, 0.2))
        assert less[2] < loss < more[2]
        assert less[1] > area > more[1]


@pytest.mark.parametrize("policy", [Policy.exact(), Policy()], ids=["exact", "noisy"])
@pytest.mark.parametrize("related", [0.0, 0.5])
def test_through_the_gate_it_is_nearly_as_good_as_bayes_rule(policy: Policy, related: float) -> None:
    """Bins, clips, noise and a correlation that is measured: together less than .004 of log loss on new people."""
    known = people(20_000, 1, peers=3, positive=0.3, related=related, apart=1.2, key=True)
    new = people(100_000, 2, peers=3, positive=0.3, related=related, apart=1.2, key=True)
    merged = known.merged(policy)
    found = fit_head(merged, correlate(merged))
    log_odds = found.log_odds(np.column_stack([new.scores, merged.log_odds[new.signatures]]))
    inside = (new.scores - new.log_odds[:, None]).sum(axis=1) / (1 + 2 * related)
    best = Quality.of(new.log_odds + inside, new.labels)
    reached = Quality.of(log_odds, new.labels)
    assert best.log_loss < reached.log_loss + 0.0005
    assert reached.log_loss < best.log_loss + 0.004
    assert reached.error < best.error + 0.003
    alone = [Quality.of(column, new.labels) for column in new.scores.T]
    assert reached.log_loss < min(one.log_loss for one in alone) - 0.01
    error, _, loss = Trials(merged, correlate(merged), (found,)).value(np.ones(1))
    assert error == pytest.approx(reached.error, abs=0.01)
    assert loss == pytest.approx(reached.log_loss, abs=0.02)


@given(st.integers(0, 2**32 - 1), st.integers(2, 200))
def test_quality_is_scikit_learns(seed, rows):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([[0, 1], rng.integers(0, 2, rows - 2)])
    log_odds = np.round(3 * rng.normal(size=rows), 1)
    found = Quality.of(log_odds, labels)
    assert found.log_loss == pytest.approx(log_loss(labels, expit(log_odds)))
    assert found.auc == pytest.approx(roc_auc_score(labels, log_odds))
    assert found.error == np.mean((log_odds > 0) != labels)


def test_more_peers_never_expect_to_do_worse() -> None:
    merged, independent = world([0.7, 0.9, 1.1, 1.3]), of(0.0, 4)
    rows = virtual_rows(merged, independent.mean, 5)
    sets = [tuple(range(count)) for count in range(5)]
    losses = [
        Quality.of(fit_head(merged, independent, places).log_odds(rows.features), rows.labels).log_loss
        for places in sets
    ]
    assert all(later < earlier for earlier, later in pairwise(losses))
