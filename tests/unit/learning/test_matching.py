"""The solver of expected matching, and how its strength is chosen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.property.worlds import World, agree, random_values, worlds

from radocraft.errors import LearnError
from radocraft.learning._completion import complete, positive
from radocraft.learning._matching import ALPHAS, Ridge, Spectrum, fit_matching, generalised_cross_validation

SEEDS = st.integers(0, 2**32 - 1)


def singletons(seed: int, rows: int, widths: list[int], **agreed) -> World:
    """Every row its own block, so that the joined table is known."""
    rng = np.random.default_rng(seed)
    contract = agree(widths, [rows], fixed=False, **agreed)
    codes, labels = np.arange(rows)[:, None], np.where(np.arange(rows) % 3, 1, -1)
    values = random_values(rng, contract, codes, labels)
    return World(contract, codes, labels, values, tuple(rng.permutation(rows) for _ in widths))


def scores_from_the_hat_matrix(world: World) -> list[float]:
    """Mean squared residual over the squared share of freedom left, from I - H itself.

    With K = X X^T / m over centred columns, I - H = alpha (K + alpha I)^-1 C, where C takes the mean
    away (and is the identity without a constant).
    """
    examples, rows = world.joined(), len(world.labels)
    centring = np.eye(rows) - (1.0 / rows if world.contract.intercept else 0.0)
    centred = centring @ examples
    kernel = centred @ centred.T / rows
    scores = []
    for alpha in ALPHAS:
        rest = alpha * np.linalg.solve(kernel + alpha * np.eye(rows), centring)
        scores.append(np.mean((rest @ world.labels) ** 2) / (np.trace(rest) / rows) ** 2)
    return scores


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("encoding", ["one-hot", "ordinal"])
@pytest.mark.parametrize(("rows", "widths"), [(30, [2, 3]), (12, [2, 2, 2]), (12, [20, 30]), (25, [120, 80])])
def test_generalised_cross_validation_equals_its_definition_on_the_joined_table(rows, widths, encoding, intercept):
    world = singletons(rows, rows, widths, encoding=encoding, intercept=intercept)
    tuning = generalised_cross_validation(complete(world.blocks()))
    scores = scores_from_the_hat_matrix(world)
    np.testing.assert_allclose(tuning.scores, scores, rtol=1e-9)
    assert tuning.chosen == ALPHAS[int(np.argmin(scores))]
    assert tuning.candidates == ALPHAS


def test_strengths_that_use_up_all_rows_are_no_candidates():
    """Noise gives every direction some variance, also where there are more of them than rows."""
    known = complete(singletons(4, 9, [20, 30]).blocks())
    size = known.layout.size
    noisy = replace(known, explained=known.explained + known.total * np.eye(size))
    tuning = generalised_cross_validation(noisy)
    assert np.isfinite(tuning.scores).all()
    assert tuning.chosen == tuning.candidates[int(np.argmin(tuning.scores))]
    spectrum = Spectrum.of(noisy)
    assert tuning.candidates == tuple(alpha for alpha in ALPHAS if spectrum.freedom(alpha) < known.total)
    assert 0 < len(tuning.candidates) < len(ALPHAS)
    with pytest.raises(LearnError, match="too few for so many columns"):
        generalised_cross_validation(replace(noisy, explained=1e6 * noisy.explained))


@given(world=worlds(rows=(10, 40)), caution=st.sampled_from([0.25, 0.5, 1.0]), alpha=st.sampled_from([0.01, 0.3]))
@settings(max_examples=25)
def test_the_cautious_solution_is_as_good_as_a_general_optimiser_finds(world, caution, alpha):
    problem = Ridge(complete(world.blocks()), alpha)
    theta = problem.cautious(caution)
    found = problem.loss(theta, caution)
    rng = np.random.default_rng(0)
    for start in (theta, np.zeros_like(theta), rng.normal(size=len(theta))):
        other = minimize(problem.loss, start, args=(caution,), method="L-BFGS-B", options={"maxiter": 500})
        assert found <= other.fun + 1e-6 * abs(other.fun)


@pytest.mark.parametrize("caution", [-0.1, 1.1, float("nan")])
def test_caution_lies_between_0_and_1(caution):
    with pytest.raises(LearnError, match="between 0 and 1"):
        fit_matching(singletons(0, 6, [1, 1]).blocks(), caution=caution)


@pytest.mark.parametrize("caution", [0.0, 0.25, 1.0])
def test_more_columns_than_rows_work(caution):
    world = singletons(4, 9, [20, 30])
    fit = fit_matching(world.blocks(), caution=caution)
    assert np.isfinite(fit.theta).all()
    assert len(fit.theta) == 1 + 11 + 50
    assert 0.0 <= fit.losses["expected"] <= fit.losses["guaranteed"] < 1.0


def test_a_constant_column_gets_weight_0():
    world = singletons(5, 12, [2, 1], encoding="ordinal")
    world.values[0][:, 1] = 1e8 + 0.1
    fit = fit_matching(world.blocks())
    constant = fit.layout.private[0].start + 1
    assert abs(fit.theta[constant]) < 1e-12
    assert np.abs(fit.theta).max() > 1e-3


def test_peers_alone_and_the_blend_are_reported():
    world = singletons(6, 15, [2, 3])
    fit = fit_matching(world.blocks(), caution=0.5)
    assert fit.method == "matching"
    assert list(fit.peer_losses) == ["p0", "p1"]
    assert fit.settings["caution"] == 0.5
    assert fit.settings["alpha"] == fit.tuning.chosen
    assert fit_matching(world.blocks(), alpha=0.0).tuning is None


def test_rounding_below_the_floor_is_cut_off():
    matrix = np.diag([2.0, 1e-14, -1e-14])
    np.testing.assert_array_equal(np.linalg.eigvalsh(positive(matrix, 1e-12)), [0.0, 0.0, 2.0])
    assert positive(np.empty((0, 0)), 0.0).shape == (0, 0)
