"""A model as a fitted scikit-learn pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from radocraft.arrays import Floats
from radocraft.contract import Contract
from radocraft.encoding import Constants
from radocraft.model.record import Record
from radocraft.model.scoring import View, checked_batches
from radocraft.sources import open_source


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
    """

    def __init__(
        self,
        contract: Contract,
        peers: tuple[str, ...],
        centre: tuple[float, ...],
        constants: dict[str, Constants] | None = None,
    ) -> None:
        self.constants = constants
        self.contract = contract
        self.peers = peers
        self.centre = centre

    def fit(self, X: Any, y: Any = None) -> ContractEncoder:
        """Nothing to learn: the contract says it all."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Floats:
        """The columns of the model for every row."""
        check_is_fitted(self)
        source = open_source(X)
        view = View.of(self.contract, self.peers, source, self.constants)
        out = []
        for batch in checked_batches(view, source):
            values = view.values(batch)
            values = np.where(np.isnan(values), np.array(self.centre), values)
            out.append(np.hstack([self.contract.encode_shared(view.codes(batch)), values]))
        return np.vstack(out)


def to_sklearn(model: Record) -> Pipeline:
    """A fitted pipeline that needs the columns of every peer the model was learned from."""
    private = [c for c in model.coefficients if c.peer is not None]
    encoder = ContractEncoder(model.contract, model.peers, tuple(c.centre for c in private), model.constants)
    weights = np.array([c.raw for c in model.coefficients])
    classifier = LogisticRegression()
    classifier.classes_ = np.array(model.classes)
    classifier.coef_ = model.odds.slope * weights[None, :]
    classifier.intercept_ = np.array([model.odds.offset + model.odds.slope * model.raw_intercept])
    classifier.n_features_in_ = len(weights)
    classifier.n_iter_ = np.array([0])
    return Pipeline([("encode", encoder), ("classify", classifier)])
