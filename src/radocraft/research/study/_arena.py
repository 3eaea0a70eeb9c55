"""Where all methods meet: peers' tables, the joined table that nobody holds, and new people to test on.

Tables are real ones with names and words in them, so that ours go the whole way from
`share` to `predict`, and rivals see each column as a competent peer would: a number, or a
category. What is asked of all of them is `Outcome`: error, AUC and log loss on new people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from radocraft.arrays import Floats, Ints, Truths
from radocraft.contract import Contract, private_columns
from radocraft.demo import PeerTable
from radocraft.learning import auc
from radocraft.research.study._generator import Kind, generate_peers
from radocraft.research.study._methods import Fold, Rows
from radocraft.rows import View, open_source

KEYS, NEW_PEOPLE = 365, 50_000
_TINY = 1e-6


@dataclass(frozen=True)
class Outcome:
    """How one method did on new people; ``gate`` is what its sums passed, ``peer`` who was alone."""

    algorithm: str
    error: float
    auc: float
    log_loss: float
    gate: str | None = None
    peer: int | None = None


def judged(algorithm: str, score: Floats, probability: Floats | None, chosen: Truths, truth: Truths) -> Outcome:
    """An outcome: AUC of the score, error of the chosen label, log loss of the probability (NaN where there is none).

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> judged("coin", half, half, np.array([True, True]), np.array([True, False]))
    Outcome(algorithm='coin', error=0.5, auc=0.5, log_loss=0.6931471805599453, gate=None, peer=None)
    """
    loss = np.nan
    if probability is not None:
        told = np.clip(np.where(truth, probability, 1.0 - probability), _TINY, 1.0)
        loss = float(-np.log(told).mean())
    return Outcome(algorithm, float(np.mean(chosen != truth)), auc(score, np.where(truth, 1, -1)), loss)


@dataclass(frozen=True)
class Arena:
    """One experiment.

    Parameters
    ----------
    tables
        By peer its columns, the shared features, the label and the key.
    joined
        The truly joined table of the same people.
    test
        New people with all columns.
    agree
        The contract of each kind: numbers, splines, or a score for each peer with a key.
    """

    tables: dict[str, pa.Table]
    joined: pa.Table
    test: pa.Table
    agree: Callable[[Kind], Contract]

    @cached_property
    def contract(self) -> Contract:
        """The contract over plain numbers."""
        return self.agree("numeric")

    @property
    def shared(self) -> tuple[str, ...]:
        """The columns that all peers have."""
        return tuple(shared.name for shared in self.contract.shared)

    def private(self, peer: str) -> tuple[str, ...]:
        """The columns that one peer has."""
        return tuple(self.contract.peers[peer].features)

    def truth(self, table: pa.Table) -> Truths:
        """Which rows are positive."""
        label = self.contract.label
        return np.asarray(pc.equal(table.column(label.column), pa.scalar(label.values[-1])).to_numpy())

    def codes(self, table: pa.Table) -> Ints:
        """The rows' codes of the shared features."""
        return self._arrays((), table)[0]

    def signatures(self, table: pa.Table) -> Ints:
        """The rows' places in the grid of agreed codes."""
        shape = tuple(len(shared.codes) + 1 for shared in self.contract.shared)
        return np.asarray(np.ravel_multi_index(tuple(self.codes(table).T), shape), dtype=np.int64)

    def peer_table(self, peers: Sequence[str], table: pa.Table) -> PeerTable:
        """A table as numbers: codes, labels, the peers' columns (a category as one column for each value)."""
        codes, values = self._arrays(tuple(peers), table)
        columns = tuple(column.name for peer in peers for column in private_columns(self.contract, peer))
        return PeerTable("+".join(peers), columns, codes, np.where(self.truth(table), 1, -1), values)

    def _arrays(self, peers: tuple[str, ...], table: pa.Table) -> tuple[Ints, Floats]:
        view = View.of(self.contract, peers, open_source(table))
        batches = list(view.batches())
        return np.vstack([view.codes(b) for b in batches]), np.vstack([view.values(b) for b in batches])


def arena_of(fold: Fold, seed: int) -> Arena:
    """A fold of a domain, every row at every peer; the neutral key is drawn at random."""
    rng = np.random.default_rng(seed)
    columns = {table.name: held for table, held in zip(fold.tables, fold.columns, strict=True)}
    joined = _whole(fold, fold.train).append_column("key", pa.array(rng.integers(0, KEYS, len(fold.train.labels))))
    common = [*(name for name in joined.column_names if name.startswith("s")), "y", "key"]
    names = {peer: [f"x{at}" for at in range(held.start, held.stop)] for peer, held in columns.items()}
    tables = {
        peer: joined.select([*common, *own]).take(pa.array(rng.permutation(joined.num_rows)))
        for peer, own in names.items()
    }

    def agree(kind: Kind) -> Contract:
        shared = [
            {"name": f"s{at}", "edges": [code + 0.5 for code in range(len(cuts))]} for at, cuts in enumerate(fold.edges)
        ]
        features = {peer: {"features": _features(peer, own, kind)} for peer, own in names.items()}
        key = {"key": [{"name": "key", "categories": [*range(KEYS)]}]} if kind == "score" else {}
        label = {"column": "y", "positive": 1, "negative": 0}
        return Contract.model_validate({"name": "cell", "label": label, "shared": shared, "peers": features, **key})

    return Arena(tables, joined, _whole(fold, fold.test), agree)


def _features(peer: str, names: Sequence[str], kind: Kind) -> Mapping[str, str]:
    return {f"{peer}_score": "score"} if kind == "score" else dict.fromkeys(names, kind)


def _whole(fold: Fold, rows: Rows) -> pa.Table:
    """Whole rows under plain names; a code or value that is missing is null."""
    missing = np.array([len(cuts) + 1 for cuts in fold.edges])
    held = {
        f"s{at}": pa.array(codes, mask=codes == missing[at], type=pa.int64()) for at, codes in enumerate(rows.codes.T)
    }
    held |= {f"x{at}": pa.array(column, from_pandas=True) for at, column in enumerate(rows.values.T)}
    return pa.table({**held, "y": (rows.labels > 0).astype(np.int64)})


def generated_arena(rows: int, peers: int, seed: int) -> Arena:
    """Generated people (see `generate_peers`), and new ones of the same law."""
    drawn = generate_peers(rows, peers=peers, seed=2 * seed)
    new = generate_peers(NEW_PEOPLE, peers=peers, seed=2 * seed + 1)
    return Arena(drawn.tables, drawn.joined, new.joined, drawn.contract)
