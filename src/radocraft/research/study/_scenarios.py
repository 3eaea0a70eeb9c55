"""Scenarios: how a table is split among peers that share no id.

`split_features` draws which features are shared and which peer holds each of
the others; `deal` then gives every peer its rows, in an order of its own, so
that nothing but codes and label connects two tables. Who sees which row:

==============  ==============================================================
``vertical``    every peer sees every row: the paper's setting (VP), p_s = 0
``duplicates``  the same, and each peer picks a share p_s of the rows, each of
                which another peer, drawn at random, gets a second time
``one-peer``    every row is seen by one peer; each peer picks a share p_s of
                its rows, each of which another peer sees too
``random``      every peer sees every row with probability eta: setting (R)
==============  ==============================================================

Codes or labels may be wrong at the last peer (``corrupted``, ``corruption``): a share of
its rows has the signature of another of its rows, or the other label.

The paper's sentence on p_s ("each peer selects a proportion p_s of its examples
and for each of them another peer gets the example as well") fits the second
and the third; its remark that p_s = 0 is (VP) fits the second only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from radocraft.arrays import Floats, Ints, Truths
from radocraft.demo import PeerTable
from radocraft.errors import StudyError

Setting = Literal["vertical", "duplicates", "one-peer", "random"]
FeatureOrder = Literal["per-domain", "per-cell"]
Shareable = Literal["any", "binnable"]
Corrupted = Literal["nothing", "signatures", "labels"]
Edges = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Scenario:
    """How many peers, how much they share, and who sees which row.

    Parameters
    ----------
    peers, shared
        Number of peers and of shared features: the paper's p and dim(J).
    bins
        Into how many bins of equal weight a shared feature is cut.
    setting, share
        Who sees which row, and its p_s or eta.
    corrupted, corruption
        What is wrong at the last peer, and in which share of its rows.
    seed
        Where the random draws start.
    feature_order
        Whether features are in one random order for each seed (``per-domain``), so that more shared features are the
        same ones and more; or drawn anew for every number of peers and of shared features (``per-cell``).
    shareable
        Which features may be shared: ``any``, or those that can be cut into that many bins (``binnable``), as far as
        there are enough of them.

    Examples
    --------
    >>> Scenario(peers=2, shared=1).setting
    'vertical'
    """

    peers: int
    shared: int
    bins: int = 4
    setting: Setting = "vertical"
    share: float = 0.0
    corrupted: Corrupted = "nothing"
    corruption: float = 0.0
    seed: int = 0
    feature_order: FeatureOrder = "per-domain"
    shareable: Shareable = "any"

    def __post_init__(self) -> None:
        if self.peers < 2 or self.shared < 0 or self.bins < 2:
            raise StudyError(
                f"A scenario needs at least 2 peers, 0 shared features and 2 bins, not {self.peers}, {self.shared} "
                f"and {self.bins}."
            )
        if not 0.0 <= self.share <= 1.0 or (self.setting == "random" and self.share == 0.0):
            raise StudyError(f"The share of rows must lie between 0 and 1 (above 0 if random), not {self.share}.")
        if self.setting == "vertical" and self.share != 0.0:
            raise StudyError("In the vertical setting every peer sees every row: leave share at 0.")
        if not 0.0 <= self.corruption <= 1.0 or (self.corrupted == "nothing") != (self.corruption == 0.0):
            raise StudyError(
                f"Corruption is a share from 0 to 1 of signatures or labels, and 0 of nothing: not {self.corruption} "
                f"of {self.corrupted}."
            )

    def rng(self, *stream: int) -> np.random.Generator:
        """Random numbers of this scenario; another stream gives independent ones."""
        return np.random.default_rng([self.seed, *stream])


@dataclass(frozen=True)
class FeatureSplit:
    """Positions of the shared features, and of each peer's private ones."""

    shared: Ints
    private: tuple[Ints, ...]


def split_features(width: int, scenario: Scenario, binnable: Truths | None = None) -> FeatureSplit:
    """Draw the shared features; split the others evenly and at random among the peers.

    In the random order of the features the first are shared, or the first of the ``binnable`` ones if the scenario
    says so; see `Scenario`.

    Examples
    --------
    >>> split = split_features(7, Scenario(peers=2, shared=1))
    >>> len(split.shared), [len(private) for private in split.private]
    (1, [3, 3])
    """
    if width - scenario.shared < scenario.peers:
        raise StudyError(
            f"{width} features, {scenario.shared} of them shared, leave some of {scenario.peers} peers without a "
            "private feature. Take fewer peers or fewer shared features."
        )
    stream = () if scenario.feature_order == "per-domain" else (scenario.peers, scenario.shared)
    order = scenario.rng(*stream).permutation(width).astype(np.int64)
    shared = order[: scenario.shared]
    if binnable is not None and scenario.shareable == "binnable" and binnable.sum() >= scenario.shared:
        shared = order[binnable[order]][: scenario.shared]
    private = np.array_split(order[~np.isin(order, shared)], scenario.peers)
    return FeatureSplit(shared, tuple(np.sort(part) for part in private))


def are_binnable(values: Floats, bins: int) -> Truths:
    """Which columns have enough distinct values to be cut into that many bins.

    Examples
    --------
    >>> are_binnable(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, np.nan]]), 3).tolist()
    [True, False]
    """
    return np.array([len(np.unique(column[~np.isnan(column)])) >= bins for column in values.T], dtype=np.bool_)


def agree_edges(values: Floats, bins: int) -> Edges:
    """Bin edges of each shared feature, at the quantiles of its present values.

    A feature with few distinct values gets fewer bins; one that is constant
    gets a single edge at its value.

    Examples
    --------
    >>> agree_edges(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0]]), 2)
    ((2.5,), (1.0,))
    """
    edges = []
    for column in values.T:
        present = column[~np.isnan(column)]
        cuts = np.unique(np.quantile(present, np.arange(1, bins) / bins)) if len(present) else np.zeros(1)
        cuts = cuts[cuts > present.min(initial=np.inf)]
        if not len(cuts) and len(present):
            above = present[present > present.min()]
            cuts = np.array([above.min() if len(above) else present.min()])
        edges.append(tuple(float(cut) for cut in cuts) or (0.0,))
    return tuple(edges)


def code_shared(values: Floats, edges: Edges) -> Ints:
    """The code of every shared value: its bin, closed on the left, or one past the last bin if missing.

    Examples
    --------
    >>> code_shared(np.array([[1.0], [2.5], [np.nan]]), ((2.5,),)).ravel()
    array([0, 1, 2])
    """
    codes = np.empty(values.shape, dtype=np.int64)
    for at, cuts in enumerate(edges):
        binned = np.searchsorted(cuts, values[:, at], side="right")
        codes[:, at] = np.where(np.isnan(values[:, at]), len(cuts) + 1, binned)
    return codes


def deal(
    scenario: Scenario,
    split: FeatureSplit,
    names: Sequence[str],
    *,
    codes: Ints,
    labels: Ints,
    features: Floats,
    fold: int = 0,
) -> tuple[PeerTable, ...]:
    """Give every peer its rows and columns of a table, each in an order of its own.

    Examples
    --------
    >>> scenario = Scenario(peers=2, shared=1)
    >>> features = np.arange(12.0).reshape(4, 3)
    >>> labels = np.array([1, 1, -1, -1])
    >>> split = split_features(3, scenario)
    >>> codes = code_shared(features[:, split.shared], ((5.0,),))
    >>> [len(table) for table in deal(scenario, split, "abc", codes=codes, labels=labels, features=features)]
    [4, 4]
    """
    rng = scenario.rng(scenario.peers, scenario.shared, fold)
    tables = []
    for at, (rows, columns) in enumerate(zip(seen_rows(scenario, labels, rng), split.private, strict=True)):
        order = rng.permutation(rows)
        held = columns[np.argsort([names[column] for column in columns])]
        tables.append(
            PeerTable(
                name=f"peer{at + 1:02d}",
                columns=tuple(names[column] for column in held),
                codes=codes[order],
                labels=labels[order],
                values=features[np.ix_(order, held)],
            )
        )
    tables[-1] = corrupt(tables[-1], scenario, scenario.rng(scenario.peers, scenario.shared, fold, 1))
    return tuple(tables)


def corrupt(table: PeerTable, scenario: Scenario, rng: np.random.Generator) -> PeerTable:
    """The table with a share of its signatures taken from other rows, or of its labels turned round.

    Examples
    --------
    >>> codes, labels = np.arange(20).reshape(10, 2), np.ones(10, dtype=np.int64)
    >>> table = PeerTable("b", ("x",), codes, labels, np.zeros((10, 1)))
    >>> wrong = Scenario(peers=2, shared=2, corrupted="labels", corruption=0.3)
    >>> int((corrupt(table, wrong, np.random.default_rng(0)).labels < 0).sum())
    3
    """
    wrong = rng.choice(len(table), size=round(scenario.corruption * len(table)), replace=False)
    codes, labels = table.codes.copy(), table.labels.copy()
    if scenario.corrupted == "signatures":
        codes[wrong] = table.codes[(wrong + rng.integers(1, max(len(table), 2), len(wrong))) % len(table)]
    else:
        labels[wrong] *= -1
    return replace(table, codes=codes, labels=labels)


def seen_rows(scenario: Scenario, labels: Ints, rng: np.random.Generator) -> list[Ints]:
    """Which rows each peer sees, as often as it sees them."""
    everyone = np.arange(len(labels), dtype=np.int64)
    if scenario.setting == "random":
        return [everyone[rng.random(len(labels)) < scenario.share] for _ in range(scenario.peers)]
    if scenario.setting == "one-peer":
        return _passed_on(scenario, one_owner_each(labels, scenario.peers, rng), rng)
    return _passed_on(scenario, [everyone] * scenario.peers, rng)


def one_owner_each(labels: Ints, peers: int, rng: np.random.Generator) -> list[Ints]:
    """Every row to one peer, evenly, and evenly within each label so that every peer sees both."""
    by_label = [rng.permutation(np.flatnonzero(labels == sign)) for sign in (-1, 1)]
    turn = np.empty(len(labels), dtype=np.int64)
    turn[np.concatenate(by_label)] = np.arange(len(labels)) % peers
    return [np.flatnonzero(turn == peer).astype(np.int64) for peer in range(peers)]


def _passed_on(scenario: Scenario, held: list[Ints], rng: np.random.Generator) -> list[Ints]:
    """Each peer picks a share of its rows and passes each on to another peer drawn at random."""
    received: list[list[Ints]] = [[rows] for rows in held]
    for giver, rows in enumerate(held):
        picked = rng.choice(rows, size=round(scenario.share * len(rows)), replace=False)
        taker = (giver + 1 + rng.integers(scenario.peers - 1, size=len(picked))) % scenario.peers
        for peer in range(scenario.peers):
            received[peer].append(picked[taker == peer])
    return [np.concatenate(pieces) for pieces in received]
