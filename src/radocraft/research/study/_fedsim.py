"""A yardstick that others made: the table ``frog`` of FedSim (Wu, Li, He, NeurIPS 2022).

Party A has the label, its columns and 16 keys; party B has its columns and the same keys, with
noise. Theirs links rows by how near their keys are, in training and in testing. Ours links
nothing: the two keys that vary most, in four bins, are the signature, and B has the label of
its own rows. Test rows of ours are truly joined. So the rows of the table stand side by side, and
are not a race under one set of rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from radocraft.arrays import Floats
from radocraft.contract import Contract
from radocraft.errors import StudyError
from radocraft.gate import Policy
from radocraft.learning import learn
from radocraft.peer import share
from radocraft.progress import Progress, quiet
from radocraft.research.study._domains import DATA
from radocraft.research.study._ours import GATES
from radocraft.rows import Scorer

NOISE_OF_KEYS = ("0.0", "0.1", "0.2")
PUBLISHED = {
    "Solo (A alone)": (0.768, 0.772, 0.770),
    "Top1Sim (nearest key)": (0.918, 0.900, 0.839),
    "AvgSim": (0.920, 0.930, 0.914),
    "FedSim": (0.955, 0.956, 0.907),
    "Combine (truly joined)": (0.982, 0.984, 0.984),
}
KEYS, BINS = 2, 4
_TINY = 1e-6
FEDSIM_REMARK = (
    "Theirs, as published: A alone has the label; rows are linked by keys in training and in testing; keys do not "
    "predict. Ours: nothing is linked; both parties have the label of their own rows; the two keys that vary most, in "
    "four bins, are the signature, which predicts too; test rows are truly joined. With keys: they are features as "
    "well. A local model with A's own keys is as good as truly joined rows, which leaves little for B to add. Matching "
    "is over splines; scores are one release for each species and party."
)


@dataclass(frozen=True)
class FedSimLine:
    """One method, whose figures these are (``them``: published), and its accuracy by noise in B's keys."""

    method: str
    source: str
    accuracy: tuple[float, ...]


def run_fedsim(runs: int = 5, progress: Progress = quiet) -> list[FedSimLine]:
    """The published table, then local models and ours, at each level of noise.

    Examples
    --------
    >>> [line.method for line in run_fedsim(runs=1)][:2]  # doctest: +SKIP
    ['Solo (A alone)', 'Top1Sim (nearest key)']
    """
    found: dict[str, list[list[float]]] = {}
    tables = [read_frog(level) for level in NOISE_OF_KEYS]
    for count, (at, seed) in enumerate(product(range(len(tables)), range(runs))):
        progress("frog", count, runs * len(tables))
        with threadpool_limits(1):
            for method, accuracy in run_split(tables[at], seed):
                found.setdefault(method, [[] for _ in tables])[at].append(accuracy)
    published = [FedSimLine(method, "them", accuracy) for method, accuracy in PUBLISHED.items()]
    measured = [
        FedSimLine(method, "us", tuple(float(np.mean(level)) for level in levels)) for method, levels in found.items()
    ]
    return [*published, *measured]


def read_frog(level: str) -> pa.Table:
    """The table at one level of noise in B's keys."""
    folder = os.environ.get(DATA)
    path = Path(folder or "") / "fedsim" / f"frog_{level}.parquet"
    if folder is None or not path.is_file():
        raise StudyError(
            f"There is no 'fedsim/{path.name}' in the folder {DATA}. Rebuild it by FedSim's public recipe, with the "
            "columns y, a0.., b0.. (the parties' columns), c0.. and n0.. (keys as A and as B has them)."
        )
    return pq.read_table(path)


def run_split(table: pa.Table, seed: int) -> Iterator[tuple[str, float]]:
    """Accuracy of every method on one split: 60 % of the rows to train on, 20 % to test on, as published."""
    rest, test = train_test_split(np.arange(table.num_rows), test_size=0.2, random_state=seed)
    train, _ = train_test_split(rest, test_size=0.25, random_state=seed)
    known, new = table.take(pa.array(train)), table.take(pa.array(test))
    own, keys, theirs, noisy = (_starting(table, letter) for letter in "acbn")
    truth = _column(new, "y")
    local = {
        "A alone, boosting": own,
        "A alone with its keys, boosting": (*own, *keys),
        "B alone, if it had the label, boosting": theirs,
        "truly joined, boosting": (*own, *theirs),
        "truly joined with A's keys, boosting": (*own, *theirs, *keys),
    }
    told = {}
    for method, names in local.items():
        model = HistGradientBoostingClassifier(random_state=seed).fit(_matrix(known, names), _column(known, "y"))
        told[method] = np.log(np.maximum(model.predict_proba(_matrix(new, names)), _TINY))
        yield method, float(np.mean(model.classes_[told[method].argmax(axis=1)] == truth))
    share_of_species = np.bincount(_column(known, "y").astype(np.int64)) / known.num_rows
    fused = told["A alone, boosting"] + told["B alone, if it had the label, boosting"] - np.log(share_of_species)
    yield "late fusion, if B had the label", float(np.mean(fused.argmax(axis=1) == truth))
    for words, features in (("", (own, theirs)), (" with keys", ((*own, *keys), (*theirs, *noisy)))):
        parties = Parties.of(known, new, dict(zip("AB", features, strict=True)), seed)
        for method, (gate, policy) in product(("matching", "scores"), GATES.items()):
            yield f"{method}{words}, {gate} gate", parties.accuracy(method, policy)


@dataclass(frozen=True)
class Parties:
    """What A and B hold, each with the signature by its own keys: training rows in its own order, test rows joined."""

    tables: dict[str, pa.Table]
    new: dict[str, pa.Table]
    features: dict[str, tuple[str, ...]]
    species: tuple[int, ...]
    scorers: dict[tuple[str, int], Scorer] = field(default_factory=dict)

    @classmethod
    def of(cls, known: pa.Table, new: pa.Table, features: dict[str, tuple[str, ...]], seed: int) -> Self:
        """From rows to train on and to test on."""
        keys = widest_keys(known)
        edges = [np.quantile(_column(known, f"c{key}"), np.arange(1, BINS) / BINS) for key in keys]
        order = np.random.default_rng(seed).permutation(known.num_rows)
        tables = {"A": _signed(known, "c", keys, edges), "B": _signed(known, "n", keys, edges).take(pa.array(order))}
        tested = {"A": _signed(new, "c", keys, edges), "B": _signed(new, "n", keys, edges)}
        return cls(tables, tested, features, tuple(sorted(pc.unique(known.column("y")).to_pylist())))

    def accuracy(self, method: str, policy: Policy) -> float:
        """The share of test rows given the right species, by sums of splines or by a score for each species."""
        if method == "scores":
            chosen = np.column_stack([self._against_the_rest(species, policy) for species in self.species])
            place = chosen.argmax(axis=1)
        else:
            contract = self._contract({"column": "y", "classes": self.species}, dict.fromkeys(("A", "B"), "spline"))
            parts = [share(table, contract, peer, policy=policy, say=_hush) for peer, table in self.tables.items()]
            place = np.asarray(learn(parts, contract).predict(self.new["A"]).chosen)
        return float(np.mean(np.array(self.species)[place] == _column(self.new["A"], "y")))

    def _against_the_rest(self, species: int, policy: Policy) -> Floats:
        contract = self._contract({"column": f"is_{species}", "positive": 1, "negative": 0}, None)
        parts = []
        for peer, table in self.tables.items():
            kept = self.scorers.get((peer, species))
            fit = partial(self._keep, species)
            parts.append(share(table, contract, peer, policy=policy, scorer=kept, on_scorer=fit, say=_hush))
        sheets = [self.scorers[peer, species].score(new) for peer, new in self.new.items()]
        columns = {name: table.column(name) for table in reversed(sheets) for name in table.column_names}
        return learn(parts, contract).predict(pa.table(columns)).score

    def _keep(self, species: int, scorer: Scorer) -> None:
        self.scorers[scorer.peer, species] = scorer

    def _contract(self, label: dict[str, Any], kinds: dict[str, str] | None) -> Contract:
        """Over plain columns of these kinds, or over one score for each party."""
        peers = {
            peer: {f"{peer}_score": {"kind": "score", "of": names}}
            if kinds is None
            else dict.fromkeys(names, kinds[peer])
            for peer, names in self.features.items()
        }
        shared = [{"name": f"key{at}", "categories": [*range(BINS)]} for at in range(KEYS)]
        held = {peer: {"features": features} for peer, features in peers.items()}
        return Contract.model_validate({"name": "frog", "label": label, "shared": shared, "peers": held})


def widest_keys(table: pa.Table) -> tuple[int, ...]:
    """The keys that vary most at A, so that the same noise moves the fewest of their values into another bin.

    Examples
    --------
    >>> widest_keys(pa.table({"c0": [0.0, 1.0], "c1": [0.0, 3.0], "c2": [0.0, 2.0]}))
    (1, 2)
    """
    spread = [float(_column(table, name).std()) for name in _starting(table, "c")]
    return tuple(int(at) for at in np.argsort(spread)[::-1][:KEYS])


def _signed(table: pa.Table, letter: str, keys: tuple[int, ...], edges: list[Floats]) -> pa.Table:
    """The table with a party's keys in bins, and for each species whether a row is of it."""
    for at, (key, cuts) in enumerate(zip(keys, edges, strict=True)):
        table = table.append_column(f"key{at}", pa.array(np.searchsorted(cuts, _column(table, f"{letter}{key}"))))
    species = _column(table, "y").astype(np.int64)
    table = table.set_column(table.column_names.index("y"), "y", pa.array(species))
    for one in np.unique(species):
        table = table.append_column(f"is_{one}", pa.array((species == one).astype(np.int64)))
    return table


def _starting(table: pa.Table, letter: str) -> tuple[str, ...]:
    return tuple(name for name in table.column_names if name[0] == letter)


def _column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def _matrix(table: pa.Table, names: Sequence[str]) -> Floats:
    return np.column_stack([_column(table, name) for name in names])


def _hush(_: str) -> None:
    """What `share` tells its user, hundreds of times."""
