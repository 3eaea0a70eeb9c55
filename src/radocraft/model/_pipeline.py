"""A model as a fitted scikit-learn pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from radocraft.arrays import Floats
from radocraft.contract import Constants, Contract, private_columns
from radocraft.model._fields import number
from radocraft.rows import View, open_source

if TYPE_CHECKING:
    from radocraft.model._model import Model


class ContractEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a table as a contract says: shared columns, then each peer's private ones in raw units.

    Parameters
    ----------
    contract
        What the peers agreed on.
    peers
        Whose columns, in order.
    centre
        What stands for a missing value of each private column.
    constants
        What the contract leaves to each peer's data.
    limits
        The least and the most that a value of each private column counts; see `Model.limits`.
    """

    def __init__(
        self,
        contract: Contract,
        peers: tuple[str, ...],
        centre: tuple[float, ...],
        constants: dict[str, Constants] | None = None,
        limits: tuple[Floats, Floats] = (np.array(-np.inf), np.array(np.inf)),
    ) -> None:
        self.constants = constants
        self.contract = contract
        self.peers = peers
        self.centre = centre
        self.limits = limits

    def fit(self, X: Any, y: Any = None) -> ContractEncoder:
        """Nothing to learn: the contract says it all."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The model's columns: shared ones, then each peer's, of what several hold the first one's."""
        private = [column.name for peer in self.peers for column in private_columns(self.contract, peer)]
        return np.array([*self.contract.shared_columns, *dict.fromkeys(private)], dtype=object)

    def transform(self, X: Any) -> Floats:
        """The columns of the model for every row."""
        check_is_fitted(self)
        source = open_source(X)
        view = View.of(self.contract, self.peers, source, self.constants)
        out = []
        for batch in view.batches():
            values = np.clip(view.values(batch), *self.limits)
            values = np.where(np.isnan(values), np.array(self.centre), values)
            out.append(np.hstack([self.contract.encode_shared(view.codes(batch)), values]))
        return np.vstack(out)


def to_sklearn(model: Model) -> Pipeline:
    """A fitted pipeline that needs the columns of every peer the model was learned from."""
    private = [c for c in model.coefficients if c.peer is not None]
    limits, centre = model.limits(model.peers), tuple(c.centre for c in private)
    encoder = ContractEncoder(model.contract, model.peers, centre, model.constants, limits)
    weights = model.stacked([c.raw for c in model.coefficients]).reshape(len(model.coefficients), -1)
    if model.odds is None:
        regression = LinearRegression()
        regression.coef_, regression.intercept_ = weights[:, 0], number(model.raw_intercept)
        regression.n_features_in_ = len(weights)
        return Pipeline([("encode", encoder), ("predict", regression)])
    slope = np.array(model.odds.slope).reshape(weights.shape[1], -1)
    offset = np.array(model.odds.offset) + slope @ np.array(model.raw_intercept).reshape(-1)
    classifier = LogisticRegression()
    classifier.classes_ = np.array(model.classes)
    classifier.coef_ = slope @ weights.T
    classifier.intercept_ = offset
    classifier.n_features_in_ = len(weights)
    classifier.n_iter_ = np.array([0])
    return Pipeline([("encode", encoder), ("classify", classifier)])
