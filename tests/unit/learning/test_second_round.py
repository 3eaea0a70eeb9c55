"""The second round: what counts of scores add up to, and which counts are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

import radocraft as rc
from radocraft.errors import ContractMismatch, LearnError
from radocraft.gate import Noise
from radocraft.learning._metrics import auc, error_rate
from radocraft.parts import Histograms
from radocraft.peer._counting import count_scores

SKEWED = rc.Contract.parse("""
name = "skewed"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
""")


def skewed(rows: int, seed: int) -> pa.Table:
    """Independent inside blocks and far from normal: exponential under one label, two-humped under the other."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    u = np.where(y == 1, rng.exponential(1.0, rows), rng.choice([-0.5, 0.9], rows) + 0.05 * rng.normal(size=rows))
    v = np.where(y == 1, rng.exponential(1.0, rows), rng.choice([-0.4, 0.8], rows) + 0.05 * rng.normal(size=rows))
    return pa.table({"y": y, "s": np.array(["a", "b"])[s], "u": u, "v": v + s})


def counts_of(model: rc.Model, tables: dict[str, pa.Table], policy: rc.Policy) -> list[Histograms]:
    """What `share_counts` makes, but for its noise."""
    return [
        count_scores(rc.open_source(table), model, peer, policy).released(model, peer, policy, Noise.seeded(peer))
        for peer, table in tables.items()
    ]


def log_loss(probability: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.mean(np.log(np.where(labels > 0, probability, 1 - probability))))


@pytest.fixture(scope="module")
def learned() -> tuple[rc.Model, dict[str, pa.Table]]:
    whole = skewed(20_000, 0)
    tables = {"one": whole.select(["y", "s", "u"]), "two": whole.select(["y", "s", "v"])}
    parts = [noisy_part(tables[peer], SKEWED, peer, rc.Policy.exact(10)) for peer in tables]
    return rc.learn(parts, SKEWED, caution=0.0), tables


@pytest.mark.parametrize("policy", [rc.Policy.exact(), rc.Policy(), rc.Policy(epsilon=1.0)])
def test_the_estimate_needs_no_normal_scores(learned, policy):
    model, tables = learned
    better = rc.recalibrate(model, counts_of(model, tables, policy))
    found = better.second_round
    new = skewed(200_000, 1)
    labels = np.where(new["y"].to_numpy() == 1, 1, -1)
    log_odds = better.odds.log_odds(rc.predict(better, new).score)
    true_error, true_auc = error_rate(log_odds, labels), auc(log_odds, labels)
    unrelated, before = found.outlooks[0], model.estimate.outlooks[0]
    assert abs(unrelated.error - true_error) < 0.01 < abs(before.error - true_error)
    assert abs(unrelated.auc - true_auc) < 0.01
    assert true_error in found.intervals["error"]
    assert found.error >= unrelated.error
    assert found.true_positive_rate[0] <= 0.01
    told_before, told_now = rc.predict(model, new).probability, rc.predict(better, new).probability
    assert log_loss(told_now, labels) < log_loss(told_before, labels)
    assert found.true_positive_rate[-1] == pytest.approx(1.0)


def test_what_does_not_fit_together_is_refused(learned):
    model, tables = learned
    one, two = counts_of(model, tables, rc.Policy())
    for given in ([one], [one, one], [one, two, two]):
        with pytest.raises(LearnError, match="per peer"):
            rc.recalibrate(model, given)
    with pytest.raises(ContractMismatch, match="another model"):
        rc.recalibrate(model, [one, two.model_copy(update={"model": "0" * 64})])
