"""One cell of the study: a domain, a scenario and every choice, evaluated by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from radocraft.arrays import Floats, Ints
from radocraft.demo import Scaling
from radocraft.learning import auc, error_rate
from radocraft.research.study._domains import Columns, Table, load_table
from radocraft.research.study._methods import (
    Algorithms,
    Choices,
    Encoding,
    Fold,
    GammaGrid,
    GammaScale,
    RadoScore,
    Rows,
    run_fold,
)
from radocraft.research.study._metrics import calibration_error, delta, paired_p, reliability, share_beaten
from radocraft.research.study._scenarios import (
    Corrupted,
    FeatureOrder,
    FeatureSplit,
    Scenario,
    Setting,
    Shareable,
    agree_edges,
    are_binnable,
    code_shared,
    deal,
    split_features,
)

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """Every setting of one cell; each is a column of the results.

    ``domain``, ``binarisation`` and ``columns`` are explained in `domains`,
    ``peers`` to ``seed``, ``feature_order`` and ``shareable`` in `Scenario`, ``scaling``
    to ``noise``, ``rado_score`` and ``gamma_scale`` in `Choices`. ``grouped`` keeps copies
    of a row, and all rows of one mouse, in the same fold. ``algorithms`` is ``all``, or
    ``peers`` (each peer and the oracle only), or ``paper`` (these and DRL), or ``linkage``
    (all, and the entity-resolution pipeline); or ``rivals`` or ``ours``, those of the main
    table, for which see `run_contest`. Of these ``tested`` is after how many test rows no
    further fold is run (0: all are), and ``people`` how many there are to learn from in the
    domain ``generated``.
    """

    domain: str
    peers: int
    shared: int
    binarisation: str
    columns: Columns = "plain"
    bins: int = 4
    setting: Setting = "vertical"
    share: float = 0.0
    corrupted: Corrupted = "nothing"
    corruption: float = 0.0
    seed: int = 0
    folds: int = 10
    grouped: bool = False
    scaling: Scaling = "standard"
    intercept: bool = True
    encoding: Encoding = "one-hot"
    gammas: GammaGrid = "paper"
    min_rows: int = 1
    noise: float = 0.0
    algorithms: Algorithms = "all"
    rado_score: RadoScore = "drawn"
    gamma_scale: GammaScale = "columns"
    feature_order: FeatureOrder = "per-domain"
    shareable: Shareable = "any"
    tested: int = 0
    people: int = 0

    @property
    def scenario(self) -> Scenario:
        """Who holds what."""
        return Scenario(
            self.peers,
            self.shared,
            self.bins,
            self.setting,
            self.share,
            corrupted=self.corrupted,
            corruption=self.corruption,
            seed=self.seed,
            feature_order=self.feature_order,
            shareable=self.shareable,
        )

    @property
    def choices(self) -> Choices:
        """How it is modelled."""
        return Choices(
            self.scaling,
            self.intercept,
            self.encoding,
            self.gammas,
            self.min_rows,
            self.noise,
            self.rado_score,
            self.gamma_scale,
        )


def run_cell(cell: Cell) -> list[Record]:
    """Evaluate one cell: one record for every algorithm, with all settings in it.

    Examples
    --------
    >>> records = run_cell(Cell("wine", peers=2, shared=1, binarisation="class-2", folds=3))  # doctest: +SKIP
    >>> {record["algorithm"] for record in records}  # doctest: +SKIP
    {'drl', 'drl-identity', 'majority', 'matching', 'oracle', 'peer', 'zip'}
    """
    start = perf_counter()
    with threadpool_limits(1):
        outcomes = _cross_validate(cell)
    seconds = perf_counter() - start
    peers = np.array([errors for (name, _, _), (errors, *_) in outcomes.items() if name == "peer"])
    oracle = outcomes["oracle", None, None][0]
    records = []
    for (name, caution, peer), (errors, aucs, bins) in outcomes.items():
        records.append(
            {
                **asdict(cell),
                "algorithm": name,
                "caution": caution,
                "peer": peer,
                "error": float(errors.mean()),
                "auc": float(np.nanmean(aucs)),
                "best_peer": float(peers.mean(axis=1).min()),
                "mean_peer": float(peers.mean()),
                "delta": delta(errors, peers),
                "q": share_beaten(errors, peers),
                "oracle_gap": float((errors - oracle).mean()),
                "oracle_p": float(paired_p(errors, oracle[None])[0]),
                "fold_errors": errors.tolist(),
                "calibration_error": calibration_error(bins) if bins else None,
                "reliability": bins,
                "seconds": seconds,
            }
        )
    return records


Name = tuple[str, float | None, int | None]
Outcomes = dict[Name, tuple[Floats, Floats, list[list[float]] | None]]


def _cross_validate(cell: Cell) -> Outcomes:
    """Errors and AUCs in every fold, for every algorithm; and how far its probabilities hold, where it gives any."""
    errors: dict[Name, list[float]] = {}
    aucs: dict[Name, list[float]] = {}
    predicted: dict[Name, list[tuple[Floats, Ints]]] = {}
    for number, fold in enumerate(folds_of(cell)):
        for scored in run_fold(fold, cell.algorithms, seed=number):
            name = (scored.algorithm, scored.caution, scored.peer)
            errors.setdefault(name, []).append(error_rate(scored.scores, fold.test.labels))
            aucs.setdefault(name, []).append(auc(scored.scores, fold.test.labels))
            if scored.probability is not None:
                predicted.setdefault(name, []).append((scored.probability, fold.test.labels))
    bins = {name: reliability(*map(np.concatenate, zip(*pairs, strict=True))) for name, pairs in predicted.items()}
    return {name: (np.array(errors[name]), np.array(aucs[name]), bins.get(name)) for name in errors}


def folds_of(cell: Cell) -> Iterator[Fold]:
    """The folds of a cell, dealt to its peers."""
    table = load_table(cell.domain, cell.binarisation, cell.columns)
    binnable = are_binnable(table.features, cell.bins) if cell.shareable == "binnable" else None
    split = split_features(len(table.columns), cell.scenario, binnable)
    for number, (train, test) in enumerate(split_rows(table, cell)):
        yield make_fold(table, split, cell, rows=(train, test), number=number)


def split_rows(table: Table, cell: Cell) -> Iterator[tuple[Ints, Ints]]:
    """Training and test rows of every fold."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # noqa: PLC0415 - slow to import

    if cell.grouped:
        groups = StratifiedGroupKFold(cell.folds, shuffle=True, random_state=cell.seed)
        yield from groups.split(table.features, table.labels, table.groups)
    else:
        yield from StratifiedKFold(cell.folds, shuffle=True, random_state=cell.seed).split(table.features, table.labels)


def make_fold(table: Table, split: FeatureSplit, cell: Cell, *, rows: tuple[Ints, Ints], number: int) -> Fold:
    """Deal the training rows to the peers; bins are cut, and units agreed, on training rows only."""
    train, _ = rows
    features = table.features if cell.scaling == "standard" else _filled(table.features, train)
    shared = features[:, split.shared]
    edges = agree_edges(shared[train], cell.bins)
    codes = code_shared(shared, edges)
    tables = deal(
        cell.scenario,
        split,
        table.columns,
        codes=codes[train],
        labels=table.labels[train],
        features=features[train],
        fold=number,
    )
    place = {name: at for at, name in enumerate(table.columns)}
    order = np.array([place[name] for held in tables for name in held.columns])
    whole = [Rows(codes[at], table.labels[at], features[np.ix_(at, order)]) for at in rows]
    return Fold(cell.choices, edges, tables, *whole)


def _filled(features: Floats, train: Ints) -> Floats:
    """Missing values replaced by the mean of the training rows, where 0 would not mean "average"."""
    return np.where(np.isnan(features), np.nanmean(features[train], axis=0), features)
