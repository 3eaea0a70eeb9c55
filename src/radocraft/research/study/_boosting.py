"""What a competent peer would run today: scikit-learn's boosted trees, tuned by the peer's own cross-validation.

The size of trees and their number are chosen by log loss on held-out rows; what these are
told is calibrated by Platt's logistic, as the scores are that peers share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from radocraft.arrays import Floats, Ints, Truths

TREES = ({"max_leaf_nodes": 4, "max_features": 0.3}, {"max_leaf_nodes": 8}, {"max_leaf_nodes": 31})
STAGES = (25, 50, 100, 200)
FOLDS = 3
TUNED_ON = 50_000
_TOP, _WEAK = 12.0, 100.0


@dataclass(frozen=True)
class Sheet:
    """Columns of a table as boosted trees take them: a category is its place in the list, NaN where missing or new."""

    values: Floats
    categorical: tuple[int, ...]

    @classmethod
    def of(cls, table: pa.Table, names: Sequence[str], known: pa.Table) -> Sheet:
        """Some columns; categories are those of the ``known`` table.

        Examples
        --------
        >>> known = pa.table({"job": ["nurse", "clerk"], "age": [40, 50]})
        >>> Sheet.of(pa.table({"job": ["nurse", "judge"], "age": [30, None]}), ["job", "age"], known).values.tolist()
        [[1.0, 30.0], [nan, nan]]
        """
        words = tuple(at for at, name in enumerate(names) if pa.types.is_string(table.schema.field(name).type))
        columns = [
            _places(table.column(name), known.column(name)) if at in words else _numbers(table.column(name))
            for at, name in enumerate(names)
        ]
        return cls(np.column_stack(columns), words)


def _places(column: pa.ChunkedArray, known: pa.ChunkedArray) -> Floats:
    listed = pc.unique(known)
    return _numbers(pc.index_in(column, value_set=listed.take(pc.array_sort_indices(listed))))


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


@dataclass(frozen=True)
class Boosted:
    """Boosted trees and how what they say is calibrated."""

    model: Any
    slope: float
    intercept: float

    @classmethod
    def fit(cls, sheet: Sheet, labels: Truths, seed: int = 0) -> Boosted:
        """Tuned on at most `TUNED_ON` rows, fitted on all."""
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(labels))[:TUNED_ON]
        trees, stage, held_out = _tuned(sheet, labels, rows, seed)
        model = _unfitted(sheet, trees, stage, seed).fit(sheet.values, labels)
        slope, intercept = platt(held_out, labels[rows])
        return cls(model, slope, intercept)

    def log_odds(self, sheet: Sheet) -> Floats:
        """Calibrated log-odds of rows."""
        raw = np.clip(self.model.decision_function(sheet.values), -_TOP, _TOP)
        return np.asarray(self.intercept + self.slope * raw, dtype=np.float64)


def _unfitted(sheet: Sheet, trees: int, stage: int, seed: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        **TREES[trees],
        max_iter=stage,
        categorical_features=[*sheet.categorical] or None,
        early_stopping=False,
        random_state=seed,
    )


def _tuned(sheet: Sheet, labels: Truths, rows: Ints, seed: int) -> tuple[int, int, Floats]:
    """Kind (a place in `TREES`) and number of trees of the least held-out log loss, and the held-out log-odds."""
    values, truth = sheet.values[rows], labels[rows]
    folds = [*StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(values, truth)]
    options: dict[tuple[int, int], Floats] = {}
    for trees in range(len(TREES)):
        said = np.empty((len(STAGES), len(rows)))
        for train, test in folds:
            model = _unfitted(sheet, trees, STAGES[-1], seed).fit(values[train], truth[train])
            stages = [*model.staged_decision_function(values[test])]
            said[:, test] = [stages[count - 1] for count in STAGES]
        options |= {(trees, stage): np.clip(held, -_TOP, _TOP) for stage, held in zip(STAGES, said, strict=True)}
    best = min(options, key=lambda option: log_loss(options[option], truth))
    return *best, options[best]


def log_loss(log_odds: Floats, truth: Truths) -> float:
    """Mean log loss of log-odds.

    Examples
    --------
    >>> round(log_loss(np.array([0.0, 0.0]), np.array([True, False])), 4)
    0.6931
    """
    return float(np.logaddexp(0.0, np.where(truth, -log_odds, log_odds)).mean())


def platt(log_odds: Floats, truth: Truths) -> tuple[float, float]:
    """Slope and intercept of a logistic over one score, the slope not below 0.

    Examples
    --------
    >>> scores = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    >>> slope, intercept = platt(scores, np.array([False, False, True, True, True, False]))
    >>> round(slope, 2), round(abs(intercept), 2)
    (0.69, 0.0)
    """
    fit = LogisticRegression(C=_WEAK).fit(log_odds[:, None], truth)
    return max(float(fit.coef_[0, 0]), 0.0), float(fit.intercept_[0])
