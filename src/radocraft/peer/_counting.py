"""Counting the rows of a peer by its share of a model's score; the counts leave with noise (`share_counts`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from radocraft.arrays import Floats, Ints, Truths, dense
from radocraft.errors import LearnError, PolicyRefusal
from radocraft.gate import TOTAL, Noise, Policy, ScoreTerms, rho_of
from radocraft.model import (
    Model,
    number,
)
from radocraft.parts import BINS, REACH, Histograms
from radocraft.rows import Source, View, check_labels
from radocraft.sums import CLIP_GROUP, GRID, count_groups, locate


@dataclass(frozen=True)
class Counts:
    """Exact counts by label (negative, positive) and bin, and sums by group of the key in steps; they never leave."""

    rows: Ints
    groups: tuple[Floats, Floats]

    def digest(self, model: Model) -> str:
        """By which a release of the same counts is known."""
        exact = self.rows.astype("<i8").tobytes() + b"".join(sums.astype("<f8").tobytes() for sums in self.groups)
        return hashlib.sha256(model.identity.encode() + exact).hexdigest()

    def released(self, model: Model, peer: str, policy: Policy, noise: Noise | None = None) -> Histograms:
        """The counts and sums as they may leave."""
        exact, levels, noise = self.rows, CountLevels(), Noise() if noise is None else noise
        if policy.noisy:
            levels = self._levels(model, policy, noise)
            exact = exact + noise.draw(exact.shape, levels.bins).astype(np.int64)
        negative, positive = (
            tuple(((sums + noise.draw(len(sums), sd * GRID)) / GRID).tolist())
            for sums, sd in zip(self.groups, levels.groups, strict=True)
        )
        return Histograms(
            model=model.identity,
            peer=peer,
            guarantee=policy.guarantee,
            noise=levels.bins,
            rho=levels.rho,
            negative=tuple(exact[0].tolist()),
            positive=tuple(exact[1].tolist()),
            negative_groups=negative,
            positive_groups=positive,
            group_noise=levels.groups,
        )

    def _levels(self, model: Model, policy: Policy, noise: Noise) -> CountLevels:
        """How much noise; a row is in one bin, and in one group of its label.

        How many rows there are is counted anew, with noise: whoever sent the model may have put any number into it.
        """
        unit, keyed = policy.rows_per_person, any(len(sums) for sums in self.groups)
        if policy.epsilon is not None:
            sd = unit / (2.0 * rho_of(policy.epsilon, policy.delta) / (2.0 if keyed else 1.0)) ** 0.5
            of_groups = CLIP_GROUP * sd if keyed else 0.0
            return CountLevels.costing(sd, (of_groups, of_groups), unit, counted=False)
        rows = max(float(self.rows.sum()) + float(noise.draw(1, TOTAL * unit)[0]), 1.0)
        terms = ScoreTerms(rows, 1, unit)
        sd = unit * max(1.0, policy.noise * (rows / (2 * BINS)) ** 0.5)
        negative, positive = (
            terms.groups(policy.noise, own / count) if count else 0.0
            for own, count in zip(rows_by_label(model), map(len, self.groups), strict=True)
        )
        return CountLevels.costing(sd, (negative, positive), unit, counted=True)


@dataclass(frozen=True)
class CountLevels:
    """Standard deviations of the noise in counts, and in sums by group of each label; and what it costs."""

    bins: float = 0.0
    groups: tuple[float, float] = (0.0, 0.0)
    rho: float = 0.0

    @classmethod
    def costing(cls, bins: float, groups: tuple[float, float], unit: int, *, counted: bool) -> CountLevels:
        """With what it costs a unit of so many rows, all of the label that costs more."""
        dearest = max(((CLIP_GROUP / sd) ** 2 for sd in groups if sd), default=0.0)
        rho = 0.5 * unit**2 * (bins**-2 + dearest) + (0.5 / TOTAL**2 if counted else 0.0)
        return cls(bins, groups, rho)


def rows_by_label(model: Model) -> tuple[float, float]:
    """Rows of each label, as the model has them."""
    labels, weights = np.array(model.blocks.labels), np.array(model.blocks.weights)
    return float(weights[labels < 0].sum()), float(weights[labels > 0].sum())


def groups_of(model: Model) -> tuple[int, int]:
    """Into how many groups the key's values go for each label: the same at every peer."""
    if model.contract.key is None:
        return 0, 0
    negative, positive = (count_groups(rows, model.contract.key.values) for rows in rows_by_label(model))
    return negative, positive


def check_scope(model: Model, peer: str, policy: Policy) -> None:
    """One score, a peer of the model, and rules that let counts leave."""
    model.check_single()
    if peer not in model.peers:
        raise LearnError(f"The model was not learned from '{peer}' but from {', '.join(model.peers)}.")
    if policy.contracts is not None and model.contract.fingerprint not in policy.contracts:
        raise PolicyRefusal(
            f"The policy does not allow the contract '{model.contract.name}'. Add its fingerprint to `contracts` if "
            "your data officer agrees."
        )


def count_scores(source: Source, model: Model, peer: str, policy: Policy, secret: Path | None = None) -> Counts:
    """Rows by label and by how far the peer's contribution is from its mean in the row's block.

    With a key, also sums of that by its groups, in deviations and clipped. The model may be anybody's, so whatever its
    numbers are, no row may make this fail.
    """
    view = View.of(model.contract, (peer,), source, model.constants)
    weights = np.array([number(c.raw) for c in model.of_peer(peer)])
    centre = np.array([c.centre for c in model.of_peer(peer)])
    labels, means, limits = np.array(model.blocks.labels), model.contributions(peer), model.limits([peer])
    counts, step = np.zeros((2, BINS), dtype=np.int64), model.bin_width(peer)
    keep = () if policy.person is None else (policy.person,)
    turns = Turns(policy.rows_per_person)
    key, groups = view.key_of(model.contract, peer, secret), [*map(np.zeros, groups_of(model))]
    for batch in view.batches(keep, with_label=True, key=key, finite=False):
        check_labels(batch.column("label").null_count, source, view.shared)
        codes, label = view.codes(batch), dense(batch.select(["label"]))[:, 0].astype(np.int64)
        block = locate(model.block_codes, labels, codes, label)
        kept = (block >= 0) & (turns.of(batch.column("keep_0")) if keep else True)
        with np.errstate(all="ignore"):  # whoever made the model must not learn whether some row overflows
            score = view.weighted(batch, centre, weights, limits)
            if peer == model.peers[0]:
                score = score + number(model.intercept) + model.contract.encode_shared(codes) @ model.shared_weights
            away = np.nan_to_num((score[kept] - means[block[kept]]) / step, nan=0.0)
        positive = label[kept] > 0
        place = np.clip(np.floor(away) + BINS // 2, 0, BINS - 1).astype(np.int64)
        np.add.at(counts, (positive.astype(np.int64), place), 1)
        if key is not None:
            add_groups(groups, key.numbers(batch.column("key"))[kept], positive, away * (2.0 * REACH / BINS))
    return Counts(counts, (groups[0], groups[1]))


def add_groups(groups: list[Floats], keys: Ints, positive: Truths, away: Floats) -> None:
    """Add distances to the sums of their groups, clipped and in whole steps of the grid."""
    steps = np.rint(np.clip(away, -CLIP_GROUP, CLIP_GROUP) * GRID)
    for sums, own in zip(groups, (~positive, positive), strict=True):
        if len(sums):
            mine = own & (keys >= 0)
            np.add(sums, np.bincount(keys[mine] % len(sums), steps[mine], len(sums)), out=sums)


class Turns:
    """Counts the rows of each person as they come, and tells which are among the first so many."""

    def __init__(self, most: int) -> None:
        self._most, self._seen = most, dict[object, int]()

    def of(self, persons: pa.Array) -> Truths:
        """Which rows of a batch count."""
        encoded = pc.dictionary_encode(persons, null_encoding="encode")
        place, names = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        order = np.argsort(place, kind="stable")
        sizes = np.bincount(place, minlength=len(names))
        turn = np.empty(len(place), dtype=np.int64)
        turn[order] = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        turn += np.array([self._seen.get(name, 0) for name in names], dtype=np.int64)[place]
        self._seen.update({name: self._seen.get(name, 0) + int(n) for name, n in zip(names, sizes, strict=True)})
        return np.asarray(turn < self._most)
