"""Counting the rows of a peer by its share of a model's score; the counts leave with noise (`share_counts`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from radocraft.arrays import Ints, Truths, dense
from radocraft.errors import LearnError, PolicyRefusal
from radocraft.gate import TOTAL, Noise, Policy, rho_of
from radocraft.model import (
    Model,
    bin_width,
    check_single,
    contributions,
    identity,
    number,
)
from radocraft.parts import BINS, Histograms
from radocraft.rows import Source, View, check_labels
from radocraft.sums import locate


@dataclass(frozen=True)
class Counts:
    """Exact counts by label (negative, positive) and bin; they never leave."""

    rows: Ints

    def digest(self, model: Model) -> str:
        """By which a release of the same counts is known."""
        return hashlib.sha256(identity(model).encode() + self.rows.astype("<i8").tobytes()).hexdigest()

    def released(self, model: Model, peer: str, policy: Policy, noise: Noise | None = None) -> Histograms:
        """The counts as they may leave."""
        exact, sd, rho = self.rows, 0.0, 0.0
        if policy.noisy:
            noise = Noise() if noise is None else noise
            sd, rho = self._level(policy, noise)
            exact = exact + noise.draw(exact.shape, sd).astype(np.int64)
        return Histograms(
            model=identity(model),
            peer=peer,
            guarantee=policy.guarantee,
            noise=sd,
            rho=rho,
            negative=tuple(exact[0].tolist()),
            positive=tuple(exact[1].tolist()),
        )

    def _level(self, policy: Policy, noise: Noise) -> tuple[float, float]:
        """Standard deviation of the noise in every count, and what it costs; a row is in one bin.

        How many rows there are is counted anew, with noise: whoever sent the model may have put any number into it.
        """
        unit = policy.rows_per_person
        if policy.epsilon is not None:
            sd = unit / (2.0 * rho_of(policy.epsilon, policy.delta)) ** 0.5
            return sd, 0.5 * (unit / sd) ** 2
        rows = max(float(self.rows.sum()) + float(noise.draw(1, TOTAL * unit)[0]), 1.0)
        sd = unit * max(1.0, policy.noise * (rows / (2 * BINS)) ** 0.5)
        return sd, 0.5 * ((unit / sd) ** 2 + TOTAL**-2)


def check_scope(model: Model, peer: str, policy: Policy) -> None:
    """One score, a peer of the model, and rules that let counts leave."""
    check_single(model)
    if peer not in model.peers:
        raise LearnError(f"The model was not learned from '{peer}' but from {', '.join(model.peers)}.")
    if policy.contracts is not None and model.contract.fingerprint not in policy.contracts:
        raise PolicyRefusal(
            f"The policy does not allow the contract '{model.contract.name}'. Add its fingerprint to `contracts` if "
            "your data officer agrees."
        )


def count_scores(source: Source, model: Model, peer: str, policy: Policy) -> Counts:
    """Rows by label and by how far the peer's contribution is from its mean in the row's block.

    The model may be anybody's, so whatever its numbers are, no row may make this fail.
    """
    view = View.of(model.contract, (peer,), source, model.constants)
    weights = np.array([number(c.raw) for c in model.of_peer(peer)])
    centre = np.array([c.centre for c in model.of_peer(peer)])
    labels, means, limits = np.array(model.blocks.labels), contributions(model, peer), model.limits([peer])
    counts, step = np.zeros((2, BINS), dtype=np.int64), bin_width(model, peer)
    keep = () if policy.person is None else (policy.person,)
    turns = Turns(policy.rows_per_person)
    for batch in view.batches(keep, with_label=True, finite=False):
        check_labels(batch.column("label").null_count, source, view.shared)
        codes, label = view.codes(batch), dense(batch.select(["label"]))[:, 0].astype(np.int64)
        block = locate(model.block_codes, labels, codes, label)
        kept = (block >= 0) & (turns.of(batch.column("keep_0")) if keep else True)
        with np.errstate(all="ignore"):  # whoever made the model must not learn whether some row overflows
            score = view.weighted(batch, centre, weights, limits)
            if peer == model.peers[0]:
                score = score + number(model.intercept) + model.contract.encode_shared(codes) @ model.shared_weights
            away = np.nan_to_num(np.floor((score[kept] - means[block[kept]]) / step), nan=0.0)
        place = np.clip(away + BINS // 2, 0, BINS - 1).astype(np.int64)
        np.add.at(counts, ((label[kept] > 0).astype(np.int64), place), 1)
    return Counts(counts)


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
