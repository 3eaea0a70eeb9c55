from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from tests.unit.research.study.data import small_arena

from radocraft.research.study._arena import Arena
from radocraft.research.study._rivals import fuse, run_rivals, signature_log_odds, zip_tables

TRAIN, NEW, PEERS = 40_000, 200_000, 3
SIGNATURE = np.array([0.15, 0.35, 0.5, 0.8])
SHIFT = np.array([[0.6, 1.0, 0.3, 0.8], [0.5, 0.2, 0.9, 0.7], [0.4, 0.6, 0.6, 0.2]])


def people(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signatures, labels, and a normal column of each peer, independent inside signature and label."""
    signature = rng.integers(0, len(SIGNATURE), rows)
    truth = rng.random(rows) < SIGNATURE[signature]
    sign = np.where(truth, 1.0, -1.0)
    return signature, truth, SHIFT[:, signature] * sign + rng.normal(size=(PEERS, rows))


def alone(signature: np.ndarray, column: np.ndarray) -> np.ndarray:
    """What a peer's model is given: its column's slope and a constant in each signature."""
    one_hot = np.eye(len(SIGNATURE))[signature]
    return np.hstack([one_hot, one_hot * column[:, None]])


def paired_difference(first: np.ndarray, second: np.ndarray) -> float:
    """Mean difference, in its own standard errors."""
    difference = first - second
    return float(difference.mean() / (difference.std() / np.sqrt(len(difference))))


def test_late_fusion_is_bayes_rule_where_peers_are_independent_inside_signature_and_label() -> None:
    rng = np.random.default_rng(1)
    signature, truth, columns = people(TRAIN, rng)
    new_signature, new_truth, new_columns = people(NEW, rng)
    fits = [LogisticRegression(C=1e6, fit_intercept=False).fit(alone(signature, x), truth) for x in columns]
    log_odds = np.array(
        [fit.decision_function(alone(new_signature, x)) for fit, x in zip(fits, new_columns, strict=True)]
    )
    of_signature = signature_log_odds(signature, truth, new_signature)
    fused, bayes = fuse(log_odds, of_signature), logit(SIGNATURE)[new_signature]
    bayes = bayes + 2.0 * (SHIFT[:, new_signature] * new_columns).sum(axis=0)
    wrong = {name: (z > 0) != new_truth for name, z in (("fused", fused), ("bayes", bayes), ("sum", log_odds.sum(0)))}
    assert abs(paired_difference(wrong["fused"].astype(float), wrong["bayes"].astype(float))) < 3.0
    assert paired_difference(wrong["sum"].astype(float), wrong["bayes"].astype(float)) > 10.0
    assert np.abs(expit(fused) - expit(bayes)).mean() < 0.01


def test_late_fusion_by_hand() -> None:
    assert fuse(np.array([[0.4, -1.0], [1.0, 0.5], [0.1, 0.0]]), np.array([0.5, -0.25])) == pytest.approx([0.5, 0.0])


def test_tables_are_zipped_by_signature_and_label() -> None:
    arena = small_arena()
    paired = zip_tables(arena)
    for peer, table in arena.tables.items():
        assert rows_of(arena, paired, peer) == rows_of(arena, table, peer)
    pairs, true_pairs = (
        {*zip(held["a0"].to_pylist(), held["b0"].to_pylist(), strict=True)} for held in (paired, arena.joined)
    )
    assert len(pairs & true_pairs) < 0.05 * len(pairs)


def rows_of(arena: Arena, table: pa.Table, peer: str) -> list[tuple[int, bool, float]]:
    """Signature, label and a value of the peer's, in order."""
    columns = (arena.signatures(table).tolist(), arena.truth(table).tolist(), table[f"{peer}0"].to_pylist())
    return sorted(zip(*columns, strict=True))


def test_rivals_are_ordered_as_what_they_may_see() -> None:
    found = {(outcome.algorithm, outcome.peer): outcome for outcome in run_rivals(small_arena())}
    best = min(found["peer, boosting", at].log_loss for at in (1, 2))
    assert max(found[name, None].log_loss for name in ("joined, boosting", "zip, boosting", "late fusion")) < best
    assert found["late fusion", None].auc > max(found["peer, boosting", at].auc for at in (1, 2))
    assert np.isnan(found["joined, ridge", None].log_loss)
    assert found["joined, ridge", None].error < min(found["peer, ridge", at].error for at in (1, 2))
