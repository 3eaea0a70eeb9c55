from __future__ import annotations

import numpy as np
import pytest
from tests.unit.research.study.data import small_arena

from radocraft.research.study._arena import judged
from radocraft.research.study._ours import run_ours
from radocraft.research.study._presets import PRESETS
from radocraft.research.study._rivals import run_rivals
from radocraft.research.study._standings import standings

CELL = {"domain": "wine", "people": 0, "peers": 2, "shared": 2, "seed": 0, "folds": 5, "tested": 800}


def record(algorithms: str, algorithm: str, values: tuple[float, float, float | None], **more: object) -> dict:
    error, auc, log_loss = values
    told = {"error": error, "auc": auc, "log_loss": log_loss}
    return {**CELL, "algorithms": algorithms, "algorithm": algorithm, "gate": None, "peer": None, **told, **more}


def cell(seed: int, ours: tuple[float, float, float]) -> list[dict]:
    return [
        record("rivals", "peer, boosting", (0.2, 0.9, 0.5), peer=1, seed=seed),
        record("rivals", "peer, boosting", (0.3, 0.95, 0.4), peer=2, seed=seed),
        record("rivals", "joined, boosting", (0.1, 0.99, 0.2), seed=seed),
        record("rivals", "joined, ridge", (0.15, 0.98, None), seed=seed),
        record("ours", "scores", ours, gate="exact", seed=seed),
    ]


def test_the_main_table_by_hand() -> None:
    """Best peers are best in each measure; log loss that is not told beats nobody; cells not run whole do not count."""
    records = [*cell(0, (0.15, 0.96, 0.45)), *cell(1, (0.25, 0.94, 0.3)), record("ours", "scores", (0, 1, 0), seed=2)]
    lines = {line.algorithm: line for line in standings(records)}
    assert list(lines) == ["joined, boosting", "joined, ridge", "best peer, boosting", "scores"]
    best, ours = lines["best peer, boosting"], lines["scores"]
    assert (best.error, best.auc, best.log_loss, best.wins) == (0.2, 0.95, 0.4, (0, 0, 0))
    assert (ours.gate, ours.cells, ours.wins) == ("exact", 2, (1, 1, 1))
    assert (ours.error, ours.auc, ours.log_loss) == pytest.approx((0.2, 0.95, 0.375))
    assert ours.gap == pytest.approx(0.1)
    assert lines["joined, ridge"].wins == (2, 2, 0)


def test_generated_people_stand_apart_by_their_number() -> None:
    small = [r | {"domain": "generated", "people": 10_000} for r in cell(0, (0.1, 0.9, 0.3))]
    large = [r | {"domain": "generated", "people": 1_000_000} for r in cell(0, (0.1, 0.9, 0.3))]
    over = [line.over for line in standings([*large, *small, *cell(0, (0.1, 0.9, 0.3))])]
    assert list(dict.fromkeys(over)) == [
        "the paper's domains",
        "10,000 generated people",
        "1,000,000 generated people",
    ]


def test_presets_have_a_cell_for_rivals_and_one_for_ours() -> None:
    cells = PRESETS["main"].cells
    assert len(cells) == 2 * 44
    assert {c.algorithms for c in cells} == {"rivals", "ours"}
    assert {c.people for c in PRESETS["generated"].cells} == {10_000, 100_000, 1_000_000}


def test_an_outcome_by_hand() -> None:
    """Three of four right, all pairs in order; log loss only where a probability is told."""
    score, chosen = np.array([-1.0, 2.0, 0.5, 1.0]), np.array([False, True, True, True])
    truth, probability = np.array([False, True, False, True]), np.array([0.25, 0.9, 0.5, 0.8])
    outcome = judged("method", score, probability, chosen, truth)
    assert (outcome.error, outcome.auc) == (0.25, 1.0)
    assert outcome.log_loss == pytest.approx(-np.log([0.75, 0.9, 0.5, 0.8]).mean())
    assert np.isnan(judged("ridge", score, None, chosen, truth).log_loss)
    assert judged("method", -score, None, ~chosen, truth).auc == 0.0


def test_ours_go_the_whole_way_through_both_gates() -> None:
    found = {(outcome.algorithm, outcome.gate): outcome for outcome in run_ours(small_arena())}
    names = ("drl", "matching, linear", "matching, splines", "scores", "scores with key")
    assert {*found} == {(name, gate) for name in names for gate in ("exact", "default")}
    alone = max(outcome.auc for outcome in run_rivals(small_arena()) if outcome.peer)
    assert all(found[name, "exact"].auc > alone for name in names[1:])
