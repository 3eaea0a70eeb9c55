"""The main job on small data: split, shuffle, craft, learn, and compare with the alternatives.

Two worlds: scikit-learn's wine, and the made-up bank and insurer of `example`
with 100,000 customers. Everything goes the real way: every peer's own table is
crafted and passes the gate, the learner sees parts and nothing else. The wines are
public, and leave as exact sums, as in the paper; the customers leave with noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from radocraft.arrays import Floats, Ints, one_thread
from radocraft.contract import Contract, private_columns
from radocraft.demo._baselines import FINE_GAMMAS, PeerTable, fit_ridge, zip_rows
from radocraft.demo._example import CONTRACT, deal, example_people
from radocraft.gate import Policy
from radocraft.learning import auc, error_rate, learn
from radocraft.parts import Part
from radocraft.peer import share
from radocraft.progress import Progress, quiet
from radocraft.rows import View, open_source

CUSTOMERS = 100_000
NEW_CUSTOMERS = 50_000
METHODS = ("oracle", "best_peer", "mean_peer", "zip", "drl", "matching")
PUBLIC = Policy.exact(min_rows=10)
"""Wine is public, and 178 rows are too few for noise."""
_FOLDS = 10
_ALONE = "alone: "


@dataclass(frozen=True)
class Result:
    """One method: error and AUC on people it has not seen, and the bytes that left the peers for it."""

    error: float
    auc: float
    bytes: int


@dataclass(frozen=True)
class Sent:
    """What one peer sent, beside what it holds."""

    peer: str
    rows: int
    table_bytes: int
    cells: int
    part_bytes: int
    blocks_rolled_up: int


@dataclass(frozen=True)
class World:
    """One experiment: results by method, and what each peer sent."""

    name: str
    title: str
    results: dict[str, Result]
    sent: tuple[Sent, ...]


@one_thread
def demo(customers: int = CUSTOMERS, progress: Progress = quiet) -> list[World]:
    """Run the demonstration.

    Examples
    --------
    >>> worlds = demo(customers=2000)
    >>> [world.name for world in worlds]
    ['wine', 'bank_and_insurer']
    """
    return [_wine(progress), _bank_and_insurer(customers, progress)]


def _wine(progress: Progress) -> World:
    folds = list(wine_folds())
    contests = []
    for number, (contract, people, new) in enumerate(folds):
        progress("wine", number, len(folds))
        contests.append(contest(contract, people, new, seed=number, policy=PUBLIC))
    results = {name: _average([results[name] for results, _ in contests]) for name in contests[0][0]}
    title = f"wine: 178 wines, 2 shared features, exact sums of a public table, {_FOLDS} folds"
    return World("wine", title, ranked(results), contests[0][1])


def _bank_and_insurer(customers: int, progress: Progress) -> World:
    progress("bank and insurer", 0, 0)
    people, new = example_people(customers, seed=0), example_people(NEW_CUSTOMERS, seed=1)
    results, sent = contest(Contract.parse(CONTRACT), people, new, seed=0, policy=Policy())
    title = f"bank and insurer: {customers:,} customers, 2 shared features, sums with noise"
    return World("bank_and_insurer", title, ranked(results), sent)


def contest(
    contract: Contract, people: pa.Table, new: pa.Table, seed: int, policy: Policy
) -> tuple[dict[str, Result], tuple[Sent, ...]]:
    """All methods, and every peer alone, on one joined table that nobody holds, tested on new people."""
    tables = deal(contract, people, np.random.default_rng(seed))
    parts = [share(table, contract, peer, policy=policy) for peer, table in tables.items()]
    sent = tuple(_sent(part, tables[part.peer]) for part in parts)
    labels = signs(contract, new)
    moved, part_bytes = sum(peer.table_bytes for peer in sent), sum(peer.part_bytes for peer in sent)
    results = baselines(contract, tables, people, new, moved)
    for method in ("drl", "matching"):
        scores = learn(parts, contract, method=method).predict(new).score
        results[method] = Result(error_rate(scores, labels), auc(scores, labels), part_bytes)
    return results, sent


def baselines(
    contract: Contract, tables: dict[str, pa.Table], people: pa.Table, new: pa.Table, moved: int
) -> dict[str, Result]:
    """Ridge on the truly joined table, on each peer's own, and on tables zipped together by block."""
    labels = signs(contract, new)

    def scored(train: PeerTable, peers: tuple[str, ...], moved: int) -> Result:
        fit = fit_ridge(contract.encode_shared(train.codes), train.values, train.labels, gammas=FINE_GAMMAS)
        test = arrays(contract, peers, new)
        scores = fit.scores(contract.encode_shared(test.codes), test.values)
        return Result(error_rate(scores, labels), auc(scores, labels), moved)

    peers = tuple(tables)
    designs = [arrays(contract, (peer,), table) for peer, table in tables.items()]
    return {
        "oracle": scored(arrays(contract, peers, people), peers, moved),
        "zip": scored(zip_rows(designs), peers, moved),
        **{f"{_ALONE}{peer}": scored(table, (peer,), 0) for peer, table in zip(peers, designs, strict=True)},
    }


def ranked(results: dict[str, Result]) -> dict[str, Result]:
    """The peers alone as their best (in hindsight) and their mean, beside the methods, in order."""
    alone = [result for name, result in results.items() if name.startswith(_ALONE)]
    peers = {"best_peer": min(alone, key=lambda result: result.error), "mean_peer": _average(alone)}
    return {name: (peers | results)[name] for name in METHODS}


def arrays(contract: Contract, peers: tuple[str, ...], table: pa.Table) -> PeerTable:
    """A table as codes, labels and raw values of these peers' columns."""
    view = View.of(contract, peers, open_source(table))
    batches = list(view.source.batches(view.query()))
    values = np.vstack([view.values(batch) for batch in batches])
    codes = np.vstack([view.codes(batch) for batch in batches])
    columns = tuple(column.name for peer in peers for column in private_columns(contract, peer))
    return PeerTable("+".join(peers), columns, codes, signs(contract, table), values)


def signs(contract: Contract, table: pa.Table) -> Ints:
    """Labels as +1 and -1."""
    label = table.column(contract.label.column)
    return np.where(label.to_numpy() == contract.label.values[-1], 1, -1)


def wine_folds() -> Iterator[tuple[Contract, pa.Table, pa.Table]]:
    """Scikit-learn's wine, the second cultivar against the rest; two shared features, the others dealt in turn."""
    from sklearn.datasets import load_wine  # noqa: PLC0415 - slow to import
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415

    data: Any = load_wine()
    names = [name.replace("/", "_") for name in data.feature_names]
    table = pa.table({"cultivar": (data.target == 1).astype(int), **dict(zip(names, data.data.T, strict=True))})
    splitter = StratifiedKFold(n_splits=_FOLDS, shuffle=True, random_state=0)
    for train, test in splitter.split(data.data, data.target):
        people = table.take(pa.array(train))
        yield wine_contract(names, data.data[train]), people, table.take(pa.array(test))


def wine_contract(names: list[str], values: Floats) -> Contract:
    """The first two features are shared, in four bins; the others go to the two peers in turn."""
    shared = [
        {"name": name, "edges": np.quantile(values[:, index], (0.25, 0.5, 0.75)).tolist()}
        for index, name in enumerate(names[:2])
    ]
    peers = {
        peer: {"features": {name: {"kind": "numeric"} for name in names[2 + index :: 2]}}
        for index, peer in enumerate(("laboratory", "cellar"))
    }
    label = {"column": "cultivar", "positive": 1, "negative": 0}
    return Contract.model_validate({"name": "wine", "label": label, "shared": shared, "peers": peers})


def _sent(part: Part, table: pa.Table) -> Sent:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    rolled = part.metadata["policy"]["rolled_up"]
    return Sent(part.peer, table.num_rows, int(sink.getvalue().size), part.table.num_rows, part.nbytes, rolled)


def _average(results: list[Result]) -> Result:
    return Result(
        float(np.mean([result.error for result in results])),
        float(np.mean([result.auc for result in results])),
        round(np.mean([result.bytes for result in results])),
    )
