"""What is told of a model over scores, against what is true of new people; and what is never told."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.learning.scored import People, people

from radocraft import Policy
from radocraft.learning._correlation import Correlation, correlate
from radocraft.learning._head import Head, fit_head
from radocraft.learning._metrics import auc
from radocraft.learning._outlook import FEWEST_ROWS, Quality, Trials, influences, outlook_of, own_head, preferred
from radocraft.model import ScoreOutlook

WORLDS = 12


def told(world: People, policy: Policy | None = None, seed: int = 0) -> tuple[ScoreOutlook, Quality]:
    """What is told of a model through the gate, and how good it is on many new people."""
    merged = world.merged(policy or Policy(), seed)
    correlation = correlate(merged)
    head = fit_head(merged, correlation)
    places = tuple(range(len(merged.peers)))
    heads = [fit_head(merged, correlation, (*places[:at], *places[at + 1 :])) for at in places]
    found = outlook_of(merged, [*heads, head], correlation)
    assert found is not None
    rows = np.column_stack([world.scores, merged.log_odds[world.signatures]])
    return found, Quality.of(head.log_odds(rows), world.labels)


def test_intervals_hold_what_is_true() -> None:
    """Through the default gate, on rows of other people: at least 88 in 100 times."""
    held = []
    for seed in range(WORLDS):
        related, positive = (-0.3, 0.0, 0.3, 0.6)[seed % 4], (0.1, 0.3)[seed % 2]
        known = people(3000, seed, positive=positive, related=related, key=True)
        merged = known.merged(Policy(), seed)
        correlation = correlate(merged)
        head = fit_head(merged, correlation)
        found = outlook_of(merged, [fit_head(merged, correlation, ()), *map(own_head, (0, 1)), head], correlation)
        assert found is not None
        new = people(20_000, seed + 1000, positive=positive, related=related)
        true = Quality.of(head.log_odds(np.column_stack([new.scores, merged.log_odds[new.signatures]])), new.labels)
        held.append([true.error in found.error, true.auc in found.auc, true.log_loss in found.log_loss])
    assert (np.mean(held, axis=0) >= 0.88).all(), np.mean(held, axis=0)


def test_how_good_a_peer_is_alone_is_what_it_counted() -> None:
    """Error, AUC and log loss of each peer by itself are those of its own rows, within the bins' width.

    Signatures are hidden from the cells, so without these counts means and residuals by cell say otherwise.
    """
    world = people(20_000, 1, peers=3, positive=0.1, related=0.3, key=True)
    world = replace(world, scores=np.clip(world.scores, -6, 6))
    found, _ = told(world, Policy(mode="exact", gives_away_rows=True, min_rows=10, signatures="labels-only"))
    for at, alone in enumerate(found.alone.values()):
        own = Quality.of(world.scores[:, at], world.labels)
        assert alone.error.value == pytest.approx(own.error, abs=0.002)
        assert alone.auc.value == pytest.approx(own.auc, abs=0.003)
        assert alone.log_loss.value == pytest.approx(own.log_loss, abs=0.003)


def test_influences_have_the_means_and_the_variances_of_what_they_are_of() -> None:
    rng, areas, errors = np.random.default_rng(0), [], []
    for _ in range(300):
        labels = (rng.random(400) < 0.3).astype(int)
        log_odds = 1.2 * labels - 1 + rng.normal(size=400)
        each = influences(log_odds, labels)
        quality = Quality.of(log_odds, labels)
        assert each.mean(axis=0) == pytest.approx([quality.error, quality.auc, quality.log_loss])
        areas.append(auc(log_odds, labels))
        errors.append(each[:, 1].std() / 20)
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=4 / 600**0.5)


def test_of_fewer_than_300_rows_nothing_is_told() -> None:
    merged = people(FEWEST_ROWS - 80, 0).merged()
    correlation = correlate(merged)
    assert outlook_of(merged, [fit_head(merged, correlation)], correlation) is None


@pytest.mark.parametrize("rows", [330, 2000])
def test_what_tells_nothing_is_told_as_chance(rows: int) -> None:
    """Never worse than the base rate or a coin, and said."""
    world = people(rows, 0, positive=0.3, apart=0.0, key=True)
    noise = 0.1 * np.random.default_rng(1).normal(size=world.scores.shape)
    base = float(np.log(world.labels.mean() / (1 - world.labels.mean())))
    found, _ = told(replace(world, scores=noise + base, signatures=np.zeros_like(world.signatures)))
    assert found.error.high <= found.base_rate
    assert found.auc.low == 0.5
    assert found.log_loss.high <= found.base_log_loss
    assert "cannot be told from chance" in found.sentence
    assert "cannot be told from what left" in found.worth


def test_what_is_nearly_always_right_is_told_as_below_something() -> None:
    world = people(600, 2, apart=6.0)
    found, true = told(replace(world, scores=np.clip(world.scores, -6, 6)))
    assert true.error < found.error.high
    assert "Expect an error of below" in found.sentence
    assert "an AUC of above" in found.sentence


def test_without_a_key_it_goes_from_unrelated_to_as_related_as_can_be() -> None:
    """The middle is told, never the rosy end; what is not measured leaves more open than what is."""
    world = people(4000, 3, related=0.3)
    found, _ = told(world)
    merged = world.merged(Policy())
    correlation = correlate(merged)
    head = fit_head(merged, correlation)
    trials = Trials(merged, correlation, (head,))
    same = np.array([[1.0, 0.97], [0.97, 1.0]])
    for measure, rosy, worst in zip(
        (found.error, found.auc, found.log_loss), trials.reached(np.eye(2))[0], trials.reached(same)[0], strict=True
    ):
        assert measure.value == pytest.approx((rosy + worst) / 2, rel=0.02)
        assert rosy in measure
        assert worst in measure
    measured, _ = told(people(4000, 3, related=0.3, key=True))
    assert f"an error of {measured.error.value:.1%} (" in measured.sentence
    assert f"an error of {found.error.low:.1%} to" in found.sentence
    assert measured.log_loss.parts["relation"] < found.log_loss.parts["relation"] / 2


@pytest.mark.parametrize("peers", [2, 3, 4, 7])
def test_all_pairs_are_moved_and_count_as_much_as_one_by_one(peers: int) -> None:
    """Directions are at right angles, so squares over them add up to those of single pairs."""
    merged = people(1500, 1, peers=peers).merged()
    trials = Trials(merged, Correlation(np.eye(peers), 0.1 * np.ones((peers, peers)), True), (own_head(0),))
    low = np.tril_indices(peers, -1)
    signs = np.array([matrix[low] for matrix in trials._directions()])
    slopes = np.random.default_rng(0).normal(size=len(low[0]))
    tolerance = 0.0 if peers < 7 else 1.0
    assert np.mean((signs @ slopes) ** 2) == pytest.approx(np.sum(slopes**2), rel=1e-9 + tolerance)


def test_what_promises_more_than_fitted_weights_takes_their_place() -> None:
    merged = people(4000, 0, key=True).merged(Policy())
    correlation = correlate(merged)
    average = Head((0, 1), 0.0, np.array([0.5, 0.5, 0.0]))
    assert preferred(merged, correlation, fit_head(merged, correlation), average) is None
    wrong = Head((0, 1), 0.0, np.array([0.1, 0.0, 0.0]))
    better = preferred(merged, correlation, wrong, average)
    assert better is not None
    assert better.kind == "average"
    assert "the model is the mean of the peers' log-odds: its expected log loss is" in better.note(merged.names)
    alone = preferred(merged, correlation, wrong, wrong)
    assert alone is not None
    assert alone.kind == "best peer"
    assert alone.note(merged.names).startswith(("the model is p0 alone", "the model is p1 alone"))
