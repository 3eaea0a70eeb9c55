"""Learning beside linkage of the same rows."""

from pathlib import Path

from linkage import against_linkage


def test_learning_beside_zip(tmp_path: Path) -> None:
    found = {rival.method: rival for rival in against_linkage(tmp_path, [3_000], ["radocraft", "zip"])}
    assert all(rival.cost.finished for rival in found.values())
    assert abs(found["radocraft"].error - found["zip"].error) < 0.05
    assert 0 < found["radocraft"].error < 0.3
