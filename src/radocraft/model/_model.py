"""The model: one file, with what is known about it, and all that can be done with it."""

from __future__ import annotations

from typing import Any

from radocraft.model._explanation import Explanation, explain
from radocraft.model._record import Record
from radocraft.model._scoring import Scores, predict


class Model(Record):
    """A learned classifier. `radocraft.learn` makes one; `save` and `load` keep it as a JSON file.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> model = rc.learn(parts, contract)
    >>> model.predict(tables["bank"]).view
    ('bank',)
    """

    def predict(self, data: Any) -> Scores:
        """Score a table; see `radocraft.predict`."""
        return predict(self, data)

    def explain(self) -> Explanation:
        """What scores are made of; see `radocraft.explain`."""
        return explain(self)

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn pipeline with the same classes and probabilities, for tables with all columns."""
        from radocraft.model._pipeline import to_sklearn  # noqa: PLC0415 - scikit-learn is slow to import

        return to_sklearn(self)
