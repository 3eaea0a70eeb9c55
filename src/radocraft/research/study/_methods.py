"""The algorithms of the study, on one fold: from the peers' tables to scores of test rows.

Our own go the way of the real thing, in memory: each peer's tally, its policy's
release, the merged blocks, the learner. Nothing else of a peer's table reaches
the learner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.demo import (
    FINE_GAMMAS,
    PAPER_GAMMAS,
    Linear,
    PeerTable,
    Scaling,
    fit_ridge,
    in_units,
    units_of,
    zip_rows,
)
from radocraft.errors import StudyError
from radocraft.gate import Noise, Policy, release
from radocraft.learning import (
    DEFAULT_CAUTION,
    Blocks,
    Population,
    RadoChoices,
    Ridge,
    complete,
    describe,
    fit_drl,
    generalised_cross_validation,
    merge_cells,
)
from radocraft.research.study._linkage import link_rows
from radocraft.research.study._rados import Encode, StandardCodes, craft_rados
from radocraft.research.study._scenarios import Edges
from radocraft.rows import craft_rows

Encoding = Literal["one-hot", "ordinal", "ordinal-standard"]
GammaGrid = Literal["paper", "fine"]
Algorithms = Literal["all", "paper", "peers", "linkage", "rivals", "ours"]
RadoScore = Literal["drawn", "all-sums"]
GammaScale = Literal["columns", "rows", "mean-block"]

CAUTIONS = (0.0, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Choices:
    """What the paper leaves open about the model, and what we add.

    Parameters
    ----------
    scaling
        Of private features: ``standard`` (mean 0, deviation 1, each peer from
        its own rows), ``min-max`` (0 to 1), ``none``.
    intercept, encoding
        Whether the model has a constant; shared features one-hot, ordinal (codes from -1 to 1), or
        ordinal-standard (codes of mean 0 and deviation 1; the paper's algorithms only).
    gammas
        What the baselines choose from: the paper's three values, or seventeen
        from 1e-6 to 100, which is a stronger baseline.
    min_rows
        The fewest rows in a cell that leaves a peer; 1 is no limit.
    noise
        How much noise every sum carries, as a share of its sampling error; none if 0.
    rado_score, gamma_scale
        How DRL is tuned and regularised; see `RadoChoices`.
    """

    scaling: Scaling = "standard"
    intercept: bool = True
    encoding: Encoding = "one-hot"
    gammas: GammaGrid = "paper"
    min_rows: int = 1
    noise: float = 0.0
    rado_score: RadoScore = "drawn"
    gamma_scale: GammaScale = "columns"

    @property
    def of_rados(self) -> RadoChoices:
        """Those of DRL."""
        return RadoChoices(self.rado_score, self.gamma_scale)


@dataclass(frozen=True)
class Rows:
    """Whole rows, as only the oracle and the test set have them: codes, labels, every peer's columns side by side."""

    codes: Ints
    labels: Ints
    values: Floats


@dataclass(frozen=True)
class Fold:
    """What there is to learn from and to test on in one fold."""

    choices: Choices
    edges: Edges
    tables: tuple[PeerTable, ...]
    train: Rows
    test: Rows

    @property
    def columns(self) -> tuple[slice, ...]:
        """Where each peer's columns stand in whole rows."""
        ends = np.cumsum([0, *(len(table.columns) for table in self.tables)]).tolist()
        return tuple(slice(ends[at], ends[at + 1]) for at in range(len(self.tables)))


@dataclass(frozen=True)
class Scored:
    """Scores of the test rows by one algorithm; ``caution``, ``peer`` and ``probability`` where they apply."""

    algorithm: str
    scores: Floats
    caution: float | None = None
    peer: int | None = None
    probability: Floats | None = None


def run_fold(fold: Fold, algorithms: Algorithms = "all", seed: int = 0) -> Iterator[Scored]:
    """Every algorithm on one fold.

    ``peers`` stops after the oracle, ``paper`` adds DRL alone, ``linkage`` (two peers) entity resolution to all.
    """
    encode = encoder(fold, algorithms)
    test = encode(fold.test.codes)
    commoner = 1.0 if fold.train.labels.sum() > 0 else -1.0
    yield Scored("majority", np.full(len(test), commoner))
    yield from score_peers(fold, encode, seed)
    oracle = _ridge(fold, encode(fold.train.codes), fold.train.values, fold.train.labels, seed)
    yield Scored("oracle", oracle.scores(test, fold.test.values))
    if algorithms == "paper":
        yield from score_drl(fold, encode, seed)
    if algorithms in ("paper", "peers"):
        return
    zipped = zip_rows(fold.tables)
    paired = _ridge(fold, encode(zipped.codes), zipped.values, zipped.labels, seed)
    yield Scored("zip", paired.scores(test, fold.test.values))
    yield from score_ours(fold, agree_contract(fold), seed)
    if algorithms == "linkage":
        linked = link_rows(fold.tables, seed)
        model = _ridge(fold, encode(linked.codes), linked.values, linked.labels, seed)
        yield Scored("splink", model.scores(test, fold.test.values))


def encoder(fold: Fold, algorithms: Algorithms) -> Encode:
    """How codes become numbers."""
    if fold.choices.encoding != "ordinal-standard":
        return agree_contract(fold).encode_shared
    if algorithms not in ("paper", "peers"):
        raise StudyError(
            "The encoding 'ordinal-standard' is for the paper's own algorithms, since no contract knows it. "
            "Take algorithms = 'paper' or 'peers', or another encoding."
        )
    return StandardCodes.of(fold.train.codes, np.array([len(cuts) + 1 for cuts in fold.edges]))


def score_peers(fold: Fold, encode: Encode, seed: int) -> Iterator[Scored]:
    """Each peer alone: ridge on its own table."""
    test = encode(fold.test.codes)
    for at, (table, where) in enumerate(zip(fold.tables, fold.columns, strict=True)):
        alone = _ridge(fold, encode(table.codes), table.values, table.labels, seed)
        yield Scored("peer", alone.scores(test, fold.test.values[:, where]), peer=at + 1)


def score_drl(fold: Fold, encode: Encode, seed: int) -> Iterator[Scored]:
    """The paper's DRL on exact block rados."""
    choices = fold.choices
    rados = craft_rados(fold.tables, encode, scaling=choices.scaling, intercept=choices.intercept)
    units = zip(*(units_of(table.values, choices.scaling) for table in fold.tables), strict=True)
    private = in_units(fold.test.values, *map(np.concatenate, units))
    constant = [np.ones((len(private), 1))] if choices.intercept else []
    design = np.hstack([*constant, encode(fold.test.codes), private])
    for name, theta in rados.fit(choices.of_rados, seed).items():
        yield Scored(name, design @ theta)


def score_ours(fold: Fold, contract: Contract, seed: int) -> Iterator[Scored]:
    """DRL with tuned Gamma and with the identity; expected matching at every caution."""
    blocks = merged_blocks(fold, contract, seed)
    design = design_matrix(blocks, fold.test)
    yield Scored("drl", design @ fit_drl(blocks, "tuned", seed, fold.choices.of_rados).theta)
    yield Scored("drl-identity", design @ fit_drl(blocks, "identity", seed, fold.choices.of_rados).theta)
    known = complete(blocks)
    tuning = generalised_cross_validation(known)
    problem = Ridge(known, tuning.chosen)
    for caution in CAUTIONS:
        theta = problem.cautious(caution)
        probability = None
        if caution == DEFAULT_CAUTION:
            fit = describe(problem, theta, blocks, settings={"caution": caution}, tuning=tuning)
            probability = Population.of(blocks, fit).odds(prior=True).probability(design @ theta)
        yield Scored("matching", design @ theta, caution=caution, probability=probability)


def _ridge(fold: Fold, shared: Floats, values: Floats, labels: Ints, seed: int) -> Linear:
    choices = fold.choices
    gammas = PAPER_GAMMAS if choices.gammas == "paper" else FINE_GAMMAS
    return fit_ridge(
        shared, values, labels, gammas=gammas, scaling=choices.scaling, intercept=choices.intercept, seed=seed
    )


def agree_contract(fold: Fold) -> Contract:
    """The contract the peers of this fold would sign."""
    shared = [
        {"name": f"shared{at:02d}", "edges": cuts, "encoding": fold.choices.encoding}
        for at, cuts in enumerate(fold.edges)
    ]
    peers = {
        table.name: {"features": _features(table.columns, fold.train.values[:, where], fold.choices.scaling)}
        for table, where in zip(fold.tables, fold.columns, strict=True)
    }
    label = {"column": "label", "positive": 1, "negative": -1}
    tree = {"name": "study", "label": label, "shared": shared, "peers": peers, "intercept": fold.choices.intercept}
    return Contract.model_validate(tree)


def _features(columns: Sequence[str], values: Floats, scaling: Scaling) -> dict[str, Any]:
    """Centre and scale from each peer's data, or agreed constants from the training rows."""
    if scaling == "standard":
        return {name: {"kind": "numeric"} for name in columns}
    units = zip(columns, *units_of(values, scaling), strict=True)
    return {name: {"kind": "numeric", "centre": float(c), "scale": float(s)} for name, c, s in units}


def merged_blocks(fold: Fold, contract: Contract, seed: int = 0) -> Blocks:
    """What the learner gets: each peer's tally through its own gate, merged."""
    choices = fold.choices
    policy = Policy(choices.min_rows, noise=choices.noise) if choices.noise else Policy.exact(choices.min_rows)
    cells = []
    for table in fold.tables:
        noise = Noise.seeded(seed, table.name)
        tally = craft_rows(
            contract,
            table.name,
            table.columns,
            codes=table.codes,
            labels=table.labels,
            values=table.values,
            bounds=policy.bounds,
            noise=noise,
        )
        cells.append(release(tally, contract, policy, noise).cells)
    return merge_cells(tuple(cells), contract)


def design_matrix(blocks: Blocks, rows: Rows) -> Floats:
    """Whole rows in the model's coordinates: 1, shared columns, each peer's columns in that peer's units."""
    constant = [np.ones((len(rows.labels), 1))] if blocks.contract.intercept else []
    centre = np.concatenate([cells.centre for cells in blocks.cells])
    scale = np.concatenate([cells.scale for cells in blocks.cells])
    values = np.clip(rows.values, *blocks.limits)
    return np.hstack([*constant, blocks.contract.encode_shared(rows.codes), in_units(values, centre, scale)])
