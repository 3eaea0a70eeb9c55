"""Results in short: how often each algorithm beats every peer, and how far from the oracle it stays.

Cells that differ in nothing but their seed are averaged first. Cells whose
number of bins is not the usual one (they are there for the figure of error
against bins) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from radocraft.errors import StudyError
from radocraft.research.study._cell import Record
from radocraft.research.study._contest import CONTESTS
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._metrics import LEVEL

_MEANS = ("error", "auc", "best_peer", "mean_peer", "delta", "q", "oracle_gap", "oracle_p")
_CELL = ("domain", "binarisation", "columns", "peers", "shared", "bins", "folds")
_GROUP = (
    "setting",
    "share",
    "corrupted",
    "corruption",
    "scaling",
    "intercept",
    "encoding",
    "gammas",
    "rado_score",
    "gamma_scale",
    "feature_order",
    "shareable",
    "grouped",
    "min_rows",
    "noise",
)
_DEFAULT_BINS = 4


@dataclass(frozen=True)
class SummaryRow:
    """One algorithm over the cells of one group of settings.

    Parameters
    ----------
    group
        The settings that the cells have in common.
    algorithm, caution
        What ran.
    cells, wins
        Number of cells, and of those with delta below 0: every peer beaten.
    delta, q, error, auc
        Means over the cells.
    oracle_gap
        Mean error above the oracle's.
    level_with_oracle
        Share of cells in which the difference to the oracle is not significant.
    """

    group: dict[str, str | float | bool]
    algorithm: str
    caution: float | None
    cells: int
    wins: int
    delta: float
    q: float
    error: float
    auc: float
    oracle_gap: float
    level_with_oracle: float

    @property
    def name(self) -> str:
        """The algorithm, with its caution."""
        return self.algorithm if self.caution is None else f"{self.algorithm} {self.caution:g}"


def summarise(records: Sequence[Record], by_domain: bool = False) -> list[SummaryRow]:
    """One line for every group of settings and algorithm, and for every domain if asked.

    Examples
    --------
    >>> from radocraft.research import read_results
    >>> [line.name for line in summarise(read_results("full.parquet"))]  # doctest: +SKIP
    ['best peer', 'drl', 'drl-identity', 'matching 0', ..., 'mean peer', 'oracle', 'zip']
    """
    cells = merge_seeds(with_default_bins(record for record in records if record["algorithms"] not in CONTESTS))
    if not cells:
        raise StudyError("The results hold no finished cell. Let `radocraft study run` go on for a while.")
    group = (*_GROUP, "domain") if by_domain else _GROUP
    lines: list[SummaryRow] = []
    for settings, members in _grouped(cells, group):
        for (algorithm, caution), ours in _grouped(members, ("algorithm", "caution")):
            lines.append(_line(dict(zip(group, settings, strict=True)), str(algorithm), caution, ours))
    return lines


def with_default_bins(records: Iterable[Record]) -> list[Record]:
    """Records of cells with the usual number of bins."""
    return [record for record in records if record["bins"] in (_DEFAULT_BINS, DOMAINS[record["domain"]].bins)]


def merge_seeds(records: Iterable[Record]) -> list[Record]:
    """Average cells that differ in their seed only; single peers become "best peer" and "mean peer"."""
    merged = []
    for _, same in _grouped(records, (*_CELL, *_GROUP, "algorithm", "caution")):
        first = same[0]
        if first["algorithm"] == "peer":
            continue
        merged.append({**first, **{name: _mean(same, name) for name in _MEANS}})
        if first["algorithm"] == "oracle":
            merged += [_as_algorithm(merged[-1], name) for name in ("best_peer", "mean_peer")]
    return merged


def _as_algorithm(oracle: Record, name: str) -> Record:
    """A record for the best peer in hindsight, or the mean over all peers, beside the oracle's."""
    error = oracle[name]
    return {
        **oracle,
        "algorithm": name.replace("_", " "),
        "error": error,
        "auc": float("nan"),
        "delta": error - oracle["best_peer"],
        "q": float("nan"),
        "oracle_gap": error - oracle["error"],
        "oracle_p": float("nan"),
    }


def _mean(records: Sequence[Record], name: str) -> float:
    return float(np.mean([record[name] for record in records]))


def _grouped(
    records: Iterable[Record], names: tuple[str, ...]
) -> list[tuple[tuple[str | float | bool | None, ...], list[Record]]]:
    """Records with equal values of ``names`` together, in a fixed order."""
    groups: dict[tuple[str | float | bool | None, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return sorted(groups.items(), key=lambda item: [str(value) for value in item[0]])


def _line(
    group: dict[str, str | float | bool | None], algorithm: str, caution: str | float | bool | None, ours: list[Record]
) -> SummaryRow:
    level = [record["oracle_p"] > LEVEL for record in ours]
    return SummaryRow(
        group={name: value for name, value in group.items() if value is not None},
        algorithm=algorithm,
        caution=None if caution is None else float(caution),
        cells=len(ours),
        wins=sum(record["delta"] < 0 for record in ours),
        delta=_mean(ours, "delta"),
        q=_mean(ours, "q"),
        error=_mean(ours, "error"),
        auc=_mean(ours, "auc"),
        oracle_gap=_mean(ours, "oracle_gap"),
        level_with_oracle=float(np.mean(level)),
    )


def best_caution(lines: Iterable[SummaryRow], gap: float) -> SummaryRow:
    """The one caution to judge expected matching by: of those within a gap to the oracle, the one with most wins."""
    ours = [line for line in lines if line.algorithm == "matching"]
    near = [line for line in ours if line.oracle_gap <= gap] or ours
    return max(near, key=lambda line: (line.wins / line.cells, -line.oracle_gap))
