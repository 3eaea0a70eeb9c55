"""What the gate costs: test error of matching on the acceptance grid, by policy.

    RADOCRAFT_DATA=... python benchmarks/gate_utility.py

The cells of `radocraft study run --preset grid44`: eleven domains, two and four
peers, one and three shared features, two seeds. For each policy: cells in which
the two seeds' mean error is below the best peer's, the mean gap to ridge on the
truly joined table in points of error, and the median epsilon of a release; at
caution 0 and 0.25. Columns are plain numbers, units come from the data.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from tables import arguments, show_lines
from threadpoolctl import threadpool_limits

from radocraft import Policy, release
from radocraft.gate import Noise
from radocraft.learning import fit_matching, merge_cells
from radocraft.learning._metrics import error_rate
from radocraft.research import PRESETS, read_results, run_study
from radocraft.research.study._cell import Cell, folds_of
from radocraft.research.study._methods import Fold, agree_contract, design_matrix
from radocraft.rows import craft_rows

CAUTIONS = (0.0, 0.25)
POLICIES = {
    "exact": Policy.exact(),
    "exact, min_rows 10": Policy.exact(10),
    "noise 0.3": Policy(noise=0.3),
    "noise 0.5 (default)": Policy(),
    "noise 0.5, labels only": Policy(signatures="labels-only"),
    "noise 1": Policy(noise=1.0),
}


def judged(fold: Fold, policy: Policy, seed: int) -> tuple[list[float], float]:
    """Test error of matching at each caution, and the median epsilon of the peers' releases."""
    contract = agree_contract(fold)
    released = []
    for table in fold.tables:
        noise, rows = Noise.seeded(seed, table.name), {"codes": table.codes, "labels": table.labels}
        given = {**rows, "values": table.values, "bounds": policy.bounds, "noise": noise}
        tally = craft_rows(contract, table.name, table.columns, **given)
        released.append(release(tally, contract, policy, noise))
    blocks = merge_cells(tuple(one.cells for one in released), contract)
    design = design_matrix(blocks, fold.test)
    errors = [error_rate(design @ fit_matching(blocks, caution).theta, fold.test.labels) for caution in CAUTIONS]
    return errors, float(np.median([one.epsilon for one in released])) if policy.noisy else np.inf


def oracles(cells: list[Cell]) -> dict[tuple[object, ...], dict[str, float]]:
    """The oracle's record of every cell; the best peer's error stands in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.parquet"
        run_study([replace(cell, algorithms="peers") for cell in cells], path)
        return {place(r): r for r in read_results(path) if r["algorithm"] == "oracle"}


def place(record: dict[str, object]) -> tuple[object, ...]:
    return tuple(record[name] for name in ("domain", "peers", "shared", "seed"))


def compared() -> Iterator[str]:
    """One line per policy."""
    cells = [cell for cell in PRESETS["grid44"].cells if cell.min_rows == 1]
    oracle = oracles(cells)
    yield f"| policy | cells won of 44 at caution {CAUTIONS} | points above the oracle | median epsilon |"
    yield "|---|---|---|---|"
    for name, policy in POLICIES.items():
        margins, spent = defaultdict(list), []
        for cell in cells:
            there = oracle[place(vars(cell))]
            found = [judged(fold, policy, seed) for seed, fold in enumerate(folds_of(cell))]
            errors = np.mean([error for error, _ in found], axis=0)
            spent += [epsilon for _, epsilon in found]
            margins[cell.domain, cell.peers, cell.shared].append([errors - there["best_peer"], errors - there["error"]])
        means = np.array([np.mean(seeds, axis=0) for seeds in margins.values()])
        wins, gap = (means[:, 0] < -1e-12).sum(axis=0), 100 * means[:, 1].mean(axis=0)
        won, off = ", ".join(map(str, wins)), ", ".join(f"{value:.2f}" for value in gap)
        yield f"| {name} | {won} | {off} | {np.median(spent):.0f} |"


if __name__ == "__main__":
    with threadpool_limits(1):
        show_lines(arguments(__doc__).parse_args(), compared())
