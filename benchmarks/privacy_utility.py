"""What differential privacy costs: test error of matching with it, without it, of the best peer and of the oracle.

    RADOCRAFT_DATA=... python benchmarks/privacy_utility.py [--quick]

Synthetic: two peers with five columns each, two shared features in 4 and 8 bins
(64 blocks); each peer's columns follow the shared features and one cause of their
own, and the label follows all of them. Real: the paper's domains, two random shared
features in four bins, the other columns dealt to two peers. Centre and scale stand
in the contract (here the training columns' own, as public knowledge), delta is 1e-6,
rows are bounded at norm sqrt(d). Mean over five splits (two at a million rows);
half of the rows, at most 200,000, are for testing. "refused": in some split the gate
let nothing leave, since the noise drowned the rows of a label.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from radocraft.policy.private import release_bounded
from radocraft.privacy.bounded import Bounded
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from radocraft import Contract, Policy, Tally, release
from radocraft.contract._columns import private_columns
from radocraft.errors import PolicyRefusal
from radocraft.learning._blocks import merge_cells
from radocraft.learning._matching import fit_matching

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
CAUTION = 0.25


def synthetic(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[int], list[int]]:
    """Columns, labels, which columns are shared, and bins of each."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(rows, 2))
    private = []
    for _ in range(2):
        cause = rng.normal(size=(rows, 1))
        own = shared @ rng.normal(size=(2, 5)) * 0.5 + cause @ rng.normal(size=(1, 5)) + rng.normal(size=(rows, 5))
        private.append(own)
    columns = np.hstack([shared, *private])
    weights = np.concatenate([[0.3, 0.3], rng.normal(size=10)])
    score = columns @ weights / np.linalg.norm(weights)
    labels = np.where(score + 0.5 * rng.normal(size=rows) > 0, 1, -1)
    return columns, labels, [0, 1], [4, 8]


def domain(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, list[int], list[int]]:
    """One of the paper's tables."""
    frame = pd.read_csv(Path(os.environ["RADOCRAFT_DATA"]) / f"{name}.csv")
    if name == "firmteacher":
        positive, frame = frame.iloc[:, -3] == 1, frame.iloc[:, :-4]
    else:
        positive = frame["class"] == 1
        frame = frame.drop(columns="class")
    columns = frame.to_numpy(dtype=float)
    columns = columns[:, columns.std(axis=0) > 0]
    shared = np.random.default_rng(seed).choice(columns.shape[1], 2, replace=False).tolist()
    return columns, np.where(positive, 1, -1), shared, [4, 4]


class Split:
    """One table cut into two peers, half for training."""

    def __init__(self, table: tuple[np.ndarray, np.ndarray, list[int], list[int]], seed: int) -> None:
        columns, self.labels, shared, bins = table
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(columns))
        half = max(len(order) // 2, len(order) - 200_000)
        self.train, self.test = order[:half], order[half:]
        rest = rng.permutation(np.setdiff1d(np.arange(columns.shape[1]), shared))
        self.peers = [np.sort(held) for held in np.array_split(rest, 2)]
        mean, spread = columns[self.train].mean(axis=0), columns[self.train].std(axis=0)
        spread[spread == 0] = 1.0
        self.values = (columns - mean) / spread
        edges = [cut(columns[self.train, at], count) for at, count in zip(shared, bins, strict=True)]
        self.codes = np.column_stack(
            [np.searchsorted(e, columns[:, at], side="right") for e, at in zip(edges, shared, strict=True)]
        )
        unit = {"kind": "numeric", "centre": 0.0, "scale": 1.0}
        self.contract = Contract.model_validate(
            {
                "name": "utility",
                "label": {"column": "label", "positive": 1, "negative": -1},
                "shared": [{"name": f"s{at}", "edges": e.tolist()} for at, e in enumerate(edges)],
                "peers": {
                    f"p{j}": {"features": {f"x{k:03d}": unit for k in held}} for j, held in enumerate(self.peers)
                },
            }
        )
        self.shared = self.contract.encode_shared(self.codes)

    def error(self, theta: np.ndarray) -> float:
        """Test error of a classifier."""
        features = np.hstack([np.ones((len(self.labels), 1)), self.shared, *(self.values[:, h] for h in self.peers)])
        return float(np.mean((features[self.test] @ theta > 0) != (self.labels[self.test] > 0)))

    def ridge(self, *pieces: np.ndarray) -> float:
        """Test error of ridge on the shared and some private columns."""
        features = np.hstack([self.shared, *pieces])
        model = RidgeCV(alphas=np.logspace(-6, 3, 19) * len(self.train))
        model.fit(features[self.train], self.labels[self.train])
        return float(np.mean((model.predict(features[self.test]) > 0) != (self.labels[self.test] > 0)))

    def matching(self) -> float:
        """Test error of expected matching without noise."""
        cells = []
        for j, held in enumerate(self.peers):
            names = tuple(f"x{k:03d}" for k in held)
            rows = self.train
            tally = Tally.of_rows(
                self.contract,
                f"p{j}",
                names,
                codes=self.codes[rows],
                labels=self.labels[rows],
                values=self.values[np.ix_(rows, held)],
            )
            cells.append(release(tally, self.contract, Policy()).cells)
        return self.error(fit_matching(merge_cells(tuple(cells), self.contract), CAUTION).theta)

    def private(self, epsilon: float) -> float:
        """Test error of expected matching under differential privacy."""
        cells = []
        for j, held in enumerate(self.peers):
            norm = float(len(held) ** 0.5)
            rules = {"epsilon": epsilon, "lifetime_epsilon": epsilon, "delta": 1e-6, "row_norm": norm}
            policy = Policy(mode="differential-privacy", ledger="unused", privacy=rules)
            sums = Bounded.of_rows(
                f"p{j}",
                private_columns(self.contract, f"p{j}"),
                codes=self.codes[self.train],
                labels=self.labels[self.train],
                values=self.values[np.ix_(self.train, held)],
                norm=norm,
            )
            try:
                cells.append(release_bounded(sums, self.contract, policy).cells)
            except PolicyRefusal:
                return float("nan")
        return self.error(fit_matching(merge_cells(tuple(cells), self.contract), CAUTION).theta)


def cut(values: np.ndarray, count: int) -> np.ndarray:
    edges = np.unique(np.quantile(values, np.arange(1, count) / count))
    edges = edges[edges > values.min()]
    return edges if len(edges) else values.max(keepdims=True)


def table_rows(quick: bool) -> Iterator[list[str]]:
    seeds = range(2 if quick else 5)
    cases = [("synthetic (10,000)", lambda seed: synthetic(20_000, seed), seeds)]
    if "RADOCRAFT_DATA" in os.environ:
        for name, rows in (("phishing", "5,528"), ("statlog", "2,218"), ("firmteacher", "5,400")):
            cases.append((f"{name} ({rows})", lambda seed, name=name: domain(name, seed), seeds))
    if not quick:
        cases.append(("synthetic (1,000,000)", lambda seed: synthetic(1_200_000, seed), range(2)))
    for name, draw, drawn in cases:
        splits = [Split(draw(seed), seed) for seed in drawn]
        alone = [min(split.ridge(split.values[:, held]) for held in split.peers) for split in splits]
        oracle = [split.ridge(*(split.values[:, held] for held in split.peers)) for split in splits]
        figures = [np.mean([split.private(epsilon) for split in splits]) for epsilon in EPSILONS]
        figures += [np.mean([split.matching() for split in splits]), np.mean(alone), np.mean(oracle)]
        yield [name, *("refused" if np.isnan(figure) else f"{100 * figure:.1f}" for figure in figures)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    head = ["table (training rows)", *(f"eps {epsilon:g}" for epsilon in EPSILONS), "no DP", "best peer", "oracle"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    with threadpool_limits(1):
        for row in table_rows(quick):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
