"""Expected matching against every matching there is, enumerated.

Which matchings: those of the joined table that the releases leave possible. In
it a person has one signature, so only rows with equal signature and label can
be one person. Rolling up hides signatures from the learner, not from the table:
inside a rolled-up block the possible matchings still pair equal signatures only.
Then what the shared columns explain of two peers' columns is known and no
assumption: write each peer's score, centred by block, as its regression on the
shared columns (the same columns for all peers) and a rest at right angles to
them; the products of the regressions follow from released moments, and only the
products of the rests are hidden, bounded by Cauchy-Schwarz.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.worlds import World, agree, random_values, ridge, ridge_loss, tiny_worlds, worlds

from radocraft.learning._completion import complete
from radocraft.learning._matching import Ridge, fit_matching

ALPHAS = st.sampled_from([1e-3, 0.1, 1.0])
CAUTIONS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
LIMITS = st.lists(st.integers(1, 4), min_size=1, max_size=3)
SEEDS = st.integers(0, 2**32 - 1)


def penalty_of(world: World, alpha: float, size: int) -> np.ndarray:
    penalty = np.full(size, alpha)
    penalty[: int(world.contract.intercept)] = 0.0
    return penalty


def own_losses(world: World, alpha: float) -> list[float]:
    """What each peer reaches with its own table."""
    losses = []
    for at in range(len(world.values)):
        examples = np.hstack([world.shared(), world.private(at)])
        penalty = penalty_of(world, alpha, examples.shape[1])
        losses.append(ridge_loss(examples, world.labels, ridge(examples, world.labels, penalty), penalty))
    return losses


@given(world=tiny_worlds(), alpha=ALPHAS)
def test_without_caution_it_is_ridge_under_the_mean_over_all_matchings(world, alpha):
    known = complete(world.blocks())
    everything = list(world.matchings())
    mean = np.mean([examples.T @ examples for examples in everything], axis=0)
    size = np.abs(mean).max()
    np.testing.assert_allclose(known.expected(), mean, rtol=1e-9, atol=1e-9 * size)
    for examples in everything[:: max(len(everything) // 20, 1)]:
        np.testing.assert_allclose(known.r, examples.T @ world.labels, atol=1e-9 * size)
    fit = fit_matching(world.blocks(), caution=0.0, alpha=alpha)
    penalty = penalty_of(world, alpha, len(mean))
    system = mean + len(world.labels) * np.diag(penalty)
    np.testing.assert_allclose(system @ fit.theta, known.r, rtol=1e-7, atol=1e-7 * size)
    losses = [ridge_loss(examples, world.labels, fit.theta, penalty) for examples in everything]
    np.testing.assert_allclose(fit.losses["expected"], np.mean(losses), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("missing", [False, True])
@given(data=st.data(), how=st.tuples(ALPHAS, CAUTIONS), min_rows=LIMITS, seed=SEEDS)
def test_the_guaranteed_loss_holds_for_every_matching_also_in_rolled_up_blocks(missing, data, how, min_rows, seed):
    world, (alpha, caution) = data.draw(tiny_worlds(missing=missing)), how
    blocks = world.blocks(*min_rows)
    fit = fit_matching(blocks, caution=caution, alpha=alpha)
    penalty = penalty_of(world, alpha, len(fit.theta))
    problem = Ridge(complete(blocks), alpha)
    everything = np.stack(list(world.matchings()))
    others = np.random.default_rng(seed).normal(size=(8, len(fit.theta)))
    for theta, guaranteed in [(fit.theta, fit.losses["guaranteed"]), *((t, problem.loss(t, 1.0)) for t in others)]:
        losses = np.mean((1.0 - world.labels * (everything @ theta)) ** 2, axis=1) + penalty @ theta**2
        assert guaranteed >= losses.max() * (1 - 1e-9)


@given(world=tiny_worlds(missing=True), alpha=ALPHAS, min_rows=LIMITS)
def test_with_full_caution_the_guarantee_is_no_worse_than_the_best_peer(world, alpha, min_rows):
    fit = fit_matching(world.blocks(*min_rows), caution=1.0, alpha=alpha)
    own = own_losses(world, alpha)
    np.testing.assert_allclose(list(fit.peer_losses.values()), own, rtol=1e-7, atol=1e-9)
    assert fit.losses["guaranteed"] <= min(own) * (1 + 1e-9)


@given(data=st.data(), setting=st.sampled_from(["VP", "G"]), caution=CAUTIONS, min_rows=st.integers(1, 8))
def test_guarantees_stand_in_order_whatever_the_setting(data, setting, caution, min_rows):
    world = data.draw(worlds(setting, rows=(8, 60)))
    fit = fit_matching(world.blocks(min_rows), caution=caution)
    assert fit.losses["expected"] <= fit.losses["guaranteed"] * (1 + 1e-12)
    full = fit_matching(world.blocks(min_rows), caution=1.0, alpha=float(fit.settings["alpha"]))
    assert full.losses["guaranteed"] <= min(full.peer_losses.values()) * (1 + 1e-9)
    assert full.losses["guaranteed"] <= fit.losses["guaranteed"] * (1 + 1e-7)


@given(world=worlds("VP", missing=True, rows=(6, 60)), min_rows=st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_what_one_peer_knows_alone_is_exact_at_every_level_of_rolling_up(world, min_rows):
    known = complete(world.blocks(*min_rows))
    layout, examples = known.layout, world.joined()
    true, gram = examples.T @ examples, known.expected()
    size = np.abs(true).max()
    for private in layout.private:
        own = np.r_[0 : layout.shared.stop, private.start : private.stop]
        np.testing.assert_allclose(gram[np.ix_(own, own)], true[np.ix_(own, own)], rtol=1e-7, atol=1e-8 * size)
    np.testing.assert_allclose(known.r, examples.T @ world.labels, atol=1e-9 * size)


@given(seed=SEEDS, rows=st.integers(20, 60), min_rows=st.integers(1, 20))
@settings(max_examples=20)
def test_rolled_up_blocks_lose_nothing_when_the_shared_columns_explain_all_that_peers_have_in_common(
    seed, rows, min_rows
):
    """Private columns that are linear in the shared ones: the second moment is that of the joined table."""
    rng = np.random.default_rng(seed)
    contract = agree([2, 2], [3, 2])
    codes = np.column_stack([rng.integers(0, 3, rows), rng.integers(0, 2, rows)])
    labels = np.where(np.arange(rows) % 2, 1, -1)
    shared = contract.encode_shared(codes)
    values = tuple(shared @ rng.normal(size=(shared.shape[1], 2)) for _ in range(2))
    world = World(contract, codes, labels, values, tuple(rng.permutation(rows) for _ in values))
    known = complete(world.blocks(min_rows))
    examples = world.joined()
    true = examples.T @ examples
    np.testing.assert_allclose(known.expected(), true, atol=1e-8 * np.abs(true).max())


def test_the_guaranteed_loss_of_gated_parts_does_not_mislead_about_the_joined_table():
    """The gate hides rare codes, so the bound is of the table as released.

    These tables are as small as they get and their columns follow the hidden
    codes; if hidden codes told the label, the true loss would be half as much
    again as the bound.
    """
    over = []
    rng = np.random.default_rng(0)
    contract = agree([2, 2], [3, 3])
    for _ in range(20):
        rows = int(rng.integers(40, 200))
        codes = np.column_stack([rng.choice(5, rows, p=[0.5, 0.3, 0.1, 0.07, 0.03]) for _ in range(2)])
        labels = rng.choice([-1, 1], rows)
        values = random_values(rng, contract, codes, labels)
        world = World(contract, codes, labels, values, tuple(rng.permutation(rows) for _ in values))
        fit = fit_matching(world.gated(10), caution=1.0)
        penalty = penalty_of(world, float(fit.settings["alpha"]), len(fit.theta))
        over.append(ridge_loss(world.joined(), labels, fit.theta, penalty) / fit.losses["guaranteed"] - 1)
    assert np.mean(over) < 0.1
