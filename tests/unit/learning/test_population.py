"""Error, AUC and ROC without one joined row, where the assumption holds and where rows flatter the fit."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm
from tests.unit.noisy import noisy_part

from radocraft import Contract, Part, Policy, learn
from radocraft.learning._blocks import merge
from radocraft.learning._matching import fit_matching
from radocraft.learning._metrics import auc
from radocraft.learning._population import Population
from radocraft.model._fields import Estimate

TWO_NORMALS = Contract.parse(
    'name = "n"\nlabel = { column = "y", positive = 1, negative = 0 }\n'
    'peers.a.features = { u = "numeric" }\npeers.b.features = { v = "numeric" }'
)


def two_normals(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    u, v = rng.normal(size=(2, rows)) + labels
    return pa.table({"y": labels, "u": u, "v": v})


def parts_of(rows: int) -> list[Part]:
    joined = two_normals(rows)
    order = np.random.default_rng(1).permutation(rows)
    tables = {"a": joined.select(["y", "u"]), "b": joined.select(["y", "v"]).take(order)}
    return [noisy_part(t, TWO_NORMALS, p, Policy.exact(10)) for p, t in tables.items()]


def estimate(rows: int, caution: float = 0.0) -> Estimate:
    return learn(parts_of(rows), TWO_NORMALS, caution=caution).estimate


def test_exact_where_scores_are_normal() -> None:
    """Two unit normals a distance 1 apart in each of two columns: error Phi(-sqrt(2)/2), AUC Phi(1)."""
    found = estimate(40_000)
    unrelated = found.outlooks[0]
    assert unrelated.error == pytest.approx(norm.cdf(-np.sqrt(2) / 2), abs=0.006)
    assert unrelated.auc == pytest.approx(norm.cdf(1.0), abs=0.006)
    assert found.error > unrelated.error, "the headline is in the middle, not at the better end"
    false, true = np.array(found.false_positive_rate), np.array(found.true_positive_rate)
    exact = norm.cdf(norm.ppf(np.clip(false, 1e-9, 1 - 1e-9)) + np.sqrt(2))
    assert np.abs(true - exact).max() < 0.01


def test_probabilities_are_reliable_where_scores_are_normal() -> None:
    """Two normals of one variance: log-odds are linear in the score, so what is told is what is true."""
    bins = estimate(40_000).reliability
    assert sum(one.share for one in bins) == pytest.approx(1.0, abs=0.001)
    assert len(bins) == 10
    assert [one.predicted for one in bins] == sorted(one.predicted for one in bins)
    for one in bins:
        assert one.true == pytest.approx(one.predicted, abs=0.01)


def test_a_cautious_fit_is_less_sure_of_the_same_classes() -> None:
    """All log-odds shrink by one factor, so the likelier label stays the likelier."""
    blocks = merge(parts_of(4000), TWO_NORMALS)
    fit = fit_matching(blocks, 0.5)
    bold = Population.of(blocks, replace(fit, settings={"caution": 0.0})).odds(prior=True)
    cautious = Population.of(blocks, fit).odds(prior=True)
    assert 0.5 < cautious.single_slope / bold.single_slope < 0.95
    scores = np.linspace(-2, 2, 9)
    shrunk = cautious.single_slope / bold.single_slope * bold.log_odds(scores)
    np.testing.assert_allclose(cautious.log_odds(scores), shrunk, rtol=1e-12)


def test_what_a_cautious_fit_tells_is_so_at_its_caution() -> None:
    for one in estimate(40_000, caution=0.5).reliability:
        assert one.true == pytest.approx(one.predicted, abs=0.01)


def test_more_caution_never_expects_less_error() -> None:
    outlooks = estimate(2000).outlooks
    errors, areas = [o.error for o in outlooks], [o.auc for o in outlooks]
    assert errors == sorted(errors)
    assert areas == sorted(areas, reverse=True)


def test_roc_rises_from_corner_to_corner() -> None:
    found = estimate(500)
    for rates in (found.false_positive_rate, found.true_positive_rate):
        assert list(rates) == sorted(rates)
        assert rates[0] == pytest.approx(0.0, abs=1e-6)
        assert rates[-1] == pytest.approx(1.0, abs=1e-6)


def noise_only(rows: int, columns: int) -> tuple[Contract, pa.Table]:
    """Two peers with columns that tell nothing of the label."""
    rng = np.random.default_rng(0)
    values, labels = rng.normal(size=(rows, columns)), rng.integers(0, 2, rows)
    names = [f"x{at:02d}" for at in range(columns)]
    half = columns // 2
    contract = Contract.model_validate(
        {
            "name": "noise",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "peers": {
                "a": {"features": dict.fromkeys(names[:half], "numeric")},
                "b": {"features": dict.fromkeys(names[half:], "numeric")},
            },
        }
    )
    return contract, pa.table({"y": labels, **dict(zip(names, values.T, strict=True))})


@pytest.mark.parametrize("policy", [Policy.exact(10), Policy()])
@pytest.mark.parametrize(("rows", "columns", "alpha"), [(320, 80, None), (320, 80, 0.05), (400, 250, 0.01)])
def test_noise_is_told_from_chance_by_nothing(rows: int, columns: int, alpha: float | None, policy: Policy) -> None:
    """However well a fit to noise looks on its own rows: no worse than a coin is told, and that it is no better."""
    contract, joined = noise_only(rows, columns)
    model = learn([noisy_part(joined, contract, p, policy) for p in ("a", "b")], contract, alpha=alpha)
    found = model.estimate
    assert found.base_rate == pytest.approx(0.5, abs=0.05)
    assert found.error <= found.base_rate
    assert found.auc >= 0.5
    assert found.log_loss <= np.log(2)
    assert found.by_chance
    assert "cannot be told from one that knows nothing" in model.expectation
    for outlook in found.outlooks:
        assert outlook.error <= found.base_rate
        assert outlook.auc >= 0.5
    assert model.odds.single_slope >= 0.0, "a score that tells nothing is not turned round"


def test_a_fit_to_noise_looks_good_on_its_rows_and_is_not_told_so() -> None:
    contract, joined = noise_only(320, 40)
    model = learn([noisy_part(joined, contract, p, Policy.exact(10)) for p in ("a", "b")], contract, alpha=0.05)
    on_its_rows = auc(model.predict(joined).score, joined["y"].to_numpy() * 2 - 1)
    assert on_its_rows > 0.65
    assert model.estimate.outlooks[0].auc < on_its_rows - 0.1


def test_with_few_rows_nothing_is_told_but_the_base_rate() -> None:
    contract, joined = noise_only(120, 80)
    model = learn([noisy_part(joined, contract, p, Policy.exact(10)) for p in ("a", "b")], contract)
    found = model.estimate
    assert (found.error, found.auc, found.log_loss, found.intervals, found.outlooks) == (None, None, None, {}, ())
    assert found.base_rate == pytest.approx(0.5, abs=0.06)
    assert "nothing can be said about new ones" in model.expectation
    assert f"{found.base_rate:.1%}" in model.expectation


def test_labels_nearly_separable_are_told_as_a_bound() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 2000)
    u, v = rng.normal(size=(2, 2000)) + 5.0 * labels
    joined = pa.table({"y": labels, "u": u, "v": v})
    model = learn([noisy_part(joined, TWO_NORMALS, p, Policy.exact(10)) for p in ("a", "b")], TWO_NORMALS)
    assert model.estimate.intervals["error"].low == 0.0
    assert "expect an error below" in model.expectation
    assert "AUC above" in model.expectation


def test_every_interval_names_its_parts_and_the_headline_is_never_in_its_better_half() -> None:
    for found in (estimate(1000), estimate(40_000)):
        for name, interval in found.intervals.items():
            middle = (interval.low + interval.high) / 2
            better = interval.value < middle if name != "auc" else interval.value > middle
            assert not better or interval.value == pytest.approx(middle, abs=1e-12)
            assert [*interval.parts] == ["relation", "sample", "noise", "shape"]
            assert interval.parts["noise"] == pytest.approx(0.0, abs=0.02)
            assert getattr(found, name) == interval.value
    small, large = (estimate(rows).intervals["error"].parts["sample"] for rows in (1000, 4000))
    assert small / large == pytest.approx(2.0, rel=0.2)
