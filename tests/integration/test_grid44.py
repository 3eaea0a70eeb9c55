"""The acceptance grid: every domain, two numbers of peers, two numbers of shared features, two seeds.

44 cells when the two seeds are averaged. `radocraft study run --preset grid44`
prints the same with all baselines; `docs/study.md` shows other seeds too.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tests.unit.study.data import needs_data

from radocraft.learning._completion import complete
from radocraft.learning._matching import Ridge, generalised_cross_validation
from radocraft.learning._metrics import error_rate
from radocraft.research.study._cell import Cell, Record, folds_of
from radocraft.research.study._methods import agree_contract, design_matrix, merged_blocks
from radocraft.research.study._presets import PRESETS
from radocraft.research.study._results import read_results
from radocraft.research.study._run import run_study
from radocraft.research.study._summary import summarise

CAUTIONS = (0.0, 0.25)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Every algorithm on every cell, without a row limit."""
    path = tmp_path_factory.mktemp("grid") / "grid.parquet"
    run_study([cell for cell in PRESETS["grid44"].cells if cell.min_rows == 1], Path(path))
    return read_results(path)


@needs_data
@pytest.mark.xdist_group("grid")
def test_matching_beats_the_best_peer_nearly_everywhere(records: list[Record]) -> None:
    lines = {line.name: line for line in summarise(records)}
    for name, line in lines.items():
        print(f"no limit: {name:14s} {line.wins:2d} of {line.cells}, {100 * line.oracle_gap:+.2f} to the oracle")
    for name in ("matching 0", "matching 0.25"):
        assert lines[name].cells == 44
        assert lines[name].wins >= 40
        assert lines[name].oracle_gap < 0.01
    assert lines["oracle"].wins >= lines["matching 0"].wins


@needs_data
@pytest.mark.xdist_group("grid")
def test_so_it_does_with_ten_rows_in_every_cell(records: list[Record]) -> None:
    """Through the default gate; peers and oracle have no gate to pass, so they are as before."""
    oracle = {place(r): r for r in records if r["algorithm"] == "oracle"}
    cells = [cell for cell in PRESETS["grid44"].cells if cell.min_rows == 10]
    margins: dict[tuple[str, int, int], list[np.ndarray]] = defaultdict(list)
    for cell in cells:
        there = oracle[cell.domain, cell.peers, cell.shared, cell.seed]
        errors = matching_errors(cell)
        margins[cell.domain, cell.peers, cell.shared].append(
            np.array([errors - there["best_peer"], errors - there["error"]])
        )
    _, gap = np.mean([np.mean(seeds, axis=0) for seeds in margins.values()], axis=0)
    wins = np.sum([np.mean(seeds, axis=0)[0] < -1e-12 for seeds in margins.values()], axis=0)
    print(f"ten rows: matching {CAUTIONS}: {wins} of {len(margins)}, {100 * gap} to the oracle")
    assert len(margins) == 44
    assert wins.min() >= 39
    assert gap.max() < 0.01


def place(record: Record) -> tuple[str, int, int, int]:
    return record["domain"], record["peers"], record["shared"], record["seed"]


def matching_errors(cell: Cell) -> np.ndarray:
    """Mean test error of expected matching at every caution."""
    errors = []
    for fold in folds_of(cell):
        blocks = merged_blocks(fold.tables, agree_contract(fold), cell.min_rows)
        design, known = design_matrix(blocks, fold.test), complete(blocks)
        problem = Ridge(known, generalised_cross_validation(known).chosen)
        errors.append([error_rate(design @ problem.cautious(c), fold.test.labels) for c in CAUTIONS])
    return np.mean(errors, axis=0)
