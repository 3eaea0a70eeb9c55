"""What models of columns say of new rows, held against held-out rows: intervals, headlines and the shape of scores.

    python benchmarks/expected.py intervals    error, AUC and log loss on the 44 cells, exact and by default noise
    python benchmarks/expected.py shape        how far normal scores are off at the true relation

Needs RADOCRAFT_DATA. Every figure is printed as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from models import cells, fitted, grid
from tables import arguments, markdown, show_lines
from threadpoolctl import threadpool_limits

from radocraft.gate import Noise, Policy, release
from radocraft.learning._blocks import merge_cells
from radocraft.learning._expected import SHAPE, figures_of
from radocraft.learning._forecast import Forecast
from radocraft.learning._matching import fit_matching
from radocraft.learning._metrics import auc
from radocraft.learning._population import INDEPENDENT, Population
from radocraft.model import Interval
from radocraft.research.study._cell import folds_of
from radocraft.research.study._methods import Fold, agree_contract, design_matrix
from radocraft.rows import craft_rows

POLICIES = {"exact": Policy.exact(10), "default": Policy()}
NAMES = {"error": "error", "auc": "AUC", "log_loss": "log loss"}
BEST = {"error": 0.0, "auc": 1.0, "log_loss": 0.0}


@dataclass(frozen=True)
class Held:
    """What is true on held-out rows, with two standard errors of it."""

    value: dict[str, float]
    error: dict[str, float]

    @classmethod
    def of(cls, log_odds: np.ndarray, labels: np.ndarray) -> Held:
        """Of these log-odds against labels of -1 and 1."""
        losses = np.logaddexp(0.0, -labels * log_odds)
        value = {"error": float(np.mean((log_odds > 0) != (labels > 0))), "auc": auc(log_odds, labels)}
        spread = [value["error"] * (1 - value["error"]), value["auc"] * (1 - value["auc"]), float(losses.var())]
        errors = dict(zip(NAMES, 2.0 * np.sqrt(np.array(spread) / len(labels)), strict=True))
        return cls({**value, "log_loss": float(losses.mean())}, errors)


def intervals() -> Iterator[str]:
    """Told against true, the test rows' own error included."""
    for name, policy in POLICIES.items():
        told: dict[str, list[tuple[float, ...]]] = {figure: [] for figure in NAMES}
        for cell in grid():
            found = [told_and_true(fold, policy, number) for number, fold in enumerate(folds_of(cell))]
            if any(not intervals for intervals, _ in found):
                continue
            for figure, rows in told.items():
                ends = [(one[figure].low, one[figure].value, one[figure].high) for one, _ in found]
                true = float(np.mean([held.value[figure] for _, held in found]))
                error = float(np.mean([held.error[figure] for _, held in found])) / len(found) ** 0.5
                rows.append((*np.mean(ends, axis=0), true, error))
        yield f"\n{name}, {len(told['error'])} of {len(grid())} cells (the others have under 300 rows)\n"
        heads = (
            "figure",
            "intervals that hold the truth",
            "headline off by",
            "mean of headline less truth",
            "half-width",
        )
        yield markdown(heads, [line(NAMES[figure], np.array(rows)) for figure, rows in told.items()])


def told_and_true(fold: Fold, policy: Policy, number: int) -> tuple[dict[str, Interval], Held]:
    """Of one fold: what the model says, and what held-out rows say of it."""
    contract, parts = agree_contract(fold), []
    for table in fold.tables:
        rows = {"codes": table.codes, "labels": table.labels, "values": table.values}
        units = Noise.seeded("units", number, table.name)
        tally = craft_rows(contract, table.name, table.columns, **rows, bounds=policy.bounds, noise=units)
        parts.append(release(tally, contract, policy, Noise.seeded(policy.noise, number, table.name)))
    blocks = merge_cells(tuple(part.cells for part in parts), contract)
    forecast = Forecast.of(blocks, fit_matching(blocks))
    design = design_matrix(blocks, fold.test)
    reach = np.inf if policy.bounds is None else policy.bounds.column  # as `predict` holds them
    design[:, forecast.fit.layout.shared.stop :] = np.clip(design[:, forecast.fit.layout.shared.stop :], -reach, reach)
    odds = forecast.odds()
    assert odds is not None
    return forecast.estimate().intervals, Held.of(odds.log_odds(design @ forecast.fit.theta), fold.test.labels)


def line(name: str, rows: np.ndarray) -> list[str]:
    """One line of the table."""
    low, value, high, true, error = rows.T
    held, off = (low - error <= true) & (true <= high + error), value - true
    shown = [f"{np.abs(off).mean():.4f}", f"{off.mean():+.4f}", f"{(high - low).mean() / 2:.4f}"]
    return [name, f"{held.sum()} of {len(held)} ({held.mean():.0%})", *shown]


def shape() -> Iterator[str]:
    """How far error, AUC and log loss are off where scores vary inside blocks as they do on the joined rows."""
    found: dict[str, list[float]] = {figure: [] for figure in NAMES}
    for cell in cells(tuple({cell.domain: None for cell in grid()}), (2, 4), (1, 3)):
        rows = [at_the_true_relation(fold) for fold in folds_of(cell) if len(fold.train.labels) >= 300]
        if not rows:
            continue
        for figure, (scale, least) in SHAPE.items():
            told, true = (float(np.mean([one[at][figure] for one in rows])) for at in (0, 1))
            found[figure].append(abs(told - true) / (scale * max(abs(told - BEST[figure]), least) ** 0.5))
    heads = ("figure", "c", "least d", "off by at most c d^(1/2) in")
    lines = [
        [
            NAMES[figure],
            str(SHAPE[figure][0]),
            str(SHAPE[figure][1]),
            f"{np.mean(np.array(ratios) <= 1.0):.0%} of cells",
        ]
        for figure, ratios in found.items()
    ]
    yield markdown(heads, lines)


def at_the_true_relation(fold: Fold) -> tuple[dict[str, float], dict[str, float]]:
    """What normal scores with the joined rows' variances by label make of a fit, and what held-out rows do."""
    blocks, fit = fitted(fold)
    population = Population.of(blocks, fit)
    spread, line_of_odds = population.spread, population.line(prior=True)
    assert spread is not None
    scores, labels = design_matrix(blocks, fold.train) @ fit.theta, fold.train.labels
    place = blocks.locate(fold.train.codes, labels)
    rows = np.maximum(np.bincount(place, minlength=len(blocks)), 1)
    rests = scores - (np.bincount(place, scores, len(blocks)) / rows)[place]
    variances = np.array([float(np.mean(rests[labels == label] ** 2)) for label in (-1, 1)])
    whole = (population.deviation(0.0) * population.kept) ** 2
    seen = replace(population, spread=replace(spread, ratios=variances / whole))
    test = design_matrix(blocks, fold.test) @ fit.theta
    held = Held.of(line_of_odds[0] + line_of_odds[1] * test, fold.test.labels)
    return figures_of(seen, line_of_odds, INDEPENDENT), held.value


SECTIONS = {"intervals": intervals, "shape": shape}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sections", nargs="*", choices=["all", *SECTIONS], default="all", help="which tables")
    given = parser.parse_args()
    chosen = [*SECTIONS] if "all" in given.sections else given.sections
    with threadpool_limits(1):
        show_lines(given, (text for name in chosen for text in SECTIONS[name]()))


if __name__ == "__main__":
    main()
