"""Models that a peer fits on its own columns: boosted trees, a linear model, or what the user brings.

All see a matrix of numbers in which a category is its code and NaN is missing, or, if they are pipelines or
come from elsewhere than scikit-learn, a data frame with the columns' names. LightGBM and XGBoost refuse some
names, such as "income: CHF", so theirs have numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from radocraft.arrays import Floats
from radocraft.errors import DataError
from radocraft.rows._calibration import RAW_TOP, raw_log_odds
from radocraft.rows._features import ScorerColumn
from radocraft.rows._pool import pool

EstimatorInput = Literal["matrix", "frame", "numbered"]
_PARTICULAR = ("lightgbm", "xgboost")
_MANY_WORDS = 50


@dataclass(frozen=True)
class Target:
    """What is to be predicted: ``classes`` is their number, 0 for a number; two classes have one score."""

    classes: int

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.classes == 0


def estimator(model: str, columns: Sequence[ScorerColumn], target: Target, seed: int, *, pooled: bool = False) -> Any:
    """What the contract asks for, not fitted; boosting with a forest and a linear model if ``pooled``."""
    if model == "linear":
        return _prepared(_linear(target), columns)
    boosting = _boosting(columns, target, seed)
    if not pooled:
        return boosting
    return pool(boosting, _prepared(_linear(target), columns), of_number=target.is_number, seed=seed)


def adopted(given: Any, columns: Sequence[ScorerColumn], target: Target) -> tuple[Any, EstimatorInput]:
    """The user's estimator, not fitted, and what it is to be given."""
    from sklearn.base import clone  # noqa: PLC0415

    if not hasattr(given, "fit") or not hasattr(given, "get_params"):
        raise DataError(
            f"A {type(given).__name__} is no estimator: it has no `fit` and `get_params`. Give one of scikit-learn, "
            "LightGBM or XGBoost, a pipeline, or a class of yours that inherits from `sklearn.base.BaseEstimator`."
        )
    needed = ("predict",) if target.is_number else ("predict_proba", "decision_function")
    fresh = clone(given)
    if not any(hasattr(type(fresh), name) for name in needed):
        raise DataError(
            f"A {type(given).__name__} has neither of {', '.join(needed)}, which a score for this label needs. "
            "Give another estimator, or wrap it in `sklearn.calibration.CalibratedClassifierCV`."
        )
    if type(fresh).__module__.split(".")[0] in _PARTICULAR:
        return fresh, "numbered"
    if _takes_frames(fresh):
        return fresh, "frame"
    if "HistGradientBoosting" in type(fresh).__name__:
        return fresh.set_params(categorical_features=_categorical(columns)), "matrix"
    return _prepared(fresh, columns), "matrix"


def goes_in_threads(given: Any) -> bool:
    """Whether several may be fitted at once in threads.

    scikit-learn's forests and column transformers reset the list of warnings, which belongs to all threads.
    """
    return not type(given).__module__.startswith("sklearn.") or "HistGradientBoosting" in type(given).__name__


def _takes_frames(given: Any) -> bool:
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415
    from sklearn.pipeline import Pipeline  # noqa: PLC0415

    parts = [given, *given.get_params(deep=True).values()]
    return not type(given).__module__.startswith("sklearn.") or any(
        isinstance(part, Pipeline | ColumnTransformer) for part in parts
    )


def _categorical(columns: Sequence[ScorerColumn]) -> list[int] | None:
    return [index for index, column in enumerate(columns) if column.how == "category"] or None


def _boosting(columns: Sequence[ScorerColumn], target: Target, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # noqa: PLC0415

    kind = HistGradientBoostingRegressor if target.is_number else HistGradientBoostingClassifier
    return kind(categorical_features=_categorical(columns), random_state=seed)


def _linear(target: Target) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415

    return Ridge() if target.is_number else LogisticRegression(max_iter=1000)


def _prepared(model: Any, columns: Sequence[ScorerColumn]) -> Any:
    """A model that takes neither categories nor gaps: medians for gaps, one-hot categories, unit scale."""
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    categories = _categorical(columns) or []
    numbers = [index for index in range(len(columns)) if index not in categories]
    filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    words = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MANY_WORDS, sparse_output=False)
    steps = [("numbers", make_pipeline(filled, StandardScaler()), numbers), ("words", words, categories)]
    return make_pipeline(ColumnTransformer([step for step in steps if step[2]]), model)


def given_form(matrix: Floats, columns: Sequence[ScorerColumn], form: EstimatorInput) -> Any:
    """The rows as the model takes them."""
    if form == "matrix":
        return matrix
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise DataError(
            "This model takes data frames, and pandas is not installed here: pip install pandas."
        ) from error
    out: dict[str, Any] = {}
    for index, column in enumerate(columns):
        values, name = matrix[:, index], f"column_{index}" if form == "numbered" else column.name
        if column.how == "category":
            codes = np.where(np.isnan(values), -1, values).astype(np.int64)
            words = pd.Index([*column.categories, _other(column.categories)])
            out[name] = pd.Categorical.from_codes(codes, categories=words)
        else:
            out[name] = values
    return pd.DataFrame(out)


def _other(categories: Sequence[str]) -> str:
    word = "other"
    while word in categories:
        word += "_"
    return word


def raw_scores(model: Any, rows: Any, target: Target) -> Floats:
    """What a fitted model says of rows: log-odds (a column for each class if there are three or more), or numbers."""
    if target.is_number:
        return np.asarray(model.predict(rows), dtype=np.float64).reshape(len(rows))
    if not hasattr(model, "predict_proba"):
        decisions = np.asarray(model.decision_function(rows), dtype=np.float64)
        return decisions if decisions.ndim == 1 else np.clip(decisions, -RAW_TOP, RAW_TOP)
    probabilities = np.asarray(model.predict_proba(rows), dtype=np.float64)
    probability = np.zeros((len(probabilities), target.classes))
    probability[:, np.asarray(model.classes_, dtype=np.int64)] = probabilities
    return from_probabilities(probability)


def from_probabilities(probability: Floats) -> Floats:
    """Log-odds of each class; of the second if there are two."""
    return raw_log_odds(probability[:, 1] if probability.shape[1] == 2 else probability)
