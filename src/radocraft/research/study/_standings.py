"""The main table: all methods over the same cells, beside boosting of the best peer and of the joined table.

The best peer is chosen in hindsight, for error, AUC and log loss each anew, which no user could.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats
from radocraft.research.study._cell import Record
from radocraft.research.study._contest import CONTESTS, GENERATED

_CELL = ("domain", "people", "peers", "shared", "seed", "folds", "tested")
_JOINED, _BEST = "joined, boosting", "best peer, boosting"
_SIGNS = np.array([1.0, -1.0, 1.0])
_ORDER = (
    _JOINED,
    "joined, ridge",
    _BEST,
    "best peer, ridge",
    "zip, boosting",
    "zip, ridge",
    "late fusion",
    "mean of log-odds",
    "drl",
    "matching, linear",
    "matching, splines",
    "scores",
    "scores with key",
)

Place = tuple[object, ...]
Contestant = tuple[str, str | None]


@dataclass(frozen=True)
class Standing:
    """One method over some cells.

    Parameters
    ----------
    over
        Which cells: the paper's domains, or so many generated people.
    algorithm, gate
        What ran, and what its sums passed: ``exact``, ``default``, or none were sent.
    cells
        How many there are.
    error, auc, log_loss
        Means; log loss is NaN of what tells no probability.
    wins
        In how many cells it beats the best peer's boosting in error, AUC and log loss.
    gap
        Mean error above that of boosting on the joined table.
    """

    over: str
    algorithm: str
    gate: str | None
    cells: int
    error: float
    auc: float
    log_loss: float
    wins: tuple[int, int, int]
    gap: float


def standings(records: Sequence[Record]) -> list[Standing]:
    """Every method over the cells in which rivals and ours both ran, in a fixed order.

    Examples
    --------
    >>> from radocraft.research import read_results
    >>> [line.algorithm for line in standings(read_results("main.parquet"))]  # doctest: +SKIP
    ['joined, boosting', 'joined, ridge', 'best peer, boosting', ...]
    """
    cells: dict[Place, list[Record]] = {}
    for record in records:
        if record["algorithms"] in CONTESTS:
            cells.setdefault(tuple(record[name] for name in _CELL), []).append(record)
    whole = {place: _methods(held) for place, held in cells.items() if {*CONTESTS} == {r["algorithms"] for r in held}}
    groups: dict[str, list[dict[Contestant, Floats]]] = {}
    for place in sorted(whole, key=str):
        groups.setdefault(_over(dict(zip(_CELL, place, strict=True))), []).append(whole[place])
    return [line for over, members in sorted(groups.items(), key=_size) for line in _lines(over, members)]


def _methods(records: Iterable[Record]) -> dict[Contestant, Floats]:
    """Error, AUC and log loss of every method in one cell; of peers those of the best."""
    found: dict[Contestant, list[list[float]]] = {}
    for record in records:
        name = record["algorithm"] if record["peer"] is None else f"best {record['algorithm']}"
        values = [np.nan if record[kind] is None else record[kind] for kind in ("error", "auc", "log_loss")]
        found.setdefault((name, record["gate"]), []).append(values)
    return {name: _SIGNS * (_SIGNS * np.array(values)).min(axis=0) for name, values in found.items()}


def _over(cell: Record) -> str:
    return f"{cell['people']:,} generated people" if cell["domain"] == GENERATED else "the paper's domains"


def _size(group: tuple[str, list[dict[Contestant, Floats]]]) -> tuple[bool, int]:
    return GENERATED in group[0], len(group[0])


def _lines(over: str, cells: list[dict[Contestant, Floats]]) -> Iterable[Standing]:
    best, joined = (np.array([cell[name, None] for cell in cells]) for name in (_BEST, _JOINED))
    ran = {name for name in cells[0] if all(name in cell for cell in cells)}
    rank = {name: at for at, name in enumerate(_ORDER)}
    names = sorted(ran, key=lambda name: (rank.get(name[0], len(rank)), name[0], name[1] != "exact"))
    for algorithm, gate in names:
        values = np.array([cell[algorithm, gate] for cell in cells])
        wins = (_SIGNS * values < _SIGNS * best).sum(axis=0)
        error, auc, log_loss = values.mean(axis=0).tolist()
        gap = float((values[:, 0] - joined[:, 0]).mean())
        yield Standing(
            over, algorithm, gate, len(cells), error, auc, log_loss, (int(wins[0]), int(wins[1]), int(wins[2])), gap
        )
