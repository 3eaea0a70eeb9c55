"""What models state beside what is true, on the paper's domains: the tables of docs/evidence/models.md.

    python benchmarks/models.py probabilities  calibration and log loss on held-out rows
    python benchmarks/models.py certificate    guaranteed loss against the truly joined table
    python benchmarks/models.py linked         200 linked rows against every fixed caution
    python benchmarks/models.py due            what block sums tell of the relation between peers' scores
    python benchmarks/models.py missing        a fifth of all private values removed
    python benchmarks/models.py splines        splines at the peers against the linear oracle
    python benchmarks/models.py second         estimates from counts of scores (second round), without noise
    python benchmarks/models.py strengths      one ridge strength against one for shared features and one for private

Needs RADOCRAFT_DATA. Every figure is printed as Markdown.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import numpy as np
import pyarrow as pa
from tables import arguments, markdown, records
from threadpoolctl import threadpool_limits

from radocraft import Contract, Part, Policy, learn, recalibrate, share, share_counts
from radocraft.demo._baselines import FINE_GAMMAS, PeerTable, fit_ridge
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._fit import Fit
from radocraft.learning._linked import CAUTIONS, LinkedRows, fit_linked
from radocraft.learning._matching import DEFAULT_CAUTION, Ridge, fit_matching, generalised_cross_validation
from radocraft.learning._metrics import auc, error_rate
from radocraft.learning._population import Population
from radocraft.learning._relation import largest_correlation, left_over
from radocraft.research.study._cell import Cell, folds_of
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._methods import Fold, agree_contract, design_matrix, merged_blocks
from radocraft.research.study._metrics import calibration_error, reliability
from radocraft.rows import craft_rows
from radocraft.sums._cells import standardise

LARGE = ("mice", "winered", "statlog", "winewhite", "page", "firmteacher", "phishing", "steelplates")


def cells(domains: tuple[str, ...], peers: tuple[int, ...], shared: tuple[int, ...], **more: object) -> Iterator[Cell]:
    for name in domains:
        for p in peers:
            for count in shared:
                made = Cell(name, p, count, DOMAINS[name].default, folds=5, gammas="fine")
                yield replace(made, **more)  # type: ignore[arg-type]


def grid() -> list[Cell]:
    return list(cells(tuple(DOMAINS), (2, 4), (1, 3)))


def fitted(fold: Fold, caution: float = 0.25) -> tuple[Blocks, Fit]:
    blocks = merged_blocks(fold, agree_contract(fold))
    return blocks, fit_matching(blocks, caution)


def print_table(title: str, head: list[str], lines: list[list[str]]) -> None:
    print(f"\n{title}\n\n{markdown(head, lines)}", flush=True)


def by_domain(judge: Callable[[Fold], tuple[float, ...]]) -> dict[str, np.ndarray]:
    """What is found in each cell of a domain, the mean over its folds."""
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    for cell in grid():
        found[cell.domain].append(np.mean([judge(fold) for fold in folds_of(cell)], axis=0))
    return {domain: np.array(rows) for domain, rows in found.items()}


def probabilities() -> None:
    """Expected calibration error in ten bins and log loss on held-out rows, told in three ways."""
    ways = ("as given", "spread at caution 0", "by signature")
    head = ["domain", *(f"ECE, {way}" for way in ways), *(f"log loss, {way}" for way in ways)]
    found = by_domain(_probabilities)
    means = {domain: rows.mean(axis=0) for domain, rows in found.items()}
    means["all"] = np.mean([*means.values()], axis=0)
    lines = [[domain, *(f"{value:.3f}" for value in mean)] for domain, mean in means.items()]
    print_table("How far probabilities are off", head, lines)
    most = [f"{domain} {rows[:, 0].max():.3f}" for domain, rows in found.items()]
    print(f"\nLargest ECE of a cell, as given: {', '.join(most)}")


def _probabilities(fold: Fold) -> tuple[float, ...]:
    blocks, fit = fitted(fold)
    population = Population.of(blocks, fit)
    bold = Population.of(blocks, replace(fit, settings={**fit.settings, "caution": 0.0}))
    scores, labels = design_matrix(blocks, fold.test) @ fit.theta, fold.test.labels
    told = [one.odds(prior=True).log_odds(scores) for one in (population, bold)]
    told.append(_by_signature(population, told[1], scores, fold.test.codes))
    gaps = [off_by(1 / (1 + np.exp(-each)), labels) for each in told]
    return *gaps, *(float(np.mean(np.logaddexp(0.0, -labels * each))) for each in told)


def _by_signature(population: Population, log_odds: np.ndarray, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Bayes over the two blocks of each row's own signature, where both are there."""
    blocks, spread = population.blocks, population.deviation(0.0)
    ones = np.ones(len(codes), dtype=np.int64)
    yes, no = blocks.locate(codes, ones), blocks.locate(codes, -ones)
    middle = (population.scores[yes] + population.scores[no]) / 2
    slope = (population.scores[yes] - population.scores[no]) / spread**2
    own = np.log(blocks.weights[yes] / blocks.weights[no]) + slope * (scores - middle)
    return np.where((yes >= 0) & (no >= 0), own, log_odds)


def off_by(probability: np.ndarray, labels: np.ndarray) -> float:
    """Expected calibration error over ten equal bins."""
    return calibration_error(reliability(probability, labels))


def certificate() -> None:
    """Guaranteed loss >= true training loss; at caution 1 the true loss <= the best peer's own."""
    lines = []
    for noise in (0.0, 0.5):
        held = {caution: [0, 0, 0] for caution in (0.0, 0.25, 1.0)}
        for cell in grid():
            for fold in folds_of(replace(cell, noise=noise, min_rows=10 if noise else 1)):
                for caution, counts in held.items():
                    true, fit = _true_loss(fold, caution)
                    counts[0] += 1
                    counts[1] += true <= fit.losses["guaranteed"] * (1 + 1e-9)
                    counts[2] += true <= min(fit.peer_losses.values()) * (1 + 1e-9)
        lines += [[f"{noise:g}", f"{caution:g}", *map(str, counts)] for caution, counts in held.items()]
    head = ["noise", "caution", "fits", "true loss within the guarantee", "true loss no worse than the best peer's"]
    print_table("The certificate on the truly joined training rows", head, lines)


def _true_loss(fold: Fold, caution: float) -> tuple[float, Fit]:
    blocks, fit = fitted(fold, caution)
    margins = fold.train.labels * (design_matrix(blocks, fold.train) @ fit.theta)
    penalty = Ridge(fit.known, float(fit.settings["alpha"])).penalty @ fit.theta**2
    return float(np.mean((1 - margins) ** 2) + penalty), fit


def linked() -> None:
    """200 linked rows choose; squared loss on held-out rows against every fixed caution."""
    rng = np.random.default_rng(0)
    lines, totals = [], []
    for cell in cells(LARGE, (2, 4), (2,)):
        found = np.array([_linked(fold, rng) for fold in list(folds_of(cell))[:2]]).mean(axis=0)
        lines.append([f"{cell.domain}, {cell.peers} peers", *(f"{value:.4f}" for value in found)])
        totals.append(found)
    mean = np.mean(totals, axis=0)
    lines.append(["mean", *(f"{value:.4f}" for value in mean)])
    best = mean[: len(CAUTIONS)].min()
    lines.append(
        ["linked rows against the best fixed caution", *[""] * len(CAUTIONS), f"{100 * (mean[-1] / best - 1):+.2f} %"]
    )
    head = ["cell", *(f"caution {caution:g}" for caution in CAUTIONS), "200 linked rows"]
    print_table("Squared loss on held-out rows", head, lines)


def _linked(fold: Fold, rng: np.random.Generator) -> list[float]:
    blocks, fit = fitted(fold)
    train, test = design_matrix(blocks, fold.train), design_matrix(blocks, fold.test)
    pick = rng.choice(len(train), 200, replace=False)
    labels = fold.train.labels[pick]
    rows = LinkedRows(
        train[pick], labels, blocks.contract.label.targets(labels), blocks.locate(fold.train.codes[pick], labels)
    )
    problem = Ridge(fit.known, float(fit.settings["alpha"]))
    thetas = [*(problem.cautious(caution) for caution in CAUTIONS), fit_linked(blocks, rows).theta]
    return [float(np.mean((1 - fold.test.labels * (test @ theta)) ** 2)) for theta in thetas]


def missing() -> None:
    """A fifth of the private values removed at random, at the peers and in the test rows."""
    lines = []
    for cell in cells(("wine", "sonar", "ionosphere"), (2,), (2,)):
        rows = []
        for seed in range(4):
            for fold in folds_of(replace(cell, seed=seed)):
                holes = with_gaps(fold, 0.2, seed)
                rows.append([*_errors(fold), *_errors(holes), _pairwise_error(holes)])
        full, oracle, gaps, oracle_gaps, pairs = 100 * np.mean(rows, axis=0)
        shown = [full, gaps, gaps - full, oracle, oracle_gaps, oracle_gaps - oracle, pairs]
        lines.append([cell.domain, *(f"{value:.1f}" for value in shown)])
    head = ["domain", "matching %", "gaps %", "rise", "oracle %", "mean-imputed, gaps %", "rise", "pairwise, gaps %"]
    print_table("Test error with a fifth of the private values removed", head, lines)


def _pairwise_error(fold: Fold) -> float:
    """Matching on block means and moments over present values only, negative eigenvalues cut off by the learner."""
    contract = agree_contract(fold)
    held = []
    for table in fold.tables:
        tally = craft_rows(
            contract,
            table.name,
            table.columns,
            codes=table.codes,
            labels=table.labels,
            values=table.values,
            bounds=None,
        )
        whole = standardise(tally, contract)
        tally = tally.rebased(whole.centre, whole.scale)
        width, rows = len(table.columns), tally.rows[:, None]
        sums = tally.sums * rows / np.maximum(tally.present, 1)
        outer = np.column_stack([contract.encode_shared(tally.codes), np.ones(len(rows))])
        moments, known = whole.moments.copy(), tally.moments.sum(axis=0)
        counts = np.maximum(known[width : 2 * width, width : 2 * width], 1)
        moments[:width, :width] = known[:width, :width] / counts * tally.total
        moments[:width, width:] = (sums / rows).T @ (outer * rows)
        moments[width:, :width] = moments[:width, width:].T
        by_label = np.zeros_like(whole.by_label)
        by_label[0] = moments  # only their sum over labels matters here
        held.append(replace(whole, sums=sums, by_label=by_label))
    blocks = merge_cells(tuple(held), contract)
    return error_rate(design_matrix(blocks, fold.test) @ fit_matching(blocks, DEFAULT_CAUTION).theta, fold.test.labels)


def with_gaps(fold: Fold, share: float, seed: int) -> Fold:
    rng = np.random.default_rng(seed)

    def holes(values: np.ndarray) -> np.ndarray:
        return np.where(rng.random(values.shape) < share, np.nan, values)

    tables = tuple(replace(table, values=holes(table.values)) for table in fold.tables)
    train, test = (replace(rows, values=holes(rows.values)) for rows in (fold.train, fold.test))
    return replace(fold, tables=tables, train=train, test=test)


def _errors(fold: Fold) -> tuple[float, float]:
    blocks, fit = fitted(fold)
    contract = blocks.contract
    oracle = fit_ridge(
        contract.encode_shared(fold.train.codes), fold.train.values, fold.train.labels, gammas=FINE_GAMMAS
    )
    theirs = oracle.scores(contract.encode_shared(fold.test.codes), fold.test.values)
    return (
        error_rate(design_matrix(blocks, fold.test) @ fit.theta, fold.test.labels),
        error_rate(theirs, fold.test.labels),
    )


def splines() -> None:
    """Splines at the peers, the whole road through contract, craft, part and model."""
    lines = []
    for cell in cells(("winewhite", "page", "ionosphere"), (2,), (2,)):
        rows = np.array([_spline_errors(fold) for fold in folds_of(cell)]).mean(axis=0)
        lines.append([cell.domain, *(f"{100 * value:.1f}" for value in rows)])
    head = ["domain", "matching, linear %", "linear oracle %", "matching, splines %"]
    print_table("Test error, 2 peers, 2 shared features, 5-fold", head, lines)


def _spline_errors(fold: Fold) -> tuple[float, float, float]:
    straight = agree_contract(fold)
    curved = straight.model_dump()
    for held in curved["peers"].values():
        held["features"] = {name: {"kind": "spline"} for name in held["features"]}
    contract = Contract.model_validate(curved)
    parts = [exact_part(as_table(contract, table), contract, table.name) for table in fold.tables]
    columns = tuple(name for table in fold.tables for name in table.columns)
    test = as_table(contract, PeerTable("test", columns, fold.test.codes, fold.test.labels, fold.test.values))
    scores = learn(parts, contract).predict(test).score
    linear, oracle = _errors(fold)
    return linear, oracle, error_rate(scores, fold.test.labels)


def second() -> None:
    """Both estimates against held-out rows, by exact sums and counts."""
    lines, every = [], []
    for name in LARGE:
        found = []
        for cell in cells((name,), (2, 4), (1, 3)):
            found += [_second(fold) for fold in list(folds_of(cell))[:2]]
        means = np.mean(found, axis=0)
        every.append([*np.abs(means[1:3] - means[0]), *np.abs(means[4:6] - means[3]), *means[6:]])
        errors = (f"{100 * value:.1f}" for value in means[:3])
        lines.append([name, *errors, *(f"{value:.3f}" for value in means[3:])])
    off = np.mean(every, axis=0)
    shown = [*(f"{100 * value:.2f}" for value in off[:2]), "", *(f"{value:.3f}" for value in off[2:])]
    lines.append(["off by, and mean ECE", "", *shown])
    head = [
        "domain",
        "true error %",
        "normal %",
        "counted %",
        "true AUC",
        "normal",
        "counted",
        "ECE",
        "ECE, recalibrated",
    ]
    print_table("Error and AUC to expect, and calibration, from normal scores and from counts of scores", head, lines)


def _second(fold: Fold) -> list[float]:
    contract = agree_contract(fold)
    tables = {table.name: as_table(contract, table) for table in fold.tables}
    parts = [exact_part(table, contract, peer) for peer, table in tables.items()]
    model = learn(parts, contract)
    policy = Policy.exact()
    better = recalibrate(model, [share_counts(table, model, peer, policy=policy) for peer, table in tables.items()])
    columns = tuple(name for table in fold.tables for name in table.columns)
    test = as_table(contract, PeerTable("test", columns, fold.test.codes, fold.test.labels, fold.test.values))
    labels, scores = fold.test.labels, [each.predict(test) for each in (model, better)]
    errors = [float(np.mean(each.positive != (labels > 0))) for each in scores]
    calibration = [off_by(each.probability, labels) for each in scores]
    before, now = model.estimate.outlooks[0], (better.second_round or model.estimate).outlooks[0]
    return [
        *(errors[0], before.error, now.error),
        *(auc(scores[0].score, labels), float(before.auc or 0), float(now.auc or 0)),
        *(calibration[0], calibration[1]),
    ]


def due() -> None:
    """What sums over the same people tell of the correlation of the peers' scores inside blocks, and what it is."""
    lines = []
    for cell in cells(tuple(DOMAINS), (2, 4), (3,)):
        blocks, missed, seen, most, true, chosen = np.mean([_due(fold) for fold in folds_of(cell)], axis=0)
        shown = [f"{blocks:.0f}", f"{missed:.1f}", f"{seen:.2f}", f"{most:.2f}", f"{true:.2f}", f"{chosen:.2f}"]
        lines.append([f"{cell.domain}, {cell.peers} peers", *shown])
    head = ["cell", "blocks", "scatter, as expected = 1", "correlation seen", "at most", "true", "caution needed"]
    print_table("Correlation of the peers' scores inside blocks, three shared features", head, lines)


def _due(fold: Fold) -> list[float]:
    blocks, fit = fitted(fold, 0.0)
    known, theta = fit.known, fit.theta
    rows = design_matrix(blocks, fold.train)
    low, high = (float(known.squares(theta, caution)) for caution in (0.0, 1.0))
    true = (known.total * float(np.mean((rows @ theta) ** 2)) - low) / (high - low)
    (left,) = left_over(blocks, known, theta[:, None])
    moved = left.products / max(left.people, 1.0)
    own = known.hidden(theta) / (known.total - len(blocks)) ** 0.5
    others = ~np.eye(len(own), dtype=bool)
    seen = moved[others].sum() / np.outer(own, own)[others].sum()
    scatter = float(np.max(np.diag(moved) / own**2))
    chosen = fit_matching(blocks).settings["caution"]
    return [len(blocks), scatter, seen, largest_correlation(blocks, known, theta), true, float(chosen)]


RATIOS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)


def strengths() -> None:
    """A strength of their own for shared columns, chosen by generalised cross-validation like the other."""
    found: list[list[float]] = []
    for cell in (replace(cell, seed=seed) for seed in range(4) for cell in grid()):
        found += [_strengths(fold) for fold in folds_of(cell)]
    one, two, other = 100 * np.mean(found, axis=0)
    head = ["one strength, error %", "two strengths, error %", "folds where the second differs"]
    line = [f"{one:.2f}", f"{two:.2f}", f"{other:.0f} %"]
    print_table("One ridge strength against two, 44 cells, four seeds, caution 0", head, [line])


def _strengths(fold: Fold) -> list[float]:
    blocks, fit = fitted(fold, 0.0)
    design = design_matrix(blocks, fold.test)
    trials = []
    for ratio in RATIOS:
        stretch = np.ones(fit.layout.size)
        stretch[fit.layout.shared] = ratio**-0.5
        known = replace(
            fit.known,
            r=fit.known.r * stretch,
            between=fit.known.between * np.outer(stretch, stretch),
            explained=fit.known.explained * np.outer(stretch, stretch),
        )
        tuning = generalised_cross_validation(known)
        trials.append((min(tuning.scores), ratio, stretch * Ridge(known, tuning.chosen).cautious(0.0)))
    _, ratio, theta = min(trials, key=lambda trial: trial[0])
    errors = [error_rate(design @ weights, fold.test.labels) for weights in (fit.theta, theta)]
    return [*errors, float(ratio != 1.0)]


def exact_part(table: pa.Table, contract: Contract, peer: str) -> Part:
    return share(table, contract, peer, policy=Policy.exact())


def as_table(contract: Contract, held: PeerTable) -> pa.Table:
    """A peer's arrays as the raw table it would hold: a number in the middle of its bin for every code."""
    columns = {contract.label.column: held.labels}
    for at, shared in enumerate(contract.shared):
        edges = np.array(shared.edges)
        inside = np.concatenate([edges[:1] - 1, (edges[:-1] + edges[1:]) / 2, edges[-1:] + 1, [np.nan]])
        columns[shared.name] = inside[held.codes[:, at]]
    return pa.table(columns | dict(zip(held.columns, held.values.T, strict=True)))


SECTIONS: dict[str, Callable[[], None]] = {
    "probabilities": probabilities,
    "certificate": certificate,
    "linked": linked,
    "due": due,
    "missing": missing,
    "splines": splines,
    "second": second,
    "strengths": strengths,
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS], default=[*SECTIONS], help="which tables")
    given = parser.parse_args()
    printed = StringIO()
    with threadpool_limits(1), redirect_stdout(printed if given.as_json else sys.stdout):
        for name in given.sections:
            SECTIONS[name]()
    if given.as_json:
        print(json.dumps(records(printed.getvalue()), indent=1))


if __name__ == "__main__":
    main()
