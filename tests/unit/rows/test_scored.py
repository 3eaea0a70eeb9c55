"""What a peer holds of its scored rows: the same rows have the same digest, and no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radocraft.rows import ScoredRows, _scored

RNG = np.random.default_rng(0)
COUNT = 500
ROWS = ScoredRows(
    RNG.integers(0, 12, COUNT),
    RNG.choice([-1, 1], COUNT),
    None,
    np.rint(RNG.normal(size=COUNT) * 1024) / 1024,
    RNG.integers(-1, 365, COUNT),
)


def taken(order: np.ndarray) -> ScoredRows:
    return replace(ROWS, **{name: getattr(ROWS, name)[order] for name in ("signatures", "labels", "scores", "keys")})


def test_the_same_rows_have_the_same_digest_in_any_order_and_width(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = ROWS.digest()
    assert taken(RNG.permutation(COUNT)).digest() == digest
    assert ROWS.narrow().digest() == digest
    monkeypatch.setattr(_scored, "_ROWS", 64)
    assert ROWS.digest() == digest


@pytest.mark.parametrize("name", ["signatures", "labels", "scores", "keys"])
def test_other_rows_have_another_digest(name: str) -> None:
    swapped = getattr(ROWS, name).copy()
    at, other = 0, int(np.flatnonzero(swapped != swapped[0])[0])
    swapped[[at, other]] = swapped[[other, at]]
    assert replace(ROWS, **{name: swapped}).digest() != ROWS.digest()


def test_rows_fewer_or_twice_have_another_digest() -> None:
    digests = {taken(order).digest() for order in (np.arange(COUNT), np.arange(COUNT - 1), np.arange(2 * COUNT) // 2)}
    assert len(digests) == 3


def test_values_of_a_numeric_label_count() -> None:
    values = RNG.normal(size=COUNT)
    one, other = (replace(ROWS, values=held, keys=None) for held in (values, values[::-1].copy()))
    assert len({one.digest(), other.digest(), replace(ROWS, keys=None).digest()}) == 3
