"""A model as one SELECT, for databases that are to score where the rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from radocraft.errors import DataError, LearnError, MissingColumn
from radocraft.rows import View, listed, open_source

if TYPE_CHECKING:
    from radocraft.arrays import Floats
    from radocraft.model._model import Model

DIALECTS = ("duckdb", "postgres", "spark", "snowflake", "bigquery")


def to_sql(model: Model, like: Any, dialect: str, table: str) -> str:
    """See `Model.to_sql`."""
    if dialect not in DIALECTS:
        raise LearnError(f"There is no SQL for '{dialect}'. There is for {', '.join(DIALECTS)}.")
    source = open_source(like)
    view = View.of(model.contract, model.peers, source, model.constants)
    if absent := [peer for peer in model.peers if peer not in view.readers]:
        raise MissingColumn(
            f"'{source.name}' has no columns of {listed(absent)}, and the statement holds no block means to fill them "
            "in from. Give a table with the columns of every peer, or use `predict`."
        )
    scores = np.array(model.intercept).size
    names = _names(model)
    if taken := {"score", *names, *(f"score_{at}" for at in range(scores))} & {*source.kinds()}:
        raise DataError(f"'{source.name}' has a column {listed(sorted(taken))} already. Rename it, or leave it out.")
    private = [c for c in model.coefficients if c.peer is not None]
    weights = model.stacked([c.raw for c in private]).reshape(len(private), scores)
    odds = model.odds
    return view.statement(
        dialect,
        table,
        names,
        intercept=np.array(model.intercept).reshape(scores),
        shared=_by_code(model, scores),
        centre=np.array([c.centre for c in private]),
        limits=model.limits(model.peers),
        weights=weights.T,
        offset=np.zeros(0) if odds is None else np.array(odds.offset).reshape(-1),
        slope=np.zeros((0, scores)) if odds is None else np.array(odds.slope).reshape(-1, scores),
    )


def _names(model: Model) -> list[str]:
    """What the columns of probabilities are called."""
    if model.odds is None:
        return []
    several = np.shape(model.intercept) != ()
    return [f"probability_{name}" for name in model.contract.label.names] if several else ["probability"]


def _by_code(model: Model, scores: int) -> tuple[Floats, ...]:
    """For each shared feature the weight of each of its codes, one line per score."""
    start, found = 0, []
    weights = model.shared_weights.reshape(-1, scores)
    for shared in model.contract.shared:
        stop = start + len(shared.encoded)
        found.append(np.asarray(shared.matrix @ weights[start:stop]).T)
        start = stop
    return tuple(found)
