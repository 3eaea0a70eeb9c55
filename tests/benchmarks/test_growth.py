"""How costs grow with one size."""

from pathlib import Path

import pytest
from growth import growth, growth_of


def test_growth_is_the_exponent() -> None:
    assert growth([10, 100, 1000], [5, 50 * 10**0.5, 5000]) == pytest.approx(1.5)


def test_growth_is_measured_along_one_size(tmp_path: Path) -> None:
    rows = growth_of(tmp_path, "rows", (3_000, 30_000))
    assert all(cost.finished for cost in rows.costs)
    assert rows.held[1] > 5 * rows.held[0]
    assert 0 < rows.sent[1] < rows.held[1] / 10
    peers = growth_of(tmp_path, "peers", (2, 3))
    assert peers.sent[1] == pytest.approx(1.5 * peers.sent[0], rel=0.1)
    assert not list(tmp_path.glob("rows.parquet"))
