"""A release of scores does not depend on how the rows come: in pieces, as narrow numbers, all at once."""

from __future__ import annotations

import numpy as np
import pytest

from radocraft import Contract
from radocraft.gate import Noise, _scores, release_scores

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "age", edges = [30, 50] }]
peers.bank.features = { risk = "score" }
peers.shop.features = { habit = "score" }
key = [{ name = "born", last_digits = 1 }]
""")


def rows(count: int, wide: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    labels, keys = rng.choice([-1, 1], count), rng.integers(-1, 10, count)
    scores = np.rint((labels + rng.normal(size=count)) * 1024) / 1024
    columns = {"signatures": rng.integers(0, 3, count), "labels": labels, "scores": scores, "keys": keys}
    if wide:
        return columns
    narrow = {"signatures": np.uint8, "labels": np.int8, "scores": np.float32, "keys": np.int8}
    return {name: column.astype(narrow[name]) for name, column in columns.items()}


@pytest.mark.parametrize(("wide", "piece"), [(True, 7), (False, 10**6), (False, 100)])
def test_rows_may_come_in_pieces_and_as_narrow_numbers(wide: bool, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = release_scores(CONTRACT, "bank", **rows(3000, wide=True), noise=Noise.seeded(1)).cells
    monkeypatch.setattr(_scores, "_PIECE", piece)
    found = release_scores(CONTRACT, "bank", **rows(3000, wide), noise=Noise.seeded(1)).cells
    assert any(len(sums) for sums in found.groups)
    for name in ("codes", "rows", "sums", "spreads", "counts", "histogram", "margins"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for sums, theirs in zip(found.groups, expected.groups, strict=True):
        np.testing.assert_array_equal(sums, theirs)
