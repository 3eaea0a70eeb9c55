from __future__ import annotations

import numpy as np
import pyarrow as pa

from radocraft.research.study._boosting import Boosted, Sheet, log_loss, platt


def sheet(rows: int, seed: int) -> tuple[Sheet, np.ndarray]:
    """The label depends on which of thirty words a row has, and not on the number."""
    rng = np.random.default_rng(seed)
    word = rng.integers(0, 30, rows)
    words = pa.array([f"w{at}" for at in range(30)])
    table = pa.table({"word": words.take(pa.array(word)), "number": rng.normal(size=rows)})
    known = pa.table({"word": words, "number": np.zeros(30)})
    return Sheet.of(table, ["word", "number"], known), rng.random(rows) < np.where(word % 2, 0.8, 0.2)


def test_boosting_is_tuned_calibrated_and_reads_words() -> None:
    train, labels = sheet(2000, 0)
    new, truth = sheet(20_000, 1)
    model = Boosted.fit(train, labels)
    best_possible = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    assert log_loss(model.log_odds(new), truth) < best_possible + 0.02
    assert train.categorical == (0,)


def test_calibration_is_the_most_likely_slope_and_intercept() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=50_000)
    truth = rng.random(50_000) < 1.0 / (1.0 + np.exp(-(0.5 * score - 1.0)))
    slope, intercept = platt(score, truth)
    assert abs(slope - 0.5) < 0.05
    assert abs(intercept + 1.0) < 0.05
    assert platt(-score, truth)[0] == 0.0
