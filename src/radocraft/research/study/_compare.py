"""The paper's claims, and ours, compared with results.

Claims about DRL are judged on cells in the authors' reading (preset ``authors``), in the
paper's two settings p_s = 0 and p_s = 0.2 (duplicates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radocraft.research.study._cell import Record
from radocraft.research.study._claims import CLAIMS, Verdict, mean_of, some
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._summary import best_caution, summarise


def compare(records: Sequence[Record]) -> list[Verdict]:
    """Judge every claim of the paper's Results section, then our own aims, on these results."""
    theirs = [r for r in records if as_the_authors_read(r) and r["setting"] in ("vertical", "duplicates")]
    ours = [record for record in records if not as_the_authors_read(record)]
    return [*(claim.judged(claim.cells(theirs)) for claim in CLAIMS), *_aims(ours)]


def as_the_authors_read(record: Record) -> bool:
    """Whether a record stems from the authors' reading."""
    return bool(record["encoding"] == "ordinal-standard")


@dataclass(frozen=True)
class BestPeers:
    """The paper's column of best peers beside ours: the smallest error of a peer over all cells of an order."""

    domain: str
    majority: float
    paper: float
    least: float
    spread: float
    mean: float


def best_peers(records: Sequence[Record]) -> list[BestPeers]:
    """For every domain always answering the commoner label, the paper's best peer, and ours under each order."""
    theirs = [record for record in records if as_the_authors_read(record)]
    lines = []
    for name, domain in DOMAINS.items():
        oracle = [r for r in theirs if (r["algorithm"], r["domain"]) == ("oracle", name)]
        if not oracle:
            continue
        orders = sorted({record["seed"] for record in oracle})
        least = [min(record["best_peer"] for record in oracle if record["seed"] == order) for order in orders]
        majority = mean_of(some(theirs, "majority", name), "error")
        spread = float(np.std(least, ddof=1)) if len(least) > 1 else 0.0
        mean = mean_of(oracle, "best_peer")
        lines.append(BestPeers(name, majority, domain.best_peer, float(np.mean(least)), spread, mean))
    return lines


_AIMS = (
    ("vertical", 0.0, 0.010, "every row at every peer"),
    ("one-peer", 0.2, 0.017, "every row at one peer, p_s = 0.2"),
)


def _aims(records: Sequence[Record]) -> list[Verdict]:
    """What we set ourselves for expected matching, at its best single caution, without a row limit."""
    ours = [r for r in records if r["algorithm"] == "matching" and r["min_rows"] == 1 and not r["grouped"]]
    verdicts = []
    for setting, share, aim, where in _AIMS:
        here = [record for record in ours if (record["setting"], record["share"]) == (setting, share)]
        if not here:
            continue
        best = best_caution(summarise(here), aim)
        won, at = best.wins / best.cells, f"at caution {best.caution:g}"
        verdicts += [
            Verdict(
                f"Our aim: matching beats all peers in at least 90 % of cells ({where}; our choices)",
                f"{100 * won:.0f} % of {best.cells} cells {at}",
                won >= 0.9,
            ),
            Verdict(
                f"Our aim: matching on average at most {100 * aim:.1f} points from the oracle ({where}; our choices)",
                f"{100 * best.oracle_gap:.2f} points {at}",
                best.oracle_gap <= aim,
            ),
        ]
    return verdicts
