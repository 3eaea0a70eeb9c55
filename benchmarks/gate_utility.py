"""What the gate costs: test error of matching on the acceptance grid, by the policy's limits.

    RADOCRAFT_DATA=... python benchmarks/gate_utility.py

The cells of `radocraft study run --preset grid44`: eleven domains, two and four
peers, one and three shared features, two seeds. For each policy: cells in which
the two seeds' mean error is below the best peer's, the mean gap to ridge on the
truly joined table in points of error, and the mean error of the domains whose
columns are mostly truth values; at caution 0 and 0.25.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from radocraft import Policy, Tally, release
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._completion import complete
from radocraft.learning._matching import Ridge, generalised_cross_validation
from radocraft.learning._metrics import error_rate
from radocraft.research.study._cell import Cell, folds_of
from radocraft.research.study._methods import Fold, agree_contract, design_matrix
from radocraft.research.study._presets import PRESETS
from radocraft.research.study._results import read_results
from radocraft.research.study._run import run_study

CAUTIONS = (0.0, 0.25)
POLICIES = {
    "no limit": Policy(1),
    "min_rows 10, min_count 1": Policy(10, min_count=1),
    "min_rows 10 (min_count 5)": Policy(10),
    "min_rows 10, min_count 10": Policy(10, min_count=10),
    "min_rows 10, labels-only": Policy(10, signatures="labels-only"),
}


def merged(fold: Fold, policy: Policy) -> Blocks:
    """What the learner gets under a policy."""
    contract = agree_contract(fold)
    cells = []
    for table in fold.tables:
        rows = {"codes": table.codes, "labels": table.labels, "values": table.values}
        cells.append(release(Tally.of_rows(contract, table.name, table.columns, **rows), contract, policy).cells)
    return merge_cells(tuple(cells), contract)


def errors(cell: Cell) -> np.ndarray:
    """Mean test error by policy and caution."""
    out = []
    for fold in folds_of(cell):
        out.append([])
        for policy in POLICIES.values():
            known = complete(blocks := merged(fold, policy))
            problem, design = Ridge(known, generalised_cross_validation(known).chosen), design_matrix(blocks, fold.test)
            out[-1].append([error_rate(design @ problem.cautious(c), fold.test.labels) for c in CAUTIONS])
    return np.mean(out, axis=0)


def main() -> None:
    """Print one line per policy."""
    cells = [cell for cell in PRESETS["grid44"].cells if cell.min_rows == 1]
    with tempfile.TemporaryDirectory() as folder:
        run_study(cells, Path(folder) / "grid.parquet")
        records = read_results(Path(folder) / "grid.parquet")
    places = ("domain", "peers", "shared", "seed")
    oracle = {tuple(r[name] for name in places): r for r in records if r["algorithm"] == "oracle"}
    margins, found = defaultdict(list), defaultdict(list)
    for cell in cells:
        here, there = errors(cell), oracle[cell.domain, cell.peers, cell.shared, cell.seed]
        margins[cell.domain, cell.peers, cell.shared].append([here - there["best_peer"], here - there["error"]])
        found[cell.domain].append(here)
    means = np.array([np.mean(seeds, axis=0) for seeds in margins.values()])
    for at, name in enumerate(POLICIES):
        wins, gap = (means[:, 0, at] < -1e-12).sum(axis=0), 100 * means[:, 1, at].mean(axis=0)
        line = f"{name:27s} wins {wins} of {len(means)}, gap {gap.round(2)}"
        for domain in ("phishing", "firmteacher"):
            line += f", {domain} {(100 * np.mean(found[domain], axis=0)[at]).round(2)}"
        print(line)


if __name__ == "__main__":
    main()
