"""Intervals and what is said of them."""

import pytest

from radocraft.model import ExpectedQuality, Interval, ScoreOutlook


def outlook(gain: float, half: float) -> ScoreOutlook:
    """With a gain in log loss; a tenth of it in error."""
    loss, error = Interval.around(gain, {"sample": half / 2}), Interval.around(gain / 10, {"sample": half / 20})
    told = {"error": error, "auc": loss, "log_loss": loss}
    return ScoreOutlook(
        **told,
        measured=True,
        base_rate=0.2,
        base_log_loss=0.5,
        best_peer="shop",
        gain=ExpectedQuality(**told),
        alone={},
    )


def test_an_interval_is_two_standard_errors_of_all_parts_together_where_that_is_possible() -> None:
    told = Interval.around(0.1, {"relation": 0.03, "sample": 0.04}, least=0.05, most=1.0)
    assert (told.value, told.low, told.high) == (0.1, 0.05, pytest.approx(0.2))
    assert 0.15 in told
    assert 0.04 not in told
    assert Interval.around(0.7, {}, most=0.5).value == 0.5


def test_whether_it_is_worth_it_is_one_sentence() -> None:
    assert outlook(0.1, 0.05).worth == (
        "Together they should do better than shop alone, by 1.0 points of error (from 0.5 to 1.5) and 0.100 of log "
        "loss (from 0.050 to 0.150)."
    )
    assert outlook(0.1, 0.2).worth.startswith("Whether they do better than shop alone cannot be told from what left.")
    assert outlook(-0.1, 0.05).worth.startswith("shop alone should do better than all together.")
