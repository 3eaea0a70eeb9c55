"""Running a grid of cells: in parallel, seeded, and continuing after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path

from joblib import Parallel, delayed

from radocraft.errors import StudyError
from radocraft.research.study._cell import Cell, Record, run_cell
from radocraft.research.study._contest import CONTESTS, run_contest
from radocraft.research.study._results import Journal, forget, key_of

Progress = Callable[[int, int], None]


def run_study(
    cells: Sequence[Cell],
    path: str | Path,
    *,
    jobs: int = 1,
    again: str | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Evaluate the cells that ``path`` does not hold yet; gives how many ran and how many were there.

    Cells with the algorithms that ``again`` names run anew even if they are there.

    Examples
    --------
    >>> from radocraft.research import PRESETS
    >>> run_study(PRESETS["smoke"].cells, "smoke.parquet")  # doctest: +SKIP
    (6, 0)
    """
    if again is not None:
        forget(path, again)
    with Journal(path) as journal:
        open_cells = [cell for cell in cells if key_of(asdict(cell)) not in journal.done]
        there = len(cells) - len(open_cells)
        if progress:
            progress(there, len(cells))
        for count, (cell, records) in enumerate(_finished(open_cells, jobs), start=1):
            journal.add(cell, records)
            if progress:
                progress(there + count, len(cells))
    return len(open_cells), there


def _finished(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, list[Record]]]:
    """Cells with their records, as they are done."""
    work = (delayed(_evaluate)(cell) for cell in _spread(cells))
    try:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(work)
    except BrokenProcessPool as error:
        raise StudyError(
            "A process of the study was killed from outside, most often for want of memory. The cells that were done "
            "are kept: run the same command again, with fewer --jobs if memory was short."
        ) from error


def _evaluate(cell: Cell) -> tuple[Cell, list[Record]]:
    return cell, run_contest(cell) if cell.algorithms in CONTESTS else run_cell(cell)


def _spread(cells: Sequence[Cell]) -> list[Cell]:
    """Quick and slow cells mixed, so that the time left can be told from the time gone."""
    stride = next(step for step in (389, 397, 401, 1) if len(cells) % step or step == 1)
    return [cells[at * stride % len(cells)] for at in range(len(cells))]
