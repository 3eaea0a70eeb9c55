"""Every assumption relaxed: the tables of docs/evidence/relaxed.md, each method beside its rivals.

    python benchmarks/relaxed.py classes        # several classes
    python benchmarks/relaxed.py numbers        # numeric labels
    python benchmarks/relaxed.py one-label      # one labelled peer of two, all study domains
    python benchmarks/relaxed.py draws          # the same in short, for ten draws of features, rows and folds
    python benchmarks/relaxed.py draws-gated    # the same behind the default gate, five draws
    python benchmarks/relaxed.py own-labels     # the paper's route: the other peer labels its own rows
    python benchmarks/relaxed.py made-up        # one labelled peer where proportions tell the classes apart

One process, one BLAS thread. Domains come from RADOCRAFT_DATA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from tables import arguments, show_lines
from threadpoolctl import threadpool_limits

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.gate import Noise, Policy, release
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._forecast import Forecast
from radocraft.learning._matching import DEFAULT_CAUTION, fit_matching
from radocraft.parts import Part
from radocraft.research.study._domains import DOMAINS, file_of, load_table, read_csv
from radocraft.research.study._scenarios import FeatureSplit, Scenario, agree_edges, code_shared, split_features
from radocraft.rows import craft, craft_rows, label_rows, open_source
from radocraft.rows._ranking import Ranking

ALPHAS = np.logspace(-4, 4, 17)
FOLDS = 3
SMALL = 500
DRAWS = ((200, 0), (900, 0), *((seed, seed) for seed in range(2000, 2800, 100)))


def contract_for(label: dict[str, object], edges: tuple[tuple[float, ...], ...], held: list[list[str]]) -> Contract:
    shared = [{"name": f"s{at}", "edges": list(cuts)} for at, cuts in enumerate(edges)]
    peers = {f"p{at}": {"features": dict.fromkeys(names, "numeric")} for at, names in enumerate(held)}
    return Contract.model_validate({"name": "relaxed", "label": label, "shared": shared, "peers": peers})


class Cell:
    """One table cut among peers: training rows crafted, gated and merged; test rows whole."""

    def __init__(self, features: Floats, peers: int, shared: int, *, seed: int, train: Ints, bins: int = 4) -> None:
        self.split = split_features(features.shape[1], Scenario(peers, shared, bins, seed=seed))
        filled = np.where(np.isnan(features), np.nanmean(features[train], axis=0), features)
        self.edges = agree_edges(filled[train][:, self.split.shared], bins)
        self.codes = code_shared(filled[:, self.split.shared], self.edges)
        self.features, self.train = filled, train
        self.names = [[f"x{column:03d}" for column in own] for own in self.split.private]

    def blocks(
        self,
        label: dict[str, object],
        codes: Ints,
        *,
        target: Floats | None = None,
        policy: Policy,
        known: tuple[int, ...] | None = None,
    ) -> Blocks:
        """The merged blocks; ``known`` are the peers that hold the label."""
        if known is not None:
            label = {**label, "held_by": [f"p{at}" for at in known]}
        contract = contract_for(label, self.edges, self.names)
        rng, cells = np.random.default_rng(0), []
        for at, (own, names) in enumerate(zip(self.split.private, self.names, strict=True)):
            order = rng.permutation(self.train)
            values = self.features[np.ix_(order, own)]
            columns = tuple(names)
            if target is not None:
                values, columns = np.column_stack([values, target[order]]), (*names, str(label["column"]))
            labels = codes[order] if known is None or at in known else np.zeros_like(codes[order])
            noise = Noise.seeded("relaxed", at)
            rows = {"codes": self.codes[order], "labels": labels, "values": values}
            tally = craft_rows(contract, f"p{at}", columns, **rows, bounds=policy.bounds, noise=noise)
            cells.append(release(tally, contract, policy, noise).cells)
        return merge_cells(tuple(cells), contract)

    def design(self, blocks: Blocks, rows: Ints) -> Floats:
        """Whole rows in the model's coordinates."""
        columns = np.concatenate([self.split.private[int(peer[1:])] for peer in blocks.peers])
        centre = np.concatenate([cells.centre for cells in blocks.cells])
        scale = np.concatenate([cells.scale for cells in blocks.cells])
        values = (self.features[np.ix_(rows, columns)] - centre) / scale
        return np.hstack([np.ones((len(rows), 1)), blocks.contract.encode_shared(self.codes[rows]), values])

    def plain(self, rows: Ints, peers: tuple[int, ...]) -> Floats:
        """Rows as a peer (or the oracle, with all peers) has them: shared one-hot, own columns standardised."""
        own = np.concatenate([self.split.private[at] for at in peers])
        values = self.features[:, own]
        mean, deviation = values[self.train].mean(axis=0), values[self.train].std(axis=0)
        values = (values - mean) / np.where(deviation > 0, deviation, 1.0)
        hot = [np.eye(len(cuts) + 2)[self.codes[:, at]] for at, cuts in enumerate(self.edges)]
        return np.hstack([*hot, values])[rows]


def original(name: str) -> tuple[Floats, Ints]:
    """A domain's features and its own labels, numbered from 1."""
    labels = np.asarray(read_csv(file_of(name)).column("class").to_numpy(zero_copy_only=False))
    return load_table(name).features, np.unique(labels, return_inverse=True)[1] + 1


def classes() -> Iterator[str]:
    yield "| domain | p | dim J | best peer | matching (most likely class) | matching (largest score) | oracle |"
    yield "|---|---|---|---|---|---|---|"
    won, cells = np.zeros(2, dtype=int), 0
    for name, peers, shared in product(("wine", "statlog", "page"), (2, 4), (1, 3)):
        features, labels = original(name)
        told = {"column": "y", "classes": list(range(1, labels.max() + 1))}
        errors = []
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(features, labels):
            cell = Cell(features, peers, shared, seed=100 * peers + shared, train=train)
            alone = [_classify(cell, (at,), train, test, labels) for at in range(peers)]
            oracle = _classify(cell, tuple(range(peers)), train, test, labels)
            blocks = cell.blocks(told, labels, policy=Policy.exact(5))
            fit = fit_matching(blocks, DEFAULT_CAUTION)
            scores = cell.design(blocks, test) @ fit.theta
            odds = Forecast.of(blocks, fit).odds()
            assert odds is not None
            likely, largest = (
                np.mean(pick + 1 != labels[test]) for pick in (odds.chosen(scores), scores.argmax(axis=1))
            )
            errors.append([*alone, likely, largest, oracle])
        mean = np.mean(errors, axis=0)
        best = mean[:peers].min()
        won, cells = won + (mean[-3:-1] < best), cells + 1
        yield f"| {name} | {peers} | {shared} | {best:.1%} | {mean[-3]:.1%} | {mean[-2]:.1%} | {mean[-1]:.1%} |"
    yield f"\nmatching beats the best peer in {won[0]} (most likely) and {won[1]} (largest score) of {cells} cells"


def _classify(cell: Cell, peers: tuple[int, ...], train: Ints, test: Ints, labels: Ints) -> float:
    model = RidgeClassifierCV(ALPHAS).fit(cell.plain(train, peers), labels[train])
    return float(np.mean(model.predict(cell.plain(test, peers)) != labels[test]))


def numbers() -> Iterator[str]:
    yield "| domain | p | dim J | best peer R² | bins | signature alone | oracle R² |"
    yield "|---|---|---|---|---|---|---|"
    won = np.zeros(2, dtype=int)
    cells = 0
    for name, peers, shared in product(("winered", "winewhite", "diabetes"), (2, 4), (1, 3)):
        if name == "diabetes":
            features, target = load_diabetes(return_X_y=True, scaled=False)
        else:
            features, codes = original(name)
            target = codes.astype(np.float64)
        found = []
        for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(features):
            cell = Cell(features, peers, shared, seed=100 * peers + shared, train=train)
            alone = [_regress(cell, (at,), train, test, target) for at in range(peers)]
            oracle = _regress(cell, tuple(range(peers)), train, test, target)
            ours = []
            thirds = np.unique(np.quantile(target[train], [0.33, 0.67]))
            for cuts in (thirds[thirds > target[train].min()], np.empty(0)):
                told = {"column": "y", "kind": "numeric", "edges": cuts.tolist()}
                bins = (
                    np.searchsorted(cuts, target, side="right") + 1 if len(cuts) else np.zeros(len(target), dtype=int)
                )
                blocks = cell.blocks(told, bins, target=target, policy=Policy.exact(5))
                centre, scale = blocks.label_units
                theta = fit_matching(blocks, DEFAULT_CAUTION).theta
                ours.append(_r2(target[test], centre + scale * (cell.design(blocks, test) @ theta)))
            found.append([*alone, *ours, oracle])
        mean = np.mean(found, axis=0)
        best = mean[:peers].max()
        won, cells = won + (mean[-3:-1] > best), cells + 1
        yield f"| {name} | {peers} | {shared} | {best:.3f} | {mean[-3]:.3f} | {mean[-2]:.3f} | {mean[-1]:.3f} |"
    yield f"\nmatching beats the best peer in {won[0]} (bins) and {won[1]} (signature alone) of {cells} cells"


def _regress(cell: Cell, peers: tuple[int, ...], train: Ints, test: Ints, target: Floats) -> float:
    model = RidgeCV(ALPHAS).fit(cell.plain(train, peers), target[train])
    return _r2(target[test], model.predict(cell.plain(test, peers)))


def _r2(truth: Floats, told: Floats) -> float:
    return float(1.0 - np.mean((truth - told) ** 2) / np.var(truth))


Score = Callable[[Cell, Ints, Ints], list[float]]
"""Of a cell, its labels and its test rows: the error of the label holder alone, then others."""


def scored(score: Score, seed: int, deal: int, sizes: tuple[int, ...] = (2, 3, 4)) -> Iterator[tuple[str, int, Floats]]:
    """Mean scores over folds in every domain, with so many shared features drawn by the seed."""
    for name, shared in product(DOMAINS, sizes):
        table = load_table(name)
        rows = np.random.default_rng(deal).permutation(len(table.labels))[:4000]
        features, labels = table.features[rows], table.labels[rows]
        found = []
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=deal).split(features, labels):
            cell = Cell(features, 2, shared, seed=seed + shared, train=train, bins=DOMAINS[name].bins)
            found.append(score(cell, labels, test))
        yield name, shared, np.mean(found, axis=0)


def standing(lines: list[tuple[str, int, Floats]], at: int = 1) -> tuple[int, int]:
    """In how many cells a score is more than half a point worse than the first; on how many domains mostly better."""
    better: dict[str, list[bool]] = {}
    for name, _, means in lines:
        better.setdefault(name, []).append(bool(means[at] < means[0]))
    harm = sum(int(means[at] > means[0] + 0.005) for _, _, means in lines)
    return harm, sum(2 * sum(won) > len(won) for won in better.values())


def one_label() -> Iterator[str]:
    yield "| domain | dim J | label holder alone | joint | all labelled | certainty |"
    yield "|---|---|---|---|---|---|"
    lines = []
    for name, shared, means in scored(partial(_one_labelled, policy=Policy.exact()), *DRAWS[0]):
        lines.append((name, shared, means))
        alone, joint, whole, _, sure = means
        yield f"| {name} | {shared} | {alone:.2%} | {joint:.2%} | {whole:.2%} | {sure:.2f} |"
    harm, most = standing(lines)
    yield f"\nmore than 0.5 points worse in {harm} of {len(lines)} cells; better in most cells on {most} domains"


def draws(policy: Policy, count: int) -> Iterator[str]:
    yield "| draw | joint: cells worse | domains better | difference in points | holder's part alone: cells worse |"
    yield "|---|---|---|---|---|"
    every: list[tuple[str, int, Floats]] = []
    for at, draw in enumerate(DRAWS[:count], start=1):
        lines = list(scored(partial(_one_labelled, policy=policy), *draw))
        harm, most = standing(lines)
        every += lines
        off = 100 * float(np.mean([means[1] - means[0] for _, _, means in lines]))
        part, _ = standing(lines, 3)
        told = f"{harm} of {len(lines)} | {most} of {len(DOMAINS)} | {off:+.2f} | {part} of {len(lines)}"
        yield f"| {at} | {told} |"
    small = {name for name in DOMAINS if len(load_table(name).labels) < SMALL}
    groups = {
        "all domains": every,
        f"domains of at least {SMALL} rows": [line for line in every if line[0] not in small],
    }
    for words, lines in groups.items():
        harm, part = standing(lines)[0], standing(lines, 3)[0]
        yield f"\n{words}: joint worse in {harm} of {len(lines)} cells ({harm / len(lines):.1%}), part alone in {part}"


def own_labels() -> Iterator[str]:
    yield "| domain | dim J | label holder alone | sums by signature | own labels | right labels | right by majority |"
    yield "|---|---|---|---|---|---|---|"
    lines = []
    for name, shared, means in scored(_own_labels, *DRAWS[0], sizes=(3,)):
        lines.append((name, shared, means))
        yield f"| {name} | {shared} | " + " | ".join(f"{mean:.1%}" for mean in means) + " |"
    for at, words in ((1, "sums by signature"), (2, "own labels")):
        harm, most = standing(lines, at)
        yield f"\n{words}: more than 0.5 points worse in {harm} of {len(lines)} cells; better on {most} domains"


def _own_labels(cell: Cell, labels: Ints, test: Ints) -> list[float]:
    """Errors of the holder alone, of sums by signature and of own labels; and how many labels are right."""
    told = {"column": "y", "positive": 1, "negative": -1, "held_by": ["p0"]}
    contract = contract_for(told, cell.edges, cell.names)
    shared = {f"s{at}": cell.features[cell.train][:, column] for at, column in enumerate(cell.split.shared)}
    tables = [
        pa.table({**shared, **dict(zip(names, cell.features[np.ix_(cell.train, own)].T, strict=True))})
        for own, names in zip(cell.split.private, cell.names, strict=True)
    ]
    policy, known = Policy.exact(), tables[0].append_column("y", pa.array(labels[cell.train]))
    holder = release(craft(known, contract, "p0", bounds=None), contract, policy)
    guessed = label_rows(open_source(tables[1]), contract, "p1", [Part.of(holder)])
    blocks = merge_cells((holder.cells, release(guessed.tally, contract, policy).cells), contract)
    alone, joint, *_ = _one_labelled(cell, labels, test, policy)
    return [alone, joint, _error(cell, blocks, labels, test), *_right(cell, guessed.ranking, labels)]


def _right(cell: Cell, ranking: Ranking, labels: Ints) -> tuple[float, float]:
    """The share of rows whose label a ranking gets right, and that the commoner label of each signature gets right."""
    values = (cell.features[np.ix_(cell.train, cell.split.private[1])] - ranking.centre) / ranking.scale
    score, truth, right, usual = values @ ranking.weights, labels[cell.train] > 0, 0, 0
    for codes, count in zip(ranking.codes, ranking.positives.tolist(), strict=True):
        here = np.flatnonzero((cell.codes[cell.train] == codes).all(axis=1))
        given = np.zeros(len(here), dtype=bool)
        given[np.argsort(-score[here])[:count]] = True
        right += int((given == truth[here]).sum())
        usual += max(int(truth[here].sum()), int((~truth[here]).sum()))
    return right / len(truth), usual / len(truth)


def _error(cell: Cell, blocks: Blocks, labels: Ints, test: Ints) -> float:
    fit = fit_matching(blocks, DEFAULT_CAUTION)
    odds = Forecast.of(blocks, fit).odds()
    assert odds is not None
    return float(np.mean((odds.log_odds(cell.design(blocks, test) @ fit.theta) > 0) != (labels[test] > 0)))


def _one_labelled(cell: Cell, labels: Ints, test: Ints, policy: Policy) -> list[float]:
    """Errors of the holder alone, the joint model, all labelled, and the holder's own part alone; and the certainty."""
    told = {"column": "y", "positive": 1, "negative": -1}
    blocks = [cell.blocks(told, labels, known=known, policy=policy) for known in ((0,), None)]
    model = RidgeClassifierCV(ALPHAS).fit(cell.plain(cell.train, (0,)), labels[cell.train])
    alone = float(np.mean(model.predict(cell.plain(test, (0,))) != labels[test]))
    certainty = float(blocks[0].certainty["p1"] or 0.0)
    blocks.append(merge_cells(blocks[0].cells[:1], blocks[0].contract))
    return [alone, *(_error(cell, these, labels, test) for these in blocks), certainty]


def made_up() -> Iterator[str]:
    """Two codes that together tell the share of the label, columns that both codes and the label move."""
    yield "| seed | label holder alone | joint | all labelled | share of the gap closed |"
    yield "|---|---|---|---|---|"
    for seed in range(5):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 4, (9000, 2))
        share = np.where(codes.sum(axis=1) % 2 == 0, 0.85, 0.15)
        labels = np.where(rng.random(9000) < share, 1, -1)
        own = 0.4 * labels[:, None] + rng.normal(size=(9000, 1))
        others = rng.normal(size=(9000, 3)) + np.outer(labels, [0.9, -0.6, 0.0]) + np.outer(codes[:, 0], [0.5, 0, 1])
        cell = Cell.__new__(Cell)
        cell.features, cell.train = np.hstack([own, others]), np.arange(4000)
        cell.codes, cell.edges = codes, ((1.0, 2.0, 3.0),) * 2
        cell.split = FeatureSplit(np.empty(0, dtype=np.int64), (np.array([0]), np.array([1, 2, 3])))
        cell.names = [["x000"], ["x001", "x002", "x003"]]
        alone, joint, whole, *_ = _one_labelled(cell, labels, np.arange(4000, 9000), Policy.exact(10))
        yield f"| {seed} | {alone:.1%} | {joint:.1%} | {whole:.1%} | {(alone - joint) / (alone - whole):.0%} |"


def main() -> None:
    runs = {
        "classes": classes,
        "numbers": numbers,
        "one-label": one_label,
        "draws": lambda: draws(Policy.exact(), 10),
        "draws-gated": lambda: draws(Policy(), 5),
        "own-labels": own_labels,
        "made-up": made_up,
    }
    parser = arguments(__doc__)
    parser.add_argument("what", choices=[*runs])
    given = parser.parse_args()
    with threadpool_limits(1):
        show_lines(given, runs[given.what]())


if __name__ == "__main__":
    main()
