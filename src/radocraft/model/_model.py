"""The model: one file, with what is known about it, and all that can be done with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from radocraft.errors import FileError
from radocraft.model._explanation import Explanation, explain
from radocraft.model._record import Record
from radocraft.model._scores import ScoreModel, predict_scores
from radocraft.model._scoring import Scores
from radocraft.model._scoring import predict as predict_columns
from radocraft.rows import Scorer


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
        return predict_columns(self, data)

    def explain(self) -> Explanation:
        """What scores are made of; see `radocraft.explain`."""
        return explain(self)

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn pipeline with the same classes and probabilities, for tables with all columns."""
        from radocraft.model._pipeline import to_sklearn  # noqa: PLC0415 - scikit-learn is slow to import

        return to_sklearn(self)


def load_model(path: str | Path) -> Model | ScoreModel:
    """Read a model file, of columns or of scores."""
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"Cannot read the model '{path}': {error.strerror}. Check the path.") from error
    except (ValueError, RecursionError):
        found = None
    of_scores = isinstance(found, dict) and found.get("method") == "scores"
    return ScoreModel.load(path) if of_scores else Model.load(path)


def predict(
    model: Record | ScoreModel, data: Any, on: str | None = None, scorers: Sequence[Scorer | str | Path] = ()
) -> Scores:
    """Score every row of a table.

    Parameters
    ----------
    model
        What `learn` gave.
    data
        For a model of columns one table: a path, a data frame, a source; see `open_source`.
        Columns are found under the contract's name or the peer's own. A peer none of whose
        columns is there is filled in from block means; a peer of whom some are missing is
        an error. For a model of scores one table or several, of scores as `radocraft score`
        writes them or of people for ``scorers`` to score.
    on
        For several tables of scores: the column by which their rows belong together.
    scorers
        For a model of scores: what was kept when parts were made, or the files of it.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> scores = rc.predict(rc.learn(parts, contract), tables["insurer"])
    >>> scores.view, scores.probability.shape
    (('insurer',), (500,))
    """
    if isinstance(model, ScoreModel):
        return predict_scores(model, data, on, scorers)
    return predict_columns(model, data)
