"""Scored folds of the paper's domains: what every peer's own model says of each row, fitted once and kept.

    RADOCRAFT_DATA=... python benchmarks/scored.py DIRECTORY [DOMAIN ...]

Fitting takes nearly all of the time of the benchmarks that are about scores, and what comes after it is drawn many
times: keys, noise, correlations. So the scores of a fold are kept, in a directory or for one run. 44 cells: eleven
domains, two and four peers, two draws of who holds what; two shared features of four bins.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier

from radocraft import Contract
from radocraft.research.study._cell import Cell, folds_of
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._methods import Fold, Rows
from radocraft.rows._chunks import joined
from radocraft.rows._estimators import Target, estimator
from radocraft.rows._features import ScorerColumn
from radocraft.rows._fitting import ordered
from radocraft.rows._scoring_rows import _columns, _Peer, open_source, score_rows

KEYS = 365
PEERS, DRAWS = (2, 4), (0, 1)
MISSING = 4
ENOUGH = 2000  # test rows of a cell; small domains are tested on all of their folds


@dataclass(frozen=True)
class ScoredFold:
    """One fold: `scores` of the rows that peers have (out of fold) and `new` of the test rows, a column per peer."""

    codes: np.ndarray  # bins of the shared features: 0 to 3 or fewer, and 4 for missing
    labels: np.ndarray
    scores: np.ndarray
    new_codes: np.ndarray
    new_labels: np.ndarray
    new: np.ndarray
    boosting: np.ndarray  # ... by each peer's boosting alone
    joined: np.ndarray  # log-odds of boosting on the joined table, of the test rows
    pooled: np.ndarray  # ... of boosting, forest and linear model on the joined table, of equal weight

    @property
    def peers(self) -> int:
        """How many there are."""
        return self.scores.shape[1]

    @property
    def contract(self) -> Contract:
        """The contract of these peers, with a key."""
        codes = np.vstack([self.codes, self.new_codes])
        return agreed(self.peers, [int(column[column < MISSING].max()) for column in codes.T])

    def places(self, codes: np.ndarray) -> np.ndarray:
        """The rows' places in the grid of agreed codes."""
        shape = tuple(len(shared.codes) for shared in self.contract.shared)
        return np.ravel_multi_index(tuple(np.minimum(codes, np.array(shape) - 1).T), shape)


def agreed(peers: int, last: list[int]) -> Contract:
    """Bins as they are coded already, of each shared feature from 0 to the last, and a key with 365 values."""
    return Contract.model_validate(
        {
            "name": "cell",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "shared": [{"name": f"s{at}", "edges": [code + 0.5 for code in range(top)]} for at, top in enumerate(last)],
            "peers": {f"p{at}": {"features": {f"score{at}": {"kind": "score"}}} for at in range(peers)},
            "key": [{"name": "key", "categories": [*range(KEYS)]}],
        }
    )


def cells_of(domains: list[str], draws: tuple[int, ...] = DRAWS) -> Iterator[Cell]:
    """The cells of some domains."""
    for seed in draws:
        for name in domains:
            for peers in PEERS:
                yield Cell(name, peers, 2, DOMAINS[name].default, folds=5, seed=seed)


def scored_folds(cell: Cell, kept: Path | None = None) -> Iterator[ScoredFold]:
    """The folds of a cell, read where they were kept."""
    tested = 0
    for number, fold in enumerate(folds_of(cell)):
        if tested >= ENOUGH:
            return
        file = None if kept is None else kept / f"{cell.domain}-{cell.peers}-{cell.seed}-{number}.npz"
        if file is not None and file.exists():
            with np.load(file) as held:
                scored = ScoredFold(**{field.name: held[field.name] for field in fields(ScoredFold)})
        else:
            scored = scored_fold(fold)
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                np.savez_compressed(file, **vars(scored))
        tested += len(scored.new_labels)
        yield scored


def scored_fold(fold: Fold) -> ScoredFold:
    """Fit every peer's model, and boosting on the joined table."""
    contract = agreed(len(fold.tables), [len(edges) for edges in fold.edges]).model_copy(update={"key": None})
    train, test = _whole(fold.train), _whole(fold.test)
    columns = [ScorerColumn(f"x{at}", "number") for at in range(train.shape[1])]
    pool = estimator("boosting", columns, Target(2), 0, pooled=True)
    scores, new, alone = [], [], []
    for at, some in enumerate(fold.columns):
        old, fresh = _scored(contract, f"p{at}", *(_table(rows, some) for rows in (fold.train, fold.test)))
        scores.append(old)
        new.append(fresh)
        own = [np.column_stack([rows.codes, rows.values[:, some]]) for rows in (fold.train, fold.test)]
        alone.append(_log_odds(HistGradientBoostingClassifier(random_state=0), own[0], fold.train, own[1]))
    return ScoredFold(
        fold.train.codes,
        (fold.train.labels > 0).astype(np.int64),
        np.column_stack(scores),
        fold.test.codes,
        (fold.test.labels > 0).astype(np.int64),
        np.column_stack(new),
        np.column_stack(alone),
        _log_odds(HistGradientBoostingClassifier(random_state=0), train, fold.train, test),
        _log_odds(pool, train, fold.train, test),
    )


def _log_odds(model: Any, train: np.ndarray, rows: Rows, test: np.ndarray) -> np.ndarray:
    """What a model fitted on some rows says of the test rows."""
    share = np.clip(model.fit(train, rows.labels > 0).predict_proba(test)[:, 1], 1e-6, 1 - 1e-6)
    return np.asarray(np.log(share / (1 - share)))


def _scored(contract: Contract, name: str, old: pa.Table, new: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """A peer's scores of its rows, in their order, and of new ones."""
    rows, scorer = score_rows(old, contract, name)
    peer = _Peer(open_source(old), contract, name, None, None, 0)
    chunk = joined(list(peer.asking(_columns(peer, peer.score, None)[0]).chunks(peer.source)))
    order = ordered(_numbered(chunk), 0).groups
    out = np.empty(len(rows))
    out[order] = rows.scores
    assert (chunk.labels[order] == rows.labels).all()
    return out, scorer.score(new).column(contract.score_of(name)[0]).to_numpy()


def _numbered(chunk: Any) -> Any:
    """The rows with their number as whose they are, which is the last that they are ordered by."""
    return type(chunk)(**{**vars(chunk), "groups": np.arange(len(chunk))})


def _table(rows: Rows, columns: slice) -> pa.Table:
    held = {f"s{at}": np.where(codes == MISSING, np.nan, codes) for at, codes in enumerate(rows.codes.T)}
    held |= {f"x{at}": column for at, column in enumerate(rows.values[:, columns].T)}
    return pa.table({**held, "y": (rows.labels > 0).astype(np.int64)})


def _whole(rows: Rows) -> np.ndarray:
    """Codes and values of whole rows, as only the joined table has them."""
    return np.column_stack([rows.codes, rows.values])


def main() -> None:
    """Score all folds and keep them."""
    directory, *domains = sys.argv[1:]
    for cell in cells_of(domains or [*DOMAINS]):
        count = sum(1 for _ in scored_folds(cell, Path(directory)))
        print(f"{cell.domain} p={cell.peers} draw {cell.seed}: {count} folds", flush=True)


if __name__ == "__main__":
    main()
