"""Axes of charts hold their values between round ticks."""

import pytest

from radocraft.pages._charts import Axis


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.198, 0.25), (-3.0, 7.0), (5.0, 5.0), (0.0, 0.0), (1e-7, 3e-7)])
def test_an_axis_holds_its_values_between_round_ticks(values: tuple[float, float]) -> None:
    axis = Axis.over("", values)
    assert axis.low <= min(values)
    assert axis.high >= max(values)
    assert 3 <= len(axis.ticks) <= 8
    assert len({text for _, text in axis.ticks}) == len(axis.ticks)
    assert axis.place(axis.low) == pytest.approx(0)
    assert axis.place(axis.high) == pytest.approx(1)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 12, 99, 50_000])
def test_an_axis_of_counts_has_whole_ticks(most: int) -> None:
    axis = Axis.counts("", [0, most])
    assert (axis.low, axis.high >= most) == (0, True)
    assert all(float(text.replace(",", "")) == tick for tick, text in axis.ticks)
    assert 2 <= len(axis.ticks) <= 6


@pytest.mark.parametrize("values", [(1e-6, 1e3), (160.0, 760.0), (25.0, 52.0), (10.0, 10.0), (1.0, 60_000.0)])
def test_a_log_axis_has_ticks_inside(values: tuple[float, float]) -> None:
    axis = Axis.powers("", values)
    assert len(axis.ticks) >= 2
    assert all(0 <= axis.place(at) <= 1 for at, _ in axis.ticks)
