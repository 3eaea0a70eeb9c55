"""The claims of the paper's Results section: what each measures, and the value that supports it.

The paper must have had one order of the features; we have ten, so each claim is measured
once for every order, and stands with mean and spread. What a word such as "frequently" has
to mean for a yes is written in each claim; it holds if the mean meets it. ``best`` is the
best we know from any reading, for claims that no reading makes true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from radocraft.arrays import Floats
from radocraft.research.study._cell import Record
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._metrics import LEVEL
from radocraft.research.study._summary import with_default_bins

_SYSTEMATIC = 0.8
_LITTLE = 0.02


@dataclass(frozen=True)
class Verdict:
    """One claim: what was said, what we find, whether it holds; None where the results have no such cells.

    ``orders`` are the orders of features it was measured under, ``holding`` those under which it holds, ``best`` what
    it comes to under the kindest reading that was tried, where it holds under none.
    """

    claim: str
    ours: str
    holds: bool | None
    orders: int = 1
    holding: int = 0
    best: str = ""


@dataclass(frozen=True)
class PaperClaim:
    """One claim of the paper: a measure of some records, what it must be, and how it is written."""

    words: str
    measure: Callable[[list[Record]], float]
    holds: Callable[[float], bool]
    written: str
    points: bool = False
    best: str = ""
    all_bins: bool = False

    def cells(self, records: list[Record]) -> list[Record]:
        """What it is judged on: cells with the usual number of bins, but for the claim on bins."""
        return records if self.all_bins else with_default_bins(records)

    def judged(self, records: Sequence[Record]) -> Verdict:
        """Measured under every order of the features."""
        values = []
        for order in sorted({record["seed"] for record in records}):
            try:
                values.append(self.measure([record for record in records if record["seed"] == order]))
            except _NoCells:
                continue
        if not values:
            return Verdict(self.words, "no such cells in these results", None)
        holds, holding = self.holds(float(np.mean(values))), sum(map(self.holds, values))
        ours = f"{self.written}: {_spread(np.array(values), self.points)}"
        return Verdict(self.words, ours, holds, len(values), holding, "" if holds else self.best)


def _spread(values: Floats, points: bool) -> str:
    unit, sign = (" points", "+") if points else (" %", "")
    mean, low, high = (f"{100 * value:{sign}.{int(points)}f}" for value in (values.mean(), values.min(), values.max()))
    if len(values) == 1:
        return mean + unit
    return f"{mean} ± {100 * values.std(ddof=1):.{int(points)}f}{unit} ({low} to {high})"


class _NoCells(Exception):
    """The results do not hold the cells a claim is about."""


def some(
    records: Iterable[Record], algorithm: str, domain: str | None = None, share: float | None = None
) -> list[Record]:
    found = [
        record
        for record in records
        if record["algorithm"] == algorithm and domain in (None, record["domain"]) and share in (None, record["share"])
    ]
    if not found:
        raise _NoCells
    return found


def _won(records: Sequence[Record]) -> float:
    return float(np.mean([record["delta"] < 0 for record in records]))


def mean_of(records: Sequence[Record], name: str) -> float:
    return float(np.mean([record[name] for record in records]))


def _domains_won(records: list[Record]) -> float:
    drl = some(records, "drl")
    if len({record["domain"] for record in drl}) < len(DOMAINS):
        raise _NoCells
    return len({record["domain"] for record in drl if record["delta"] < 0}) / len(DOMAINS)


def _share_won(domain: str) -> Callable[[list[Record]], float]:
    return lambda records: _won(some(records, "drl", domain))


def _q_on_page(records: list[Record]) -> float:
    return float(np.mean([record["q"] >= 0.8 for record in some(records, "drl", "page")]))


def _oracle_on_steel(records: list[Record]) -> float:
    return mean_of(some(records, "oracle", "steelplates"), "error")


def _peers_on_steel(records: list[Record]) -> float:
    return mean_of(some(records, "oracle", "steelplates"), "best_peer")


def _share_of_gap_on_steel(records: list[Record]) -> float:
    drl = some(records, "drl", "steelplates")
    return mean_of(drl, "oracle_gap") / (mean_of(drl, "best_peer") - mean_of(drl, "error") + mean_of(drl, "oracle_gap"))


def _least_delta_on_steel(records: list[Record]) -> float:
    return min(float(record["delta"]) for record in some(records, "drl", "steelplates"))


def _gain_of_tuning(domain: str) -> Callable[[list[Record]], float]:
    def measure(records: list[Record]) -> float:
        tuned, dummy = (mean_of(some(records, name, domain), "error") for name in ("drl", "drl-identity"))
        return dummy - tuned

    return measure


def _level_on_sonar(records: list[Record]) -> float:
    return float(np.mean([record["oracle_p"] > LEVEL for record in some(records, "drl", "sonar")]))


def _below_the_oracle(records: list[Record], share: float | None = None) -> float:
    return float(np.mean([record["oracle_gap"] < 0 for record in some(records, "drl", "sonar", share)]))


def _significantly_below(records: list[Record]) -> float:
    drl = some(records, "drl", "sonar")
    return float(np.mean([record["oracle_gap"] < 0 and record["oracle_p"] <= LEVEL for record in drl]))


def _more_below_with_copies(records: list[Record]) -> float:
    return _below_the_oracle(records, 0.2) - _below_the_oracle(records, 0.0)


def _worst_best_peer(records: list[Record]) -> float:
    return max(float(record["best_peer"]) for record in some(records, "oracle"))


def _range_over_bins(records: list[Record]) -> float:
    errors = errors_by_bins(records, "drl")
    if len(errors) < 2:
        raise _NoCells
    return float(np.ptp(np.array([*errors.values()]).mean(axis=1)))


def errors_by_bins(records: Iterable[Record], algorithm: str, caution: float | None = None) -> dict[int, list[float]]:
    """Errors on ionosphere for each number of bins, over the (p, dim J) that were run at every number of bins."""
    ours = [
        record
        for record in sorted(records, key=lambda record: (record["seed"], *_size(record)))
        if (record["domain"], record["setting"], record["algorithm"], record["caution"])
        == ("ionosphere", "vertical", algorithm, caution)
    ]
    bins = sorted({record["bins"] for record in ours})
    sizes = {size: {r["bins"] for r in ours if (r["peers"], r["shared"]) == size} for size in map(_size, ours)}
    common = {size for size, seen in sizes.items() if len(seen) == len(bins)}
    return {b: [r["error"] for r in ours if r["bins"] == b and _size(r) in common] for b in bins} if common else {}


def _size(record: Record) -> tuple[int, int]:
    return (record["peers"], record["shared"])


_CELLS_WON = "cells in which DRL beats all peers"
CLAIMS = (
    PaperClaim(
        "In every domain there are (p, dim J) for which DRL beats all peers",
        _domains_won,
        lambda share: share == 1.0,
        "domains with such cells",
    ),
    PaperClaim(
        "Wins are almost systematic on page (at least 80 % of cells)",
        _share_won("page"),
        lambda share: share >= _SYSTEMATIC,
        _CELLS_WON,
        best="100 % with Gamma scaled by the mean block; then tuning hurts on firmteacher",
    ),
    PaperClaim(
        "Wins are almost systematic on ionosphere (at least 80 %)",
        _share_won("ionosphere"),
        lambda share: share >= _SYSTEMATIC,
        _CELLS_WON,
        best="69 % on average, 100 % under single orders",
    ),
    PaperClaim(
        "Wins are almost systematic on steelplates (at least 80 %)",
        _share_won("steelplates"),
        lambda share: share >= _SYSTEMATIC,
        _CELLS_WON,
    ),
    PaperClaim(
        "Wins are sparse on phishing (some, less than a third)",
        _share_won("phishing"),
        lambda share: 0 < share < 1 / 3,
        _CELLS_WON,
    ),
    PaperClaim(
        "On page, DRL statistically beats all peers in a third to half of the tests",
        _q_on_page,
        lambda share: 0.3 <= share <= 0.55,
        "cells with q >= 0.8",
    ),
    PaperClaim(
        "On steelplates the oracle is almost perfect (error below 2 %)",
        _oracle_on_steel,
        lambda error: error < 0.02,
        "error of the oracle",
    ),
    PaperClaim(
        "On steelplates the peers are far from it (best peer above 10 %)",
        _peers_on_steel,
        lambda error: error > 0.1,
        "error of the best peer",
    ),
    PaperClaim(
        "On steelplates DRL is close to the oracle (less than a third of the peers' gap)",
        _share_of_gap_on_steel,
        lambda share: share < 1 / 3,
        "DRL's gap as a share of the best peer's",
    ),
    PaperClaim(
        "On steelplates DRL is at times more than 20 points better than the best peer",
        _least_delta_on_steel,
        lambda delta: delta < -0.20,
        "smallest Δ",
        points=True,
    ),
    PaperClaim(
        "Tuning Gamma helps on firmteacher",
        _gain_of_tuning("firmteacher"),
        lambda gain: gain > 0,
        "error with Gamma = Id less that with the tuned one",
        points=True,
    ),
    PaperClaim(
        "On mice the dummy Gamma = Id is better than the tuned one",
        _gain_of_tuning("mice"),
        lambda gain: gain < 0,
        "error with Gamma = Id less that with the tuned one",
        points=True,
        best="in no reading that was tried",
    ),
    PaperClaim(
        "On sonar DRL is often not significantly worse than the oracle (half of the cells)",
        _level_on_sonar,
        lambda share: share >= 0.5,
        "cells without a significant difference",
    ),
    PaperClaim("On sonar DRL at times beats the oracle", _below_the_oracle, lambda share: share > 0, "cells below it"),
    PaperClaim(
        "... but never significantly (at most 1 % of cells)",
        _significantly_below,
        lambda share: share <= 0.01,
        "cells significantly below it",
    ),
    PaperClaim(
        "On sonar DRL beats the oracle more often as p_s grows",
        _more_below_with_copies,
        lambda more: more > 0,
        "share of cells at p_s = 0.2 less that at 0",
        points=True,
    ),
    PaperClaim(
        "Some peer is always better than a coin",
        _worst_best_peer,
        lambda error: error < 0.5,
        "largest error of a best peer",
    ),
    PaperClaim(
        "On ionosphere the number of bins matters little (mean error varies by at most 2 points)",
        _range_over_bins,
        lambda range_: range_ <= _LITTLE,
        "range of mean errors over bins",
        points=True,
        all_bins=True,
        best="1.6 points with Gamma scaled by the mean block; then tuning hurts on firmteacher",
    ),
)
