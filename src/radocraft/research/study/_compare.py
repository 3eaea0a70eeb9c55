"""The paper's claims, one by one, against our results.

Claims about DRL are judged on the cells run under choices like the paper's own
(min-max scaling, no intercept, ordinal shared features, steelplates with its
fault columns), in the paper's two settings p_s = 0 and p_s = 0.2 (duplicates).
What a word such as "frequently" has to mean for a yes is written in each claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from radocraft.research.study._cell import Record
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._metrics import LEVEL
from radocraft.research.study._summary import best_caution, summarise, with_default_bins

_SYSTEMATIC = 0.8
_LITTLE = 0.02


@dataclass(frozen=True)
class Verdict:
    """One claim: what was said, what we find, whether it holds; None where the results have no such cells."""

    claim: str
    ours: str
    holds: bool | None


Judge = Callable[[list[Record]], tuple[str, bool]]


def compare(records: Sequence[Record]) -> list[Verdict]:
    """Judge every claim of the paper's Results section, then our own aims, on these results."""
    theirs = [record for record in records if like_the_paper(record)]
    ours = [record for record in records if not like_the_paper(record)]
    return [
        *(_judge(claim, with_default_bins(theirs), judge) for claim, judge in _PAPER),
        *_bins(theirs),
        *_aims(ours, "our choices"),
        *_aims(theirs, "choices like the paper's"),
    ]


def like_the_paper(record: Record) -> bool:
    """Whether a record stems from choices like the paper's."""
    return bool(record["scaling"] == "min-max" and not record["intercept"] and record["encoding"] == "ordinal")


def _judge(claim: str, records: list[Record], judge: Judge) -> Verdict:
    ours = [record for record in records if record["setting"] in ("vertical", "duplicates")]
    try:
        finding, holds = judge(ours)
    except _NoCells:
        return Verdict(claim, "no such cells in these results", None)
    return Verdict(claim, finding, holds)


class _NoCells(Exception):
    """The results do not hold the cells a claim is about."""


def _some(
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


def _mean(records: Sequence[Record], name: str) -> float:
    return float(np.mean([record[name] for record in records]))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _every_domain(records: list[Record]) -> tuple[str, bool]:
    drl = _some(records, "drl")
    domains = dict.fromkeys(record["domain"] for record in drl)
    without = [name for name in domains if min(r["delta"] for r in drl if r["domain"] == name) >= 0]
    found = f"in {len(domains) - len(without)} of {len(domains)} domains" + (
        f", not {', '.join(without)}" if without else ""
    )
    return found, not without and len(domains) == len(DOMAINS)


def _systematic(domain: str) -> Judge:
    def judge(records: list[Record]) -> tuple[str, bool]:
        drl = _some(records, "drl", domain)
        return f"DRL beats all peers in {_percent(_won(drl))} of {len(drl)} cells", _won(drl) >= _SYSTEMATIC

    return judge


def _sparse(records: list[Record]) -> tuple[str, bool]:
    won = _won(_some(records, "drl", "phishing"))
    return f"DRL beats all peers in {_percent(won)} of the cells", 0 < won < 1 / 3


def _page_significance(records: list[Record]) -> tuple[str, bool]:
    share = float(np.mean([record["q"] >= 0.8 for record in _some(records, "drl", "page")]))
    return f"q >= 0.8 in {_percent(share)} of the cells", 0.3 <= share <= 0.55


def _steel_oracle(records: list[Record]) -> tuple[str, bool]:
    oracle = _some(records, "oracle", "steelplates")
    errors, peers = _mean(oracle, "error"), _mean(oracle, "best_peer")
    return f"oracle {100 * errors:.1f} % error, best peer {100 * peers:.1f} %", errors < 0.02 and peers > 0.1


def _steel_close(records: list[Record]) -> tuple[str, bool]:
    drl = _some(records, "drl", "steelplates")
    gap, room = _mean(drl, "oracle_gap"), _mean(drl, "best_peer") - _mean(drl, "error") + _mean(drl, "oracle_gap")
    return f"{100 * gap:.1f} points above the oracle, the best peer {100 * room:.1f}", gap < room / 3


def _steel_twenty(records: list[Record]) -> tuple[str, bool]:
    smallest = min(record["delta"] for record in _some(records, "drl", "steelplates"))
    return f"smallest Δ {100 * smallest:+.1f} points", smallest < -0.20


def _tuning(domain: str, identity_better: bool) -> Judge:
    def judge(records: list[Record]) -> tuple[str, bool]:
        tuned, dummy = (_mean(_some(records, name, domain), "error") for name in ("drl", "drl-identity"))
        found = f"tuned {100 * tuned:.1f} % error, identity {100 * dummy:.1f} %"
        return found, dummy < tuned if identity_better else tuned < dummy

    return judge


def _radar(records: list[Record]) -> tuple[str, bool]:
    level = float(np.mean([record["oracle_p"] > LEVEL for record in _some(records, "drl", "sonar")]))
    return f"no significant difference in {_percent(level)} of the cells", level >= 0.5


def _beats_oracle(records: list[Record]) -> tuple[str, bool]:
    below = [record for record in _some(records, "drl", "sonar") if record["oracle_gap"] < 0]
    significant = sum(record["oracle_p"] <= LEVEL for record in below)
    return f"{len(below)} cells below the oracle, {significant} of them significantly", bool(below) and not significant


def _more_with_copies(records: list[Record]) -> tuple[str, bool]:
    none, some = (
        float(np.mean([record["oracle_gap"] < 0 for record in _some(records, "drl", "sonar", share)]))
        for share in (0.0, 0.2)
    )
    return f"{_percent(none)} of the cells at p_s = 0, {_percent(some)} at 0.2", some > none


def _better_than_a_coin(records: list[Record]) -> tuple[str, bool]:
    worst = max(record["best_peer"] for record in _some(records, "oracle"))
    return f"largest error of a best peer: {100 * worst:.0f} %", worst < 0.5


_PAPER: tuple[tuple[str, Judge], ...] = (
    ("In every domain there are (p, dim J) for which DRL beats all peers", _every_domain),
    ("Wins are almost systematic on page (at least 80 % of cells)", _systematic("page")),
    ("Wins are almost systematic on ionosphere (at least 80 %)", _systematic("ionosphere")),
    ("Wins are almost systematic on steelplates (at least 80 %)", _systematic("steelplates")),
    ("Wins are sparse on phishing (some, less than a third)", _sparse),
    ("On page, DRL statistically beats all peers in a third to half of the tests", _page_significance),
    ("On steelplates the oracle is almost perfect, the peers are far from it", _steel_oracle),
    ("On steelplates DRL is close to the oracle (less than a third of the peers' gap)", _steel_close),
    ("On steelplates DRL is at times more than 20 points better than the best peer", _steel_twenty),
    ("Tuning Gamma helps on firmteacher", _tuning("firmteacher", identity_better=False)),
    ("On mice the dummy Gamma = Id is better than the tuned one", _tuning("mice", identity_better=True)),
    ("On sonar DRL is often not significantly worse than the oracle (half of the cells)", _radar),
    ("On sonar DRL at times beats the oracle, never significantly", _beats_oracle),
    ("On sonar DRL beats the oracle more often as p_s grows", _more_with_copies),
    ("Some peer is always better than a coin", _better_than_a_coin),
)


def errors_by_bins(records: Iterable[Record], algorithm: str, caution: float | None = None) -> dict[int, list[float]]:
    """Errors on ionosphere for each number of bins, over the (p, dim J) that were run at every number of bins."""
    ours = [
        record
        for record in records
        if (record["domain"], record["setting"], record["algorithm"], record["caution"])
        == ("ionosphere", "vertical", algorithm, caution)
    ]
    bins = sorted({record["bins"] for record in ours})
    sizes = {size: {r["bins"] for r in ours if (r["peers"], r["shared"]) == size} for size in map(_size, ours)}
    common = {size for size, seen in sizes.items() if len(seen) == len(bins)}
    return {b: [r["error"] for r in ours if r["bins"] == b and _size(r) in common] for b in bins} if common else {}


def _size(record: Record) -> tuple[int, int]:
    return (record["peers"], record["shared"])


def _bins(records: Sequence[Record]) -> list[Verdict]:
    claim = "On ionosphere the number of bins matters little (mean error varies by at most 2 points)"
    errors = errors_by_bins(records, "drl")
    if len(errors) < 2:
        return [Verdict(claim, "no such cells in these results", None)]
    table = np.array([*errors.values()])
    by_bins, by_size = np.ptp(table.mean(axis=1)), np.ptp(table.mean(axis=0))
    found = f"varies by {100 * by_bins:.1f} points over bins, by {100 * by_size:.1f} over (p, dim J)"
    return [Verdict(claim, found, bool(by_bins <= _LITTLE))]


_AIMS = (
    ("vertical", 0.0, 0.010, "every row at every peer"),
    ("one-peer", 0.2, 0.017, "every row at one peer, p_s = 0.2"),
)


def _aims(records: Sequence[Record], choices: str) -> list[Verdict]:
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
                f"Our aim: matching beats all peers in at least 90 % of cells ({where}; {choices})",
                f"{_percent(won)} of {best.cells} cells {at}",
                won >= 0.9,
            ),
            Verdict(
                f"Our aim: matching on average at most {100 * aim:.1f} points from the oracle ({where}; {choices})",
                f"{100 * best.oracle_gap:.2f} points {at}",
                best.oracle_gap <= aim,
            ),
        ]
    return verdicts
