"""Scores and what they gain, on the paper's domains.

    RADOCRAFT_DATA=... python benchmarks/scores.py [DOMAIN ...] [--noise 0.5] [--draws 2] [--splits 2] [--kept FOLDER]

44 cells: eleven domains, two and four peers, two draws of who holds what; two shared features of four bins, a random
key of 365 values. What peers' own models say out of fold leaves through the gate; all is tested on rows that
nobody saw. Beside it: the best peer's boosting alone and its own scorer (in hindsight, both), late fusion (the sum of
the peers' log-odds less (p - 1) times the signature's), their average (nothing exchanged in training but calibration),
boosting on the truly joined table ("pooled": with a forest and a linear model, as scorers are), and "linked": a
logistic on the truly joined scores, which is the most that any head can be.
A line per cell, then means and wins; every draw has its own key and noise, and their mean counts. Models are fitted
once, and kept in a directory if one is given (benchmarks/scored.py).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import logit
from scored import DRAWS, KEYS, ScoredFold, cells_of, scored_folds
from sklearn.linear_model import LogisticRegression

from radocraft import Policy
from radocraft.gate import release_scores
from radocraft.learning._correlation import correlate
from radocraft.learning._head import fit_head
from radocraft.learning._outlook import Quality, Trials
from radocraft.learning._virtual import Merged
from radocraft.research.study._domains import DOMAINS

NAMES = ("joined", "joined, pooled", "linked", "scores, key", "scores, no key", "average", "late fusion")
OWN = ("boosting", "scorer")


def run_fold(
    fold: ScoredFold, rng: np.random.Generator, noise: float, draws: int
) -> Iterator[tuple[str, Quality, float]]:
    """(method, quality on the test rows, error it told) for every method and draw of key and noise."""
    labels, new = fold.new_labels, fold.new
    yield "joined", Quality.of(fold.joined, labels), np.nan
    yield "joined, pooled", Quality.of(fold.pooled, labels), np.nan
    yield "linked", Quality.of(linked(fold), labels), np.nan
    for at in range(fold.peers):
        yield f"boosting {at}", Quality.of(fold.boosting[:, at], labels), np.nan
        yield f"scorer {at}", Quality.of(new[:, at], labels), np.nan
    yield "average", Quality.of(new.mean(axis=1), labels), np.nan
    for _ in range(draws):
        for name, keyed in (("scores, key", True), ("scores, no key", False)):
            merged = released(fold, rng, Policy(noise=noise) if noise else Policy.exact(10), keyed=keyed)
            correlation = correlate(merged)
            head = fit_head(merged, correlation)
            signature = merged.log_odds[fold.places(fold.new_codes)]
            told = float(Trials(merged, correlation, (head,)).value(np.ones(1))[0])
            yield name, Quality.of(head.log_odds(np.column_stack([new, signature])), labels), told
            if keyed:
                fused = new.sum(axis=1) - (fold.peers - 1) * signature
                yield "late fusion", Quality.of(fused, labels), np.nan


def released(fold: ScoredFold, rng: np.random.Generator, policy: Policy, *, keyed: bool) -> Merged:
    """What leaves the peers, with a fresh key."""
    keys = rng.integers(0, KEYS, len(fold.labels)) if keyed else None
    cells = [
        release_scores(
            fold.contract,
            f"p{at}",
            signatures=fold.places(fold.codes),
            labels=2 * fold.labels - 1,
            scores=column,
            keys=keys,
            policy=policy,
        ).cells
        for at, column in enumerate(fold.scores.T)
    ]
    return Merged(fold.contract, tuple(cells))


def linked(fold: ScoredFold) -> np.ndarray:
    """Log-odds of the test rows by a logistic on the joined rows' scores and their signature's log-odds."""
    place, new_place = fold.places(fold.codes), fold.places(fold.new_codes)
    rows = np.array([np.bincount(place[fold.labels == label], minlength=place.max() + 1) for label in (0, 1)])
    share = (rows[1] + 2 * fold.labels.mean()) / (rows.sum(axis=0) + 2)
    odds = dict(enumerate(logit(share)))
    base = logit(fold.labels.mean())
    old = np.column_stack([fold.scores, [odds[at] for at in place]])
    model = LogisticRegression(C=1.0).fit(old, fold.labels)
    return model.decision_function(np.column_stack([fold.new, [odds.get(at, base) for at in new_place]]))


def run_cell(folds: Iterator[ScoredFold], seed: int, noise: float, draws: int) -> dict[str, list[float]]:
    """Mean error, AUC, log loss and told error of every method, and of the peer that is best in hindsight."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[list[float]]] = {}
    for fold in folds:
        for name, quality, told in run_fold(fold, rng, noise, draws):
            found.setdefault(name, []).append([quality.error, quality.auc, quality.log_loss, told])
    means = {name: np.mean(values, axis=0).tolist() for name, values in found.items()}
    best = {f"best {what}": _best([held for name, held in means.items() if name.startswith(what)]) for what in OWN}
    return {**{name: means[name] for name in NAMES}, **best}


def _best(peers: list[list[float]]) -> list[float]:
    error, auc, loss, _ = np.array(peers).T
    return [error.min(), auc.max(), loss.min(), np.nan]


def summary(cells: list[dict[str, list[float]]]) -> Iterator[str]:
    """Means, gaps to the joined table and to linked scores, and wins against the best peer."""
    values = {name: np.array([cell[name] for cell in cells]) for name in cells[0]}
    head = f"{'method':16s} {'error':>6s} {'AUC':>6s} {'logloss':>7s} {'joined':>6s} {'linked':>6s}"
    yield f"{head}  wins of {len(cells)} (error, AUC, log loss) against the best peer's boosting, scorer"
    for name, found in values.items():
        error, auc, loss, _ = found.mean(axis=0)
        gaps = [100 * (found[:, 0] - values[other][:, 0]).mean() for other in ("joined", "linked")]
        wins = "; ".join(_wins(found, values[f"best {what}"]) for what in OWN)
        row = f"{name:16s} {100 * error:6.2f} {auc:6.4f} {loss:7.4f} {gaps[0]:6.2f} {gaps[1]:6.2f}"
        yield f"{row}  {wins}"
    fused = (values["scores, key"][:, 2] < values["late fusion"][:, 2]).sum()
    yield f"late fusion beaten in log loss in {fused} of {len(cells)}"
    for name in ("scores, key", "scores, no key"):
        off = np.abs(values[name][:, 3] - values[name][:, 0])
        yield f"{name}: told error off by {100 * off.mean():.2f} points on average, {100 * off.max():.2f} at most"


def _wins(found: np.ndarray, best: np.ndarray) -> str:
    """In how many cells a method is better."""
    better = (found[:, 0] < best[:, 0], found[:, 1] > best[:, 1], found[:, 2] < best[:, 2])
    return ", ".join(str(int(each.sum())) for each in better)


def main() -> None:
    """Run the cells."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("domains", nargs="*", default=[*DOMAINS])
    wanted.add_argument("--noise", type=float, default=0.5, help="0 for exact mode")
    wanted.add_argument("--draws", type=int, default=2, help="draws of key and noise")
    wanted.add_argument("--kept", type=Path, help="where fitted scores are kept")
    wanted.add_argument("--splits", type=int, default=len(DRAWS), help="draws of who holds what")
    wanted.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    given = wanted.parse_args()
    cells, lines = [], []
    for number, cell in enumerate(cells_of(given.domains, DRAWS[: given.splits])):
        cells.append(run_cell(scored_folds(cell, given.kept), number, given.noise, given.draws))
        lines.append({"domain": cell.domain, "peers": cell.peers, "draw": cell.seed, **cells[-1]})
        if not given.json:
            told = ", ".join(f"{m} {100 * v[0]:.2f}" for m, v in cells[-1].items())
            print(f"{cell.domain} p={cell.peers} draw {cell.seed}: {told}", flush=True)
    print(json.dumps(lines, indent=1) if given.json else "\n".join(summary(cells)))


if __name__ == "__main__":
    main()
