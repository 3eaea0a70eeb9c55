"""What docs/calibration.md says of growing tables, on two sizes."""

import pytest
from calibration import grown


def test_the_relations_error_falls_like_one_over_the_root_of_the_groups() -> None:
    """Through the default gate; and the model comes close to the logistic on joined scores."""
    (few, *small), (many, *large) = grown(3_000, 0), grown(60_000, 0)
    for true, found, error, _ in (small, large):
        assert abs(found - true) < 4 * error
    assert many > 10 * few
    assert large[2] * many**0.5 == pytest.approx(small[2] * few**0.5, rel=0.3)
    assert abs(large[3]) < 0.002
