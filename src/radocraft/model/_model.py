"""The model file: what was learned, from what, and how good it is. JSON, self-contained.

A score is linear in the features as the contract encodes them::

    score = intercept + sum over shared columns + sum over private columns of weight * value

with ``value = (raw - centre) / scale`` for a number, 0 where it is missing, and no raw
value beyond the limits within which rows were summed. The
file holds every weight in these standardised units and in the units of the raw
column, the contract, a line on every part it was learned from, the losses, and
per block the mean contribution of each peer. No sum of a peer's column is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from radocraft.arrays import Floats, Ints, Tabular
from radocraft.contract import Constants, Contract, Record, Value
from radocraft.errors import FileError, LearnError
from radocraft.files import __version__, read_json, write_json
from radocraft.model._checks import check_model
from radocraft.model._expectation import in_words, naive_answer
from radocraft.model._explanation import Explanation, explain
from radocraft.model._fields import (
    BlockTable,
    Certificate,
    Coefficient,
    Difference,
    Estimate,
    NoiseCost,
    Odds,
    Origin,
    Seen,
    Tuning,
    Validation,
    Weight,
)
from radocraft.model._scores import ScoreModel, predict_scores
from radocraft.model._scoring import Scores
from radocraft.model._scoring import predict as predict_columns
from radocraft.model._shares import bin_width, check_single, contributions, identity
from radocraft.rows import Scorer

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Literal[1] = 1


class Model(Tabular, Record):
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

    format: Literal[1] = FORMAT
    radocraft: str = __version__
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    method: Literal["matching", "drl"]
    settings: dict[str, float | str]
    contract: Contract
    intercept: Weight
    raw_intercept: Weight
    coefficients: tuple[Coefficient, ...]
    constants: dict[str, Constants] = Field(default_factory=dict)
    odds: Odds | None
    estimate: Estimate
    certificate: Certificate | None
    tuning: Tuning | None
    validation: Validation | None = None
    privacy: NoiseCost | None = None
    second_round: Estimate | None = None
    learned_from: tuple[Origin, ...]
    effects: dict[str, Weight]
    blocks: BlockTable
    differences: tuple[Difference, ...] = ()
    population: tuple[Seen, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_model(self)
        return self

    @property
    def peers(self) -> tuple[str, ...]:
        """The peers it was learned from."""
        return tuple(origin.peer for origin in self.learned_from)

    @property
    def classes(self) -> tuple[Value, ...]:
        """The label's values: negative and positive, the classes in the contract's order; none if it is a number."""
        return self.contract.label.values

    @property
    def base_rate(self) -> float:
        """The error of always giving the label that most rows have."""
        weights, labels = np.array(self.blocks.weights), np.array(self.blocks.labels)
        return 1.0 - max(float(weights[labels == code].sum()) for code in np.unique(labels)) / float(weights.sum())

    @cached_property
    def shared_weights(self) -> Floats:
        """Weights of the shared columns, in the contract's order."""
        return self.stacked([c.standardised for c in self.coefficients if c.peer is None])

    def stacked(self, weights: list[Weight]) -> Floats:
        """Weights as an array, with a second axis if there are several classes."""
        return np.array(weights, dtype=np.float64).reshape(len(weights), *np.shape(self.intercept))

    def of_peer(self, peer: str) -> tuple[Coefficient, ...]:
        """The coefficients of a peer's private columns, in the contract's order."""
        return tuple(c for c in self.coefficients if c.peer == peer)

    def limits(self, peers: Iterable[str]) -> tuple[Floats, Floats]:
        """The least and the most that a raw value counts, by private column of these peers."""
        own = [c for peer in peers for c in self.of_peer(peer)]
        low = np.array([-np.inf if c.low is None else c.low for c in own])
        return low, np.array([np.inf if c.high is None else c.high for c in own])

    @cached_property
    def block_codes(self) -> Ints:
        """Codes of the blocks as an array, one row each."""
        return np.array(self.blocks.codes, dtype=np.int64).reshape(len(self.blocks.labels), len(self.contract.shared))

    def predict(self, data: Any) -> Scores:
        """Score a table; see `radocraft.predict`."""
        return predict_columns(self, data)

    def to_arrow(self) -> pa.Table:
        """Its coefficients, those that move scores most first; see `explain`."""
        return explain(self).to_arrow()

    def in_one_line(self) -> str:
        """Of what it is, and whose parts it was learned from."""
        return f"Model({self.contract.name!r}, learned from {', '.join(self.peers)})"

    def in_sentences(self) -> tuple[str, ...]:
        """What to expect of it, and the certificate."""
        return self.expectation, *explain(self).in_sentences()

    def drawn(self) -> str | None:
        """The effects, of a model with one score."""
        return explain(self).drawn()

    @property
    def expectation(self) -> str:
        """What to expect on new rows, in words."""
        return in_words(self)

    @property
    def naive_answer(self) -> str:
        """The answer that needs no model."""
        return naive_answer(self.contract, self.blocks)

    @cached_property
    def identity(self) -> str:
        """A hash of what makes the scores."""
        return identity(self)

    def check_single(self) -> None:
        """Refuse a second round where there is not one score."""
        check_single(self)

    def contributions(self, peer: str) -> Floats:
        """A peer's mean contribution to every block; the first peer counts shared columns and constant as its own."""
        return contributions(self, peer)

    def bin_width(self, peer: str) -> float:
        """Of the bins in which a peer counts its contributions."""
        return bin_width(self, peer)

    def explain(self) -> Explanation:
        """What scores are made of; see `radocraft.explain`."""
        return explain(self)

    def to_sql(self, like: Any, dialect: str = "duckdb", table: str = "people") -> str:
        """One SELECT that scores a table where it is, as `predict` does.

        It gives the table's own columns, then ``score`` and, unless the label is a number, ``probability`` (of the
        positive label); with several classes one of each, ``score_0`` and ``probability_NAME`` and so on.

        Parameters
        ----------
        like
            A table such as the one to be scored, a sample will do: its columns and how they are held are
            taken from it. The columns of every peer must be there.
        dialect
            Whose SQL: "duckdb", "postgres", "spark", "snowflake" or "bigquery".
        table
            The name of the table to be scored.

        Examples
        --------
        >>> import radocraft as rc
        >>> contract, tables = rc.example_peers(rows=500)
        >>> model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
        >>> theirs = tables["insurer"].drop_columns(["defaulted", "region", "age_at_signing"])
        >>> people = tables["bank"]
        >>> for name in theirs.column_names:
        ...     people = people.append_column(name, theirs[name])
        >>> print(model.to_sql(people, "postgres", "public.people").splitlines()[0])
        SELECT
        """
        from radocraft.model._statement import to_sql  # noqa: PLC0415 - rarely asked for

        return to_sql(self, like, dialect, table)

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn pipeline with the same classes and probabilities, for tables with all columns."""
        from radocraft.model._pipeline import to_sklearn  # noqa: PLC0415 - scikit-learn is slow to import

        return to_sklearn(self)

    def save(self, path: str | Path) -> None:
        """Write the model to a JSON file, whole or not at all."""
        write_json(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file."""
        remedy = "It must be a file written by `radocraft learn`; if it is from another version, learn it again."
        return read_json(cls, path, "model", remedy)


def load_model(path: str | Path) -> Model | ScoreModel:
    """Read a model file, of columns or of scores.

    Examples
    --------
    >>> import tempfile
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> file = Path(tempfile.mkdtemp()) / "model.json"
    >>> rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract).save(file)
    >>> rc.load_model(file).peers
    ('bank', 'insurer')
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"Cannot read the model '{path}': {error.strerror}. Check the path.") from error
    except (ValueError, RecursionError):
        content = None
    of_scores = isinstance(content, dict) and content.get("method") == "scores"
    return ScoreModel.load(path) if of_scores else Model.load(path)


def load_column_model(path: str | Path) -> Model:
    """Read a model file of columns, for a second round."""
    model = load_model(path)
    if isinstance(model, ScoreModel):
        raise LearnError(
            f"'{path}' is a model of scores. Parts of scores hold histograms of them already, so there is no second "
            "round that counts them: learn is enough."
        )
    return model


def predict(
    model: Model | ScoreModel, data: Any, on: str | None = None, scorers: Sequence[Scorer | str | Path] = ()
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
    if not isinstance(model, Model):
        raise LearnError(
            f"A model is needed where a {type(model).__name__} was given. Call it as predict(model, data); "
            "load_model reads a model's file."
        )
    return predict_columns(model, data)
