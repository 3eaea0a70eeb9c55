"""How much caution is due, as block sums over the same people tell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.property.worlds import World, agree, worlds

from radocraft.learning import _blocks
from radocraft.learning._completion import complete
from radocraft.learning._matching import DEFAULT_CAUTION, Ridge, caution_due, fit_matching
from radocraft.learning._relation import largest_correlation, left_over, same_people
from radocraft.sums import Levels


def people(
    seed: int, related: float, *, peers: int = 2, codes: int = 24, rows: int = 20_000, hidden: float = 0.0
) -> World:
    """Peers with one column each, correlated by ``related`` inside blocks.

    ``hidden`` is how far signatures move the first two peers' means apart, in a way no
    sum of effects of single codes explains.
    """
    rng = np.random.default_rng(seed)
    contract = agree([1] * peers, [codes, codes], fixed=False)
    signature = rng.integers(0, codes, (rows, 2))
    label = np.where(rng.random(rows) < 0.3 + 0.4 * signature[:, 0] / codes, 1, -1)
    cause, moved = rng.normal(size=rows), rng.normal(size=(codes, codes))[tuple(signature.T)]
    values = []
    for at in range(peers):
        noise = related**0.5 * cause + (1 - related) ** 0.5 * rng.normal(size=rows)
        value = noise + 0.6 * label + 0.2 * signature[:, 1] + (hidden * moved * (-1) ** at if at < 2 else 0.0)
        values.append(value[:, None])
    return World(contract, signature, label, tuple(values), tuple(rng.permutation(rows) for _ in range(peers)))


def bound(world: World) -> float:
    blocks = world.blocks()
    known = complete(blocks)
    return largest_correlation(blocks, known, Ridge(known, 1e-4).cautious(0.0))


@pytest.mark.parametrize("hidden", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("peers", [2, 3])
@pytest.mark.parametrize("related", [0.0, 0.3, 0.7])
def test_the_bound_is_above_the_truth_whatever_the_fit_misses(related, peers, hidden):
    found = [bound(people(seed, related, peers=peers, hidden=hidden)) for seed in range(8)]
    assert min(found) >= related
    if hidden == 0.0:
        assert max(found) < related + 0.4


def unlike(seed: int, at_home: float, elsewhere: float, positive: float = 0.5, rows: int = 50_000) -> World:
    """Most people in few large blocks, where columns are related otherwise than in the many small ones.

    With ``positive`` below a half it is the label that tells most people from the others.
    """
    rng = np.random.default_rng(seed)
    shares = np.r_[0.8, np.full(49, 0.2 / 49)] if positive == 0.5 else np.full(50, 0.02)
    signature = np.column_stack([rng.choice(50, rows, p=shares), rng.integers(0, 20, rows)])
    label = np.where(rng.random(rows) < positive, 1, -1)
    home = signature[:, 0] == 0 if positive == 0.5 else label < 0
    related, cause = np.where(home, at_home, elsewhere), rng.normal(size=rows)
    values = []
    for sign in (np.ones(rows), np.where(related < 0, -1.0, 1.0)):
        noise = np.sqrt(1 - np.abs(related)) * rng.normal(size=rows)
        values.append((sign * np.sqrt(np.abs(related)) * cause + noise + 0.5 * label)[:, None])
    orders = tuple(rng.permutation(rows) for _ in range(2))
    return World(agree([1, 1], [50, 20], fixed=False), signature, label, tuple(values), orders)


@pytest.mark.parametrize(("elsewhere", "positive"), [(0.0, 0.5), (-0.2, 0.5), (-0.4, 0.05)])
def test_people_count_and_not_blocks(elsewhere, positive):
    for seed in range(3):
        world = unlike(seed, 0.6, elsewhere, positive)
        assert bound(world) > 0.45
        assert fit_matching(world.blocks()).settings["caution"] == DEFAULT_CAUTION


def apart(seed: int, share: float, rows: int = 60_000) -> World:
    """A share of all people have codes of their own, and related columns; the others' are not."""
    rng = np.random.default_rng(seed)
    persons = rng.random(rows) < share
    signature = np.where(persons[:, None], 0, 1 + rng.integers(0, [40, 25], (rows, 2)))
    label, cause = np.where(rng.random(rows) < 0.5, 1, -1), rng.normal(size=rows)
    related = np.where(persons, 0.8, 0.0)
    noise = rng.normal(size=(2, rows))
    values = tuple((np.sqrt(related) * cause + np.sqrt(1 - related) * own + 0.5 * label)[:, None] for own in noise)
    orders = tuple(rng.permutation(rows) for _ in range(2))
    return World(agree([1, 1], [41, 26], fixed=False), signature, label, values, orders)


def test_people_whom_the_fit_takes_up_are_not_forgotten():
    """Nothing is left over of a block with codes of its own."""
    assert fit_matching(apart(0, 0.9).blocks()).settings["caution"] == DEFAULT_CAUTION
    few, none = bound(apart(0, 0.03)), bound(apart(0, 0.0))
    assert none + 0.02 < few < 1.0


@pytest.mark.parametrize("related", [0.0, 0.5])
@pytest.mark.parametrize("rows", [6_000, 20_000])
def test_so_it_is_behind_a_row_limit(related, rows):
    for seed in range(3):
        blocks = people(seed, related, rows=rows).gated(10)
        known = complete(blocks)
        assert largest_correlation(blocks, known, Ridge(known, 1e-4).cautious(0.0)) >= related


def test_sums_that_scatter_less_than_rows_can_tell_nothing():
    """As if a gate had put means in place of some sums."""
    blocks = people(1, 0.0).blocks()
    known = complete(blocks)
    theta = Ridge(known, 1e-4).cautious(0.0)
    assert largest_correlation(blocks, known, theta) < 1.0
    loud = replace(known, unexplained=(2.0 * known.unexplained[0], known.unexplained[1]))
    assert largest_correlation(blocks, loud, theta) == 1.0


def test_sums_alone_would_have_told_a_lie():
    """What signatures do to both peers in opposite ways looks like the opposite of a relation."""
    world = people(0, 0.3, hidden=0.5)
    blocks = world.blocks()
    known = complete(blocks)
    (left,) = left_over(blocks, known, Ridge(known, 1e-4).cautious(0.0)[:, None])
    assert left.products[0, 1] < 0
    assert bound(world) > 0.3


def test_less_caution_where_many_blocks_show_no_relation():
    fit = fit_matching(people(1, 0.0, codes=40, rows=40_000).blocks())
    assert fit.settings["caution"] < DEFAULT_CAUTION
    assert fit.notes[0].startswith(f"used caution {fit.settings['caution']} instead of 0.25")
    asked = fit_matching(people(1, 0.0, codes=40, rows=40_000).blocks(), 0.0)
    assert asked.settings["caution"] == 0.0
    assert asked.notes == ()


@pytest.mark.parametrize(
    "world",
    [people(2, 0.5), people(2, 0.0, codes=2), people(2, 0.0, rows=200), people(2, 0.3, hidden=0.5)],
    ids=["related", "few blocks", "few rows", "badly fitted"],
)
def test_the_usual_caution_where_they_do_not(world):
    fit = fit_matching(world.blocks())
    assert fit.settings["caution"] == DEFAULT_CAUTION
    assert fit.notes == ()


def test_the_usual_caution_where_peers_may_see_different_people():
    world = people(1, 0.0, codes=40, rows=40_000)
    assert same_people(world.blocks())
    fewer = replace(world, held=(world.held[0], world.held[1][1:])).blocks()
    assert not same_people(fewer)
    assert fit_matching(fewer).settings["caution"] == DEFAULT_CAUTION
    noisy = world.blocks()
    noisy = replace(noisy, cells=(replace(noisy.cells[0], levels=Levels(sums=1.0)), noisy.cells[1]))
    assert not same_people(noisy)


def test_equal_numbers_by_design_tell_nothing():
    signature = np.repeat(np.arange(4), 10)[:, None]
    label = np.tile([1, -1], 20)
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(40, 1)), rng.normal(size=(40, 1)))
    world = World(agree([1, 1], [4]), signature, label, values, (np.arange(40), np.arange(40)))
    assert not same_people(world.blocks())


@given(world=worlds(rows=(30, 60)))
@settings(max_examples=25, deadline=None)
def test_what_is_left_over_is_what_least_squares_leaves(world):
    blocks = world.blocks()
    known = complete(blocks)
    theta = Ridge(known, 0.1).cautious(0.0)
    shared = known.layout.shared.stop
    stacked = np.column_stack([np.ones((len(blocks), int(known.layout.intercept))), blocks.shared_means])
    label = stacked @ np.linalg.lstsq(known.between[:shared, :shared], known.r[:shared], rcond=1e-10)[0]
    scores = np.column_stack([blocks.means(at) @ theta[where] for at, where in enumerate(known.layout.private)])
    products, people, squares = np.zeros((scores.shape[1],) * 2), 0.0, 0.0
    for kind in np.unique(blocks.labels):
        some = blocks.labels == kind
        rows = blocks.weights[some]
        root = np.sqrt(rows)[:, None]
        columns = root * np.column_stack([np.ones(some.sum()), blocks.shared_means[some], label[some] ** 2])
        kept = np.eye(some.sum()) - columns @ np.linalg.pinv(columns, rcond=1e-5)
        tell = np.diag(kept) > 0.1
        rest, left, more = (kept @ (root * scores[some]))[tell], np.diag(kept)[tell], rows[tell] - 1
        products += rest.T @ ((more / left)[:, None] * rest)
        people += float(more.sum())
        squares += float((more / left) ** 2 @ left)
    (found,) = left_over(blocks, known, theta[:, None])
    assert (found.people, found.squares) == pytest.approx((people, squares), rel=1e-5)
    size = float(np.trace(scores.T @ (blocks.weights[:, None] ** 2 * scores)))
    np.testing.assert_allclose(found.products, products, atol=1e-6 * size)


def test_pieces_tell_what_all_blocks_do(monkeypatch):
    world = people(3, 0.2)
    whole = bound(world)
    monkeypatch.setattr(_blocks, "PIECE", 17)
    assert bound(world) == pytest.approx(whole, rel=1e-9)


def test_caution_is_due_for_every_class_and_with_a_label_nobody_doubts():
    """One number for all classes: what the class in most doubt needs."""
    blocks = people(1, 0.0, codes=40, rows=40_000).blocks()
    problem = Ridge(complete(blocks), 1e-3)
    due = caution_due(problem, blocks)
    twice = replace(problem.known, r=np.column_stack([problem.known.r, -problem.known.r]))
    assert caution_due(Ridge(twice, 1e-3), blocks) == pytest.approx(due, abs=0.011)
    nothing = np.zeros_like(problem.known.r)
    with_nothing = np.column_stack([problem.cautious(0.0), nothing])
    both = replace(twice, r=np.column_stack([problem.known.r, nothing]))
    assert largest_correlation(blocks, both, with_nothing) == pytest.approx(
        largest_correlation(blocks, problem.known, problem.cautious(0.0))
    )
    assert largest_correlation(blocks, problem.known, nothing) == 1.0
