from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest

from radocraft.errors import StudyError
from radocraft.research.study._cell import Cell
from radocraft.research.study._summary import best_caution, merge_seeds, summarise


def record(algorithm: str, error: float, **more: Any) -> dict[str, Any]:
    """A record of a cell whose best peer errs in .20 and whose oracle in .10."""
    settings = {name: more.pop(name) for name in [*more] if name in Cell.__dataclass_fields__}
    cell = asdict(Cell(**{"domain": "wine", "peers": 2, "shared": 1, "binarisation": "class-2", **settings}))
    measures = {
        "algorithm": algorithm,
        "caution": None,
        "peer": None,
        "error": error,
        "auc": 0.9,
        "best_peer": 0.20,
        "mean_peer": 0.30,
        "delta": error - 0.20,
        "q": 0.5,
        "oracle_gap": error - 0.10,
        "oracle_p": 0.5,
        "fold_errors": [error],
        "seconds": 1.0,
    }
    return {**cell, **measures, **more}


def test_seeds_are_averaged_before_wins_are_counted() -> None:
    """One seed wins by .05, the other loses by .03: the cell is one win."""
    records = [record("drl", 0.15, seed=0), record("drl", 0.23, seed=1), record("drl", 0.25, seed=0, peers=3)]
    (line,) = summarise(records)
    assert (line.cells, line.wins) == (2, 1)
    assert line.delta == pytest.approx(((0.15 + 0.23) / 2 - 0.2 + 0.05) / 2)


def test_best_and_mean_peer_stand_beside_the_oracle() -> None:
    lines = {line.name: line for line in summarise([record("oracle", 0.10), record("peer", 0.20, peer=1)])}
    assert set(lines) == {"oracle", "best peer", "mean peer"}
    assert lines["best peer"].oracle_gap == pytest.approx(0.10)
    assert lines["best peer"].wins == 0
    assert lines["mean peer"].delta == pytest.approx(0.10)
    assert math.isnan(lines["mean peer"].q)


def test_settings_are_kept_apart_and_odd_bins_left_out() -> None:
    records = [
        record("drl", 0.1),
        record("drl", 0.1, setting="one-peer", share=0.2),
        record("drl", 0.1, min_rows=10),
        record("drl", 0.1, bins=8),
    ]
    assert [line.cells for line in summarise(records)] == [1, 1, 1]
    assert len(summarise([record("drl", 0.1), record("drl", 0.1, domain="page")], by_domain=True)) == 2


def test_the_share_of_cells_level_with_the_oracle() -> None:
    records = [record("drl", 0.12, oracle_p=0.2), record("drl", 0.3, oracle_p=0.01, peers=3)]
    assert summarise(records)[0].level_with_oracle == 0.5


def test_the_best_caution_is_near_enough_and_then_has_most_wins() -> None:
    errors = {0.0: (0.12, 0.21), 0.5: (0.19, 0.19)}  # one win and 6.5 points from the oracle; two wins and 9 points
    lines = summarise(
        [record("matching", e, caution=c, peers=p) for c, both in errors.items() for p, e in enumerate(both, 2)]
    )
    assert best_caution(lines, gap=0.08).caution == 0.0
    assert best_caution(lines, gap=0.10).caution == 0.5
    assert best_caution(lines, gap=0.01).caution == 0.5  # none is near enough


def test_no_results_yet() -> None:
    with pytest.raises(StudyError, match="no finished cell"):
        summarise([])
    assert merge_seeds([]) == []
