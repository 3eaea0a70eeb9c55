"""Scores and what they gain, on the paper's domains.

    RADOCRAFT_DATA=... python benchmarks/scores.py [DOMAIN ...] [--noise 0.5] [--draws 2]

44 cells: eleven domains, two and four peers, two draws of who holds what; two shared features, a random key of 365
values. Peers' own boosting is scored out of fold and leaves through the gate; all is tested on rows that nobody saw.
Beside it: the best peer's own boosting (in hindsight), late fusion (the sum of the peers' log-odds less (p - 1) times
the signature's), their average (nothing exchanged in training but calibration), boosting on the truly joined table.
A line per cell, then means and wins; the mean over draws of noise counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier

from radocraft import Contract, Policy
from radocraft.gate import release_scores
from radocraft.learning._correlation import correlate
from radocraft.learning._head import Quality, expect, fit_head
from radocraft.learning._virtual import Merged
from radocraft.research.study._cell import Cell, folds_of
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._methods import Fold
from radocraft.rows import score_rows

KEYS = 365
ENOUGH = 2000  # test rows of a cell; small domains are tested on all of their folds
NAMES = ("joined", "scores, key", "scores, no key", "average", "late fusion", "best peer")


@dataclass(frozen=True)
class Setup:
    """A fold as tables of peers and of new people."""

    contract: Contract
    tables: tuple[pa.Table, ...]
    test: tuple[pa.Table, ...]
    signatures: np.ndarray
    labels: np.ndarray


def setup_of(fold: Fold, rng: np.random.Generator) -> Setup:
    """The fold's peers with a key, and new people as each peer sees them."""
    sizes = [len(edges) + 2 for edges in fold.edges]
    shared = [{"name": f"s{at}", "categories": [f"c{code}" for code in range(size)]} for at, size in enumerate(sizes)]
    peers = {f"p{at}": {"features": {f"score{at}": {"kind": "score"}}} for at in range(len(fold.tables))}
    contract = Contract.model_validate(
        {
            "name": "cell",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "shared": shared,
            "peers": peers,
            "key": [{"name": "key", "categories": [*range(KEYS)]}],
        }
    )
    keys = rng.integers(0, KEYS, len(fold.train.labels))
    lots = list(range(len(fold.tables)))
    tables = tuple(_table(fold.train, fold.columns[at], keys) for at in lots)
    test = tuple(_table(fold.test, fold.columns[at], None) for at in lots)
    places = [len(feature.codes) for feature in contract.shared]
    signatures = np.ravel_multi_index(tuple(fold.test.codes.T), places)
    return Setup(contract, tables, test, signatures, (fold.test.labels > 0).astype(np.int64))


def _table(rows, columns, keys):
    held = {f"s{at}": [f"c{code}" for code in codes] for at, codes in enumerate(rows.codes.T)}
    held |= {f"x{at}": column for at, column in enumerate(rows.values[:, columns].T)}
    held["y"] = (rows.labels > 0).astype(np.int64)
    return pa.table(held if keys is None else {**held, "key": keys})


def run_fold(fold: Fold, rng: np.random.Generator, noise: float, draws: int) -> Iterator[tuple[str, Quality, float]]:
    """(method, quality on the test rows, error it told) for every method and draw of noise."""
    setup, labels = setup_of(fold, rng), (fold.test.labels > 0).astype(np.int64)
    joined = HistGradientBoostingClassifier(random_state=0).fit(whole(fold.train), fold.train.labels > 0)
    share = np.clip(joined.predict_proba(whole(fold.test))[:, 1], 1e-6, 1 - 1e-6)
    yield "joined", Quality.of(np.log(share / (1 - share)), labels), np.nan
    scored = [score_rows(table, setup.contract, f"p{at}") for at, table in enumerate(setup.tables)]
    new = np.column_stack(
        [
            scorer.score(table).column(f"score{at}").to_numpy()
            for at, ((_, scorer), table) in enumerate(zip(scored, setup.test, strict=True))
        ]
    )
    alone = [Quality.of(column, labels) for column in new.T]
    yield (
        "best peer",
        Quality(min(q.error for q in alone), max(q.auc for q in alone), min(q.log_loss for q in alone)),
        np.nan,
    )
    yield "average", Quality.of(new.mean(axis=1), labels), np.nan
    for _ in range(draws):
        for name, keyed in (("scores, key", True), ("scores, no key", False)):
            policy = Policy(noise=noise) if noise else Policy.exact(10)
            cells = [
                release_scores(
                    setup.contract,
                    f"p{at}",
                    signatures=rows.signatures.astype(np.int64),
                    labels=rows.labels.astype(np.int64),
                    scores=rows.scores.astype(np.float64),
                    keys=rows.keys.astype(np.int64) if keyed else None,
                    policy=policy,
                ).cells
                for at, (rows, _) in enumerate(scored)
            ]
            merged = Merged(setup.contract, tuple(cells))
            correlation = correlate(merged)
            head = fit_head(merged, correlation)
            features = np.column_stack([new, merged.log_odds[setup.signatures]])
            told = expect(merged, head, correlation).here.error
            yield name, Quality.of(head.log_odds(features), labels), told
            if keyed:
                fused = new.sum(axis=1) - (new.shape[1] - 1) * merged.log_odds[setup.signatures]
                yield "late fusion", Quality.of(fused, labels), np.nan


def whole(rows) -> np.ndarray:
    """Codes and values of whole rows, as only the joined table has them."""
    return np.column_stack([rows.codes, rows.values])


def run_cell(cell: Cell, noise: float, draws: int) -> dict[str, list[float]]:
    """Mean error, AUC, log loss and told error of every method."""
    rng = np.random.default_rng([cell.seed, cell.peers])
    found: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    tested = 0
    for fold in folds_of(cell):
        for name, quality, told in run_fold(fold, rng, noise, draws):
            found[name].append([quality.error, quality.auc, quality.log_loss, told])
        tested += len(fold.test.labels)
        if tested >= ENOUGH:
            break
    return {name: np.mean(values, axis=0).tolist() for name, values in found.items()}


def summary(cells: list[dict[str, list[float]]]) -> Iterator[str]:
    """Means, gaps to the joined table, and wins against the best peer."""
    values = {name: np.array([cell[name] for cell in cells]) for name in NAMES}
    head = f"{'method':16s} {'error':>6s} {'AUC':>6s} {'logloss':>7s} {'gap':>6s}"
    yield f"{head}  wins (error, AUC, log loss) of {len(cells)}"
    best, joined = values["best peer"], values["joined"]
    for name, found in values.items():
        error, auc, loss, _ = found.mean(axis=0)
        gap = 100 * (found[:, 0] - joined[:, 0]).mean()
        wins = (found[:, 0] < best[:, 0]).sum(), (found[:, 1] > best[:, 1]).sum(), (found[:, 2] < best[:, 2]).sum()
        yield f"{name:16s} {100 * error:6.2f} {auc:6.4f} {loss:7.4f} {gap:6.2f}  {wins[0]}, {wins[1]}, {wins[2]}"
    keyed = values["scores, key"]
    fused = (keyed[:, 2] < values["late fusion"][:, 2]).sum()
    yield f"late fusion beaten in log loss in {fused} of {len(cells)}"
    for name in ("scores, key", "scores, no key"):
        off = np.abs(values[name][:, 3] - values[name][:, 0])
        yield f"{name}: told error off by {100 * off.mean():.2f} points on average, {100 * off.max():.2f} at most"


def main() -> None:
    """Run the cells."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("domains", nargs="*", default=[*DOMAINS])
    wanted.add_argument("--noise", type=float, default=0.5, help="0 for exact mode")
    wanted.add_argument("--draws", type=int, default=2, help="draws of noise")
    wanted.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    given = wanted.parse_args()
    cells, lines = [], []
    for name in given.domains:
        for peers in (2, 4):
            for seed in (0, 1):
                cell = Cell(name, peers, 2, DOMAINS[name].default, folds=5, seed=seed)
                cells.append(run_cell(cell, given.noise, given.draws))
                lines.append({"domain": name, "peers": peers, "draw": seed, **cells[-1]})
                if not given.json:
                    told = ", ".join(f"{m} {100 * v[0]:.2f}" for m, v in cells[-1].items())
                    print(f"{name} p={peers} draw {seed}: {told}", flush=True)
    print(json.dumps(lines, indent=1) if given.json else "\n".join(summary(cells)))


if __name__ == "__main__":
    main()
