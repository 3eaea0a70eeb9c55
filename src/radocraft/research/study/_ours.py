"""Ours on an arena, the whole way: each peer's `share`, `learn`, `predict`; exact and through the default gate.

A peer's scorer is fitted once and shared four times: with and without the key, exact and
with noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa

from radocraft.contract import Contract
from radocraft.gate import Policy
from radocraft.learning import learn
from radocraft.model import Model, ScoreModel
from radocraft.parts import Part
from radocraft.peer import share
from radocraft.research.study._arena import Arena, Outcome, judged
from radocraft.rows import Scorer

GATES = {"exact": Policy.exact(min_rows=10), "default": Policy()}
_COLUMNS: tuple[tuple[str, Literal["numeric", "spline"], Literal["drl", "matching"]], ...] = (
    ("drl", "numeric", "drl"),
    ("matching, linear", "numeric", "matching"),
    ("matching, splines", "spline", "matching"),
)


def run_ours(arena: Arena) -> Iterator[Outcome]:
    """Every method of ours on one arena, through both gates."""
    for gate, policy in GATES.items():
        parts = {kind: _parts(arena, arena.agree(kind), policy) for kind in ("numeric", "spline")}
        for name, kind, method in _COLUMNS:
            yield replace(_predicted(name, arena, learn(parts[kind], arena.agree(kind), method=method)), gate=gate)
    yield from _scores(arena)


def _scores(arena: Arena) -> Iterator[Outcome]:
    keyed = arena.agree("score")
    contracts = {"scores with key": keyed, "scores": keyed.model_copy(update={"key": None})}
    scorers: dict[str, Scorer] = {}
    for peer, table in arena.tables.items():
        fitted: list[Scorer] = []
        share(table, keyed, peer, policy=GATES["exact"], on_scorer=fitted.append, say=_hush)
        scorers[peer] = fitted[0]
    scored = [scorer.score(arena.test) for scorer in scorers.values()]
    columns = {name: table.column(name) for table in scored for name in table.column_names}
    label = arena.contract.label.column
    new = pa.table({**columns, label: arena.test.column(label)})
    for gate, policy in GATES.items():
        for name, contract in contracts.items():
            parts = [
                share(table, contract, peer, policy=policy, scorer=replace(scorers[peer], contract=contract), say=_hush)
                for peer, table in arena.tables.items()
            ]
            yield replace(_predicted(name, arena, learn(parts, contract), new), gate=gate)


def _parts(arena: Arena, contract: Contract, policy: Policy) -> list[Part]:
    return [share(table, contract, peer, policy=policy, say=_hush) for peer, table in arena.tables.items()]


def _predicted(name: str, arena: Arena, model: Model | ScoreModel, new: pa.Table | None = None) -> Outcome:
    new = arena.test if new is None else new
    said = model.predict(new)
    return judged(name, said.score, said.probability, np.asarray(said.chosen == 1), arena.truth(new))


def _hush(_: str) -> None:
    """What `share` tells its user, a thousand times over."""
