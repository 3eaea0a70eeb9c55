"""Cells of the main table: rivals, or ours, on the folds of a domain or on generated people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from radocraft.research.study._arena import Arena, Outcome, arena_of, generated_arena
from radocraft.research.study._cell import Cell, Record, folds_of
from radocraft.research.study._methods import Algorithms
from radocraft.research.study._ours import run_ours
from radocraft.research.study._rivals import run_rivals

CONTESTS: tuple[Algorithms, ...] = ("rivals", "ours")
GENERATED = "generated"


def run_contest(cell: Cell) -> list[Record]:
    """Means over the folds of a cell: one record for every method, gate and peer."""
    start = perf_counter()
    outcomes: dict[tuple[str, str | None, int | None], list[Outcome]] = {}
    with threadpool_limits(1):
        for seed, arena in enumerate(arenas_of(cell)):
            for outcome in run_rivals(arena, seed) if cell.algorithms == "rivals" else run_ours(arena):
                outcomes.setdefault((outcome.algorithm, outcome.gate, outcome.peer), []).append(outcome)
    seconds = perf_counter() - start
    return [
        {
            **asdict(cell),
            "algorithm": algorithm,
            "gate": gate,
            "peer": peer,
            "error": float(np.mean([outcome.error for outcome in folds])),
            "auc": float(np.mean([outcome.auc for outcome in folds])),
            "log_loss": float(np.mean([outcome.log_loss for outcome in folds])),
            "fold_errors": [outcome.error for outcome in folds],
            "seconds": seconds,
        }
        for (algorithm, gate, peer), folds in outcomes.items()
    ]


def arenas_of(cell: Cell) -> Iterator[Arena]:
    """The folds of a cell, as many as are tested; of generated people one."""
    if cell.domain == GENERATED:
        yield generated_arena(cell.people, cell.peers, cell.seed)
        return
    tested = 0
    for number, fold in enumerate(folds_of(cell)):
        if cell.tested and tested >= cell.tested:
            return
        tested += len(fold.test.labels)
        yield arena_of(fold, number)
