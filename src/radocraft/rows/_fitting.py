"""Fitting a peer's scorer: out of fold, calibrated, and once more on all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.errors import DataError, OneClass
from radocraft.progress import Progress
from radocraft.rows._calibration import (
    LinearCalibration,
    Performance,
    PlattCalibration,
    ReliabilityBin,
    raw_log_odds,
    reliability,
)
from radocraft.rows._chunks import Asking, Chunk
from radocraft.rows._estimators import (
    EstimatorInput,
    Target,
    from_probabilities,
    given_form,
    goes_in_threads,
    raw_scores,
)
from radocraft.rows._features import ScorerColumn
from radocraft.rows._folds import Deal, canonical_order, equal_rows_are_one, lots, strata_of
from radocraft.rows._lots import Drawing, Lottery
from radocraft.rows._parallel import in_parallel
from radocraft.rows._pool import said_by_each, together, weights_of
from radocraft.rows._scorer import Scorer

_FITTING = "fitting the peer's model"


@dataclass(frozen=True)
class FitPlan:
    """What to fit, and by what rules.

    Parameters
    ----------
    asking
        The peer's columns, and what they are read for.
    folds
        Into how many folds rows are dealt.
    unfitted, form
        The estimator, and how it takes rows; None for scores from elsewhere.
    notes
        What was said so far.
    pooled
        Whether the estimator is a pool of models whose weights are found here.
    """

    asking: Asking
    folds: int
    unfitted: Any | None
    form: EstimatorInput
    notes: tuple[str, ...]
    pooled: bool = False

    @property
    def contract(self) -> Contract:
        """What was agreed."""
        return self.asking.reader.contract

    @property
    def peer(self) -> str:
        """Whose rows these are."""
        return self.asking.reader.peer

    @property
    def columns(self) -> tuple[ScorerColumn, ...]:
        """What the model is given."""
        return self.asking.columns

    @property
    def group(self) -> str | None:
        """The column that folds go by, if one does."""
        return self.asking.group

    @property
    def target(self) -> Target:
        """What is to be predicted."""
        return self.asking.target

    @property
    def seed(self) -> int:
        """What folds depend on besides the rows."""
        return self.asking.seed


def ordered(chunk: Chunk, seed: int) -> Chunk:
    """The same rows in an order that depends on nothing but what they hold, so that every engine fits the same."""
    nothing = np.zeros(len(chunk))
    values = nothing if chunk.values is None else chunk.values
    keys = nothing if chunk.keys is None else chunk.keys
    groups = nothing if chunk.groups is None else chunk.groups
    return chunk.take(canonical_order(lots(chunk.matrix, seed), chunk.signatures, chunk.labels, values, keys, groups))


def fit(plan: FitPlan, chunk: Chunk, progress: Progress) -> Scorer:
    """The scorer of these rows, which are in canonical order."""
    classes = np.searchsorted(np.array(plan.contract.label.codes), chunk.labels)
    lottery = _lottery(plan, chunk, classes)
    lot = Drawing(lottery).lots(chunk, classes)
    nothing = np.zeros_like(classes)
    count = 1 if lottery.by_group else len(plan.contract.label.codes)
    labels = nothing if lottery.by_group else classes
    strata = nothing if lottery.by_group else strata_of(chunk.signatures, classes, count)
    deal = Deal.of(lot, strata, labels, count, plan.folds)
    fold = deal.fold(lot, strata, labels)
    _check_folds(plan, classes, fold)
    known = _Known(plan, chunk, classes, fold)
    models, raw = ((), known.elsewhere()) if plan.unfitted is None else known.fitted(progress)
    maps = known.maps(raw)
    out = known.calibrated(raw, maps)
    performance, curve = known.judged(out)
    return Scorer(
        plan.contract,
        plan.peer,
        plan.columns,
        plan.form,
        models,
        maps,
        deal,
        lottery,
        plan.group,
        performance,
        curve,
        len(chunk),
        plan.notes,
        plan.unfitted is None and known.are_probabilities,
    )


def _lottery(plan: FitPlan, chunk: Chunk, classes: Ints) -> Lottery:
    if plan.group is not None:
        return Lottery(plan.seed, True, True)
    are_numbers = [column.how != "category" for column in plan.columns]
    equal_rows = equal_rows_are_one(chunk.matrix, are_numbers, lots(chunk.matrix, plan.seed))
    lottery = Lottery(plan.seed, False, equal_rows)
    if equal_rows:
        return lottery
    found, times = np.unique(lottery.first(chunk, classes), return_counts=True)
    return Lottery(plan.seed, False, False, found[times > 1])


def _check_folds(plan: FitPlan, classes: Ints, fold: Ints) -> None:
    """Every fold must have rows, and the rows outside it more than one label."""
    folds = plan.folds
    if len(np.unique(fold)) < folds:
        whose = "persons" if plan.group is not None else "different rows"
        raise DataError(
            f"There are too few {whose} at '{plan.peer}' to score each row by a model that has not seen it. "
            f"Give more rows, or agree on fewer `folds` than {folds}."
        )
    if plan.target.is_number:
        return
    for at in range(folds):
        if len(np.unique(classes[fold != at])) < 2:
            raise OneClass(
                f"Too few rows of '{plan.peer}' have one of the values of '{plan.contract.label.column}' to fit a "
                "score. Check [label] in the contract, or give more rows."
            )


@dataclass(frozen=True)
class _Known:
    """The rows to fit on, and their folds."""

    plan: FitPlan
    chunk: Chunk
    classes: Ints
    fold: Ints

    @property
    def aim(self) -> Floats | Ints:
        """What the estimator is to predict."""
        return self.classes if self.chunk.values is None else self.chunk.values

    @property
    def are_probabilities(self) -> bool:
        """Whether scores from elsewhere all lie between 0 and 1."""
        held = self.chunk.matrix[:, 0]
        held = held[~np.isnan(held)]
        return self.plan.target.classes == 2 and bool(((held >= 0.0) & (held <= 1.0)).all())

    def elsewhere(self) -> Floats:
        """Scores that were fitted elsewhere."""
        scores = self.chunk.matrix[:, 0]
        return np.where(np.isnan(scores), np.nan, raw_log_odds(scores)) if self.are_probabilities else scores

    def fitted(self, progress: Progress) -> tuple[tuple[Any, ...], Floats]:
        """A model for each fold and one of all rows, and what the former say out of fold."""
        from sklearn.base import clone  # noqa: PLC0415

        folds, target = self.plan.folds, self.plan.target
        rows = given_form(self.chunk.matrix, self.plan.columns, self.plan.form)
        said: dict[int, Floats] = {}

        def one(at: int) -> Any:
            seen = np.flatnonzero(self.fold != at)
            whole = len(seen) == len(self.fold)
            model = clone(self.plan.unfitted)
            model.fit(rows if whole else _some(rows, seen), self.aim if whole else self.aim[seen])
            unseen = _some(rows, np.flatnonzero(self.fold == at))
            if at < folds:
                pooled = self.plan.pooled
                said[at] = said_by_each(model, unseen, target.classes) if pooled else raw_scores(model, unseen, target)
            return model

        def advance(done: int) -> None:
            progress(_FITTING, len(self.chunk) * done, len(self.chunk) * (folds + 1))

        advance(0)
        most = None if goes_in_threads(self.plan.unfitted) else 1
        models = tuple(in_parallel(one, folds + 1, advance, most=most))
        raw = np.empty((len(self.chunk), *said[0].shape[1:]))
        for at in range(folds):
            raw[self.fold == at] = said[at]
        return models, self._weighed(models, raw) if self.plan.pooled else raw

    def _weighed(self, models: tuple[Any, ...], said: Floats) -> Floats:
        """Raw scores of a pool, whose models are given their weights."""
        weights = weights_of(said, self.aim)
        for model in models:
            model.set_params(weights=weights.tolist())
        return together(said, weights) if self.plan.target.is_number else from_probabilities(together(said, weights))

    def maps(self, raw: Floats) -> tuple[tuple[PlattCalibration | LinearCalibration, ...], ...]:
        """How every model is calibrated: ours all alike, by all rows out of fold; scores from elsewhere in folds."""
        folds = self.plan.folds
        if self.plan.unfitted is not None:
            return (self._map(raw, np.arange(len(raw))),) * (folds + 1)
        return tuple(self._map(raw, np.flatnonzero(self.fold != at)) for at in range(folds + 1))

    def _map(self, raw: Floats, rows: Ints) -> tuple[PlattCalibration | LinearCalibration, ...]:
        classes, values = self.plan.target.classes, self.chunk.values
        if values is not None:
            return (LinearCalibration.of(raw[rows], values[rows]),) if self.plan.unfitted is None else ()
        if classes == 2:
            return (PlattCalibration.of(raw[rows], self.classes[rows] == 1),)
        return tuple(PlattCalibration.of(raw[rows, at], self.classes[rows] == at) for at in range(classes))

    def calibrated(self, raw: Floats, maps: tuple[tuple[PlattCalibration | LinearCalibration, ...], ...]) -> Floats:
        """Scores out of fold."""
        out = raw.copy()
        for at in range(self.plan.folds):
            rows = np.flatnonzero(self.fold == at)
            for number, each in enumerate(maps[at]):
                place = rows if raw.ndim == 1 else (rows, number)
                out[place] = each(raw[place])
        return out

    def judged(self, scores: Floats) -> tuple[Performance, tuple[tuple[ReliabilityBin, ...], ...]]:
        """How good they are, and how well calibrated."""
        classes, values = self.plan.target.classes, self.chunk.values
        if values is not None:
            return Performance.of_numbers(scores, values), ()
        if classes == 2:
            return Performance.of_two(scores, self.classes == 1), (reliability(scores, self.classes == 1),)
        curves = tuple(reliability(scores[:, at], self.classes == at) for at in range(classes))
        return Performance.of_classes(scores, self.classes), curves


def _some(rows: Any, which: Ints) -> Any:
    return rows[which] if isinstance(rows, np.ndarray) else rows.iloc[which]
