"""Rivals that a competent peer would run today, and ridge, on an arena.

==========================  ===================================================================
``peer, boosting``          boosted trees of each peer's own, tuned and calibrated by itself
``joined, boosting``        the same on the truly joined table, which nobody has
``zip, boosting``           the same on tables sorted by block and paired row by row
``late fusion``             the sum of the peers' calibrated log-odds less (p - 1) times the
                            signature's: nothing is exchanged in training
``mean of log-odds``        their mean
``peer, ridge`` and so on   ridge with gamma by cross-validation in place of boosted trees
==========================  ===================================================================

Late fusion is Bayes' rule if the peers' columns are independent inside signature and label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit

from radocraft.arrays import Floats, Ints, Truths
from radocraft.demo import FINE_GAMMAS, PeerTable, fit_ridge, zip_rows
from radocraft.research.study._arena import Arena, Outcome, judged
from radocraft.research.study._boosting import Boosted, Sheet

_PRIOR_ROWS = 2.0


def run_rivals(arena: Arena, seed: int = 0) -> Iterator[Outcome]:
    """Every rival on one arena."""
    truth = arena.truth(arena.test)
    paired = zip_tables(arena)
    peers, alone = [*arena.tables], []
    for at, (peer, table) in enumerate(arena.tables.items(), start=1):
        alone.append(boosted(arena, table, (peer,), seed))
        yield replace(_told("peer, boosting", alone[-1], truth), peer=at)
        yield replace(_ridge("peer, ridge", arena, table, (peer,), seed), peer=at)
    for name, table in (("joined", arena.joined), ("zip", paired)):
        yield _told(f"{name}, boosting", boosted(arena, table, peers, seed), truth)
        yield _ridge(f"{name}, ridge", arena, table, peers, seed)
    held = [
        signature_log_odds(arena.signatures(table), arena.truth(table), arena.signatures(arena.test))
        for table in arena.tables.values()
    ]
    yield _told("late fusion", fuse(np.array(alone), np.mean(held, axis=0)), truth)
    yield _told("mean of log-odds", np.mean(alone, axis=0), truth)


def boosted(arena: Arena, table: pa.Table, peers: Sequence[str], seed: int) -> Floats:
    """Log-odds of the new people by boosted trees over the shared features and the columns of some peers."""
    names = [*arena.shared, *(name for peer in peers for name in arena.private(peer))]
    model = Boosted.fit(Sheet.of(table, names, table), arena.truth(table), seed)
    return model.log_odds(Sheet.of(arena.test, names, table))


def fuse(log_odds: Floats, signature: Floats) -> Floats:
    """Bayes' rule for peers that are independent inside blocks: a row for each peer, and the signature's log-odds.

    Examples
    --------
    >>> fuse(np.array([[1.0], [2.0]]), np.array([0.5])).tolist()
    [2.5]
    """
    return np.asarray(log_odds.sum(axis=0) - (len(log_odds) - 1) * signature)


def signature_log_odds(signatures: Ints, truth: Truths, new: Ints) -> Floats:
    """Log-odds of the label at each new row's signature, by one peer's counts, drawn to those of all rows by two rows.

    Examples
    --------
    >>> rows, truth = np.array([0, 0, 1, 1]), np.array([True, False, True, True])
    >>> np.round(signature_log_odds(rows, truth, np.array([0, 1, 2])), 3).tolist()
    [0.511, 1.946, 1.099]
    """
    base = truth.mean()
    size = int(max(signatures.max(), new.max())) + 1
    rows = np.bincount(signatures, minlength=size)
    positive = np.bincount(signatures, weights=truth, minlength=size)
    return np.asarray(logit((positive + _PRIOR_ROWS * base) / (rows + _PRIOR_ROWS))[new], dtype=np.float64)


def zip_tables(arena: Arena) -> pa.Table:
    """All peers' tables sorted by signature and label and paired in order."""
    places = []
    for peer, table in arena.tables.items():
        held = arena.peer_table((), table)
        places.append(PeerTable(peer, (peer,), held.codes, held.labels, np.arange(float(len(held)))[:, None]))
    paired = zip_rows(places).values
    rows = paired[~np.isnan(paired).any(axis=1)].astype(np.int64)
    pieces = [table.take(pa.array(at)) for table, at in zip(arena.tables.values(), rows.T, strict=True)]
    first, columns = pieces[0], dict[str, pa.ChunkedArray]()
    for peer, piece in zip(arena.tables, pieces, strict=True):
        columns |= {name: piece.column(name) for name in arena.private(peer)}
    common = [*arena.shared, arena.contract.label.column]
    return pa.table({name: first.column(name) for name in common} | columns)


def _told(name: str, log_odds: Floats, truth: Truths) -> Outcome:
    return judged(name, log_odds, expit(log_odds), log_odds > 0.0, truth)


def _ridge(name: str, arena: Arena, table: pa.Table, peers: Sequence[str], seed: int) -> Outcome:
    """Ridge says no probabilities, so it has no log loss."""
    train, test = arena.peer_table(peers, table), arena.peer_table(peers, arena.test)
    encode = arena.contract.encode_shared
    model = fit_ridge(encode(train.codes), train.values, train.labels, gammas=FINE_GAMMAS, seed=seed)
    scores = model.scores(encode(test.codes), test.values)
    return judged(name, scores, None, scores > 0.0, arena.truth(arena.test))
