"""The scikit-learn classifier, for work on one table: what peers with these columns would have learned together.

The table is cut into peers by columns; rows are never paired across peers, only
summed by block, exactly as peers with tables of their own would do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.gate import Noise, Policy, release
from radocraft.learning import Population, fit_drl, fit_matching, learn, merge_cells
from radocraft.model import predict
from radocraft.peer import share
from radocraft.rows import Scorer, craft_rows
from radocraft.sums import Cells

Column = int | str


class RadocraftClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A binary classifier learned from block sums of a table cut into peers.

    Parameters
    ----------
    peers
        The private columns of each peer, by position or name. None deals all
        columns that are not shared to two peers in turn.
    shared
        The columns every peer holds, by position or name; the last is given up
        first when a block has too few rows.
    bins
        How many bins (by quantiles) a shared column with more values gets.
    method
        "matching" or "drl".
    caution
        For matching, from 0 to 1; None chooses as `radocraft.learn` does.
    alpha
        For matching, the ridge strength; by generalised cross-validation if None.
    min_rows
        The fewest rows a block may hold before it is rolled up.
    noise
        How much noise every sum carries, as a share of its sampling error; none if 0.
    random_state
        The seed of that noise, where columns are summed.
    scorer
        In place of columns each peer sums what a model of its own says of rows out of fold: "boosting", "linear", or an
        estimator. None sums columns. `method`, `caution` and `alpha` are for columns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> classifier = RadocraftClassifier(shared=["mean radius"]).fit(X, y)
    >>> bool(classifier.score(X, y) > 0.9)
    True
    >>> by_scores = RadocraftClassifier(shared=["mean radius"], scorer="linear").fit(X, y)
    >>> by_scores.model_.peers
    ('peer0', 'peer1')
    """

    def __init__(
        self,
        peers: Sequence[Sequence[Column]] | None = None,
        *,
        shared: Sequence[Column] = (),
        bins: int = 4,
        method: Literal["matching", "drl"] = "matching",
        caution: float | None = None,
        alpha: float | None = None,
        min_rows: int = 1,
        noise: float = 0.0,
        random_state: int = 0,
        scorer: Any = None,
    ) -> None:
        self.peers = peers
        self.shared = shared
        self.bins = bins
        self.method = method
        self.caution = caution
        self.alpha = alpha
        self.min_rows = min_rows
        self.noise = noise
        self.random_state = random_state
        self.scorer = scorer

    def fit(self, X: Any, y: Any) -> Self:
        """Cut the table into peers, sum by block, learn."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {len(self.classes_)} class."
            )
        if np.isinf(X).any():
            raise ValueError("Input X contains infinity or a value too large for dtype('float64').")
        labels = np.where(y == self.classes_[1], 1, -1)
        self.shared_, self.peers_ = self._columns(X.shape[1])
        self.edges_ = tuple(_edges(X[:, position], self.bins) for position in self.shared_)
        self.contract_ = self._contract()
        if self.scorer is not None:
            return self._fit_scores(X, labels)
        codes = self._codes(X)
        blocks = merge_cells(
            tuple(
                self._cells(f"peer{position}", X[:, where], codes, labels) for position, where in enumerate(self.peers_)
            ),
            self.contract_,
        )
        fit = fit_matching(blocks, self.caution, self.alpha) if self.method == "matching" else fit_drl(blocks)
        self.intercept_ = float(fit.theta[0])
        self.shared_coef_ = fit.theta[fit.layout.shared]
        scale = np.concatenate([cells.scale for cells in blocks.cells])
        self.centre_ = np.concatenate([cells.centre for cells in blocks.cells])
        self.limits_ = blocks.limits
        self.coef_ = fit.theta[fit.layout.shared.stop :] / scale
        self.odds_ = Population.of(blocks, fit).odds(prior=self.method == "matching")
        return self

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        if self.scorer is not None:
            return np.asarray(predict(self.model_, self._table(X), scorers=self.scorers_).score)
        shared = self.contract_.encode_shared(self._codes(X)) @ self.shared_coef_
        values = np.clip(X[:, np.concatenate(self.peers_)], *self.limits_)
        private = np.nan_to_num(values - self.centre_, nan=0.0) @ self.coef_
        return self.odds_.log_odds(self.intercept_ + shared + private)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> Any:
        """The likelier class of every row."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def _fit_scores(self, X: Floats, labels: Ints) -> Self:
        """Each peer scores out of fold and sums its scores; the head is learned from the sums."""
        table = self._table(X).append_column("label", pa.array(labels))
        own, scorers = None if isinstance(self.scorer, str) else self.scorer, list[Scorer]()
        parts = [
            share(
                table.select(
                    [*(f"shared{position}" for position in range(len(self.shared_))), *self._of(index), "label"]
                ),
                self.contract_,
                peer,
                policy=self._policy(),
                scorer=own,
                on_scorer=scorers.append,
            )
            for index, peer in enumerate(self.contract_.peers)
        ]
        self.scorers_ = tuple(scorers)
        self.model_ = learn(parts, self.contract_)
        return self

    def _table(self, X: Floats) -> pa.Table:
        """The columns by the names of the contract."""
        columns = {f"shared{index}": X[:, where] for index, where in enumerate(self.shared_)}
        for index, where in enumerate(self.peers_):
            columns |= dict(zip(self._of(index), X[:, where].T, strict=True))
        return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})

    def _of(self, index: int) -> tuple[str, ...]:
        """A peer's columns."""
        return _names(f"peer{index}", len(self.peers_[index]))

    def _policy(self) -> Policy:
        return Policy(self.min_rows, noise=self.noise) if self.noise else Policy.exact(self.min_rows)

    def _columns(self, width: int) -> tuple[Ints, tuple[Ints, ...]]:
        shared = self._positions(self.shared)
        if self.peers is not None:
            return shared, tuple(self._positions(columns) for columns in self.peers)
        rest = np.setdiff1d(np.arange(width), shared)
        return shared, tuple(positions for positions in (rest[::2], rest[1::2]) if len(positions))

    def _positions(self, columns: Sequence[Column]) -> Ints:
        names = list(getattr(self, "feature_names_in_", []))
        unknown = [name for name in columns if isinstance(name, str) and name not in names]
        if unknown:
            raise ValueError(f"There is no column {', '.join(map(repr, unknown))}. There are: {', '.join(names)}.")
        positions = [names.index(name) if isinstance(name, str) else name for name in columns]
        return np.array(positions, dtype=np.int64)

    def _contract(self) -> Contract:
        shared = [{"name": f"shared{index}", "edges": edges.tolist()} for index, edges in enumerate(self.edges_)]
        peers = {f"peer{index}": {"features": self._features(index)} for index in range(len(self.peers_))}
        label = {"column": "label", "positive": 1, "negative": -1}
        return Contract.model_validate({"name": "one table", "label": label, "shared": shared, "peers": peers})

    def _features(self, index: int) -> dict[str, object]:
        if self.scorer is None:
            return dict.fromkeys(self._of(index), "numeric")
        model = self.scorer if isinstance(self.scorer, str) else "boosting"
        return {f"score{index}": {"kind": "score", "of": [*self._of(index)], "model": model}}

    def _codes(self, X: Floats) -> Ints:
        codes = np.zeros((len(X), len(self.shared_)), dtype=np.int64)
        for index, (column, edges) in enumerate(zip(self.shared_, self.edges_, strict=True)):
            missing = np.isnan(X[:, column])
            codes[:, index] = np.where(missing, len(edges) + 1, np.searchsorted(edges, X[:, column], side="right"))
        return codes

    def _cells(self, peer: str, values: Floats, codes: Ints, labels: Ints) -> Cells:
        columns = _names(peer, values.shape[1])
        policy, noise = self._policy(), Noise.seeded(self.random_state, peer)
        tally = craft_rows(
            self.contract_,
            peer,
            columns,
            codes=codes,
            labels=labels,
            values=values,
            bounds=policy.bounds,
            noise=noise,
        )
        return release(tally, self.contract_, policy, noise).cells


def _names(peer: str, width: int) -> tuple[str, ...]:
    """Names of a peer's columns, in order, and no other peer's."""
    return tuple(f"{peer} {column:06d}" for column in range(width))


def _edges(values: Floats, bins: int) -> Floats:
    """Between the values where there are few, else at quantiles; at least one edge."""
    present = np.unique(values[~np.isnan(values)])
    if not len(present):
        return np.zeros(1)
    edges = present[1:] if len(present) <= bins else np.unique(np.nanquantile(values, np.arange(1, bins) / bins))
    edges = edges[edges > present[0]]
    return edges if len(edges) else present[-1:]
