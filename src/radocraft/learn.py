"""From parts to a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from radocraft.arrays import Floats
from radocraft.blocks import Blocks, merge
from radocraft.contract import Contract
from radocraft.encoding import private_columns
from radocraft.errors import LearnError
from radocraft.learners import Fit, fit_drl, fit_matching
from radocraft.learners.completion import complete
from radocraft.model import Model
from radocraft.model.record import BlockTable, Certificate, Coefficient, Odds, Origin, Tuned
from radocraft.part import Part

_NO_SPREAD = 1e-12


def learn(
    parts: Sequence[Part | str | Path],
    contract: Contract,
    *,
    method: Literal["matching", "drl"] = "matching",
    caution: float = 0.25,
    alpha: float | None = None,
    regularisation: Literal["tuned", "identity"] = "tuned",
) -> Model:
    """Learn one model from the peers' parts.

    Parameters
    ----------
    parts
        One part of each peer, or the paths of their files.
    contract
        What the parts were crafted under.
    method
        "matching" (expected matching with caution) or "drl" (the paper's).
    caution
        For matching, from 0 (trust that what no one can see averages out) to 1
        (never worse than the best peer alone, whatever the true matching).
    alpha
        For matching, the ridge strength; by generalised cross-validation if None.
    regularisation
        For drl, Gamma tuned by cross-validation over rados, or the identity.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.Part.seal(rc.release(rc.craft(tables[peer], contract, peer), contract)) for peer in tables]
    >>> model = rc.learn(parts, contract)
    >>> model.peers
    ('bank', 'insurer')
    """
    read = [part if isinstance(part, Part) else Part.read(part) for part in parts]
    if len(read) < 2:
        raise LearnError("Learning across peers needs the parts of at least two. Give one part file of each peer.")
    blocks = merge(read, contract)
    fit = fit_matching(blocks, caution, alpha) if method == "matching" else fit_drl(blocks, regularisation)
    return assemble(blocks, fit, read)


def assemble(blocks: Blocks, fit: Fit, parts: list[Part]) -> Model:
    """The model of a fit, with all a reader of its file needs to know."""
    population = Population.of(blocks, fit)
    by_peer = {part.peer: part for part in parts}
    intercept = float(fit.theta[0]) if fit.layout.intercept else 0.0
    coefficients = tuple(_coefficients(blocks, fit, population.spread()))
    return Model(
        method=fit.method,
        settings=fit.settings,
        contract=blocks.contract,
        intercept=intercept,
        raw_intercept=intercept - sum(c.raw * c.centre for c in coefficients),
        coefficients=coefficients,
        odds=population.odds(intercept, prior=fit.method == "matching"),
        certificate=Certificate(**fit.losses, peers=fit.peer_losses) if fit.losses else None,
        tuning=Tuned(**vars(fit.tuning)) if fit.tuning else None,
        learned_from=tuple(_origin(by_peer[peer]) for peer in blocks.peers),
        effects=population.effects(),
        blocks=population.table(),
        notes=tuple(_notes(blocks, by_peer)),
    )


@dataclass(frozen=True)
class Population:
    """How the columns and the scores of a fit spread over the training population.

    ``covariance`` is that of all columns but the constant, ``contributions`` the
    mean contribution per block of the shared columns, then of each peer, and
    ``within`` the variance of the score inside blocks.
    """

    blocks: Blocks
    fit: Fit
    covariance: Floats
    contributions: Floats
    within: float

    @classmethod
    def of(cls, blocks: Blocks, fit: Fit) -> Population:
        """Read it off the blocks, one peer at a time."""
        known = complete(blocks)
        means, scores = [], []
        for at, where in enumerate(fit.layout.groups):
            block_means = blocks.shared_means if at == 0 else blocks.means(at - 1)
            means.append(blocks.weights @ block_means / known.total)
            scores.append(block_means @ fit.theta[where])
        mean = np.concatenate(means)
        start = fit.layout.shared.start
        covariance = known.expected()[start:, start:] / known.total - np.outer(mean, mean)
        within = float(fit.theta @ (known.expected() - known.between) @ fit.theta) / known.total
        return cls(blocks, fit, covariance, np.column_stack(scores), max(within, 0.0))

    def spread(self) -> Floats:
        """Standard deviation of every column, in the model's units."""
        return np.maximum(np.diag(self.covariance), 0.0) ** 0.5

    def effects(self) -> dict[str, float]:
        """Standard deviation of the contribution of the shared columns and of each peer."""
        names = ("shared", *self.blocks.peers)
        start, theta = self.fit.layout.shared.start, self.fit.theta
        out = {}
        for name, where in zip(names, self.fit.layout.groups, strict=True):
            inside = slice(where.start - start, where.stop - start)
            out[name] = max(float(theta[where] @ self.covariance[inside, inside] @ theta[where]), 0.0) ** 0.5
        return out

    def odds(self, intercept: float, prior: bool) -> Odds:
        """Bayes over two normal score distributions with one variance.

        log-odds = log(U+ / U-) + (m+ - m-) / v * (score - (m+ + m-) / 2), where
        ``U`` is the weight of a label, ``m`` the mean score under it and ``v``
        the variance of the score given the label. Without ``prior`` the class
        is the sign of the score, as in the paper, and only the slope is kept.
        """
        weights, positive = self.blocks.weights, self.blocks.labels > 0
        score = intercept + self.contributions.sum(axis=1)
        total = np.array([weights[~positive].sum(), weights[positive].sum()])
        mean = np.array([weights[~positive] @ score[~positive], weights[positive] @ score[positive]]) / total
        between = float(weights @ (score - mean[positive.astype(int)]) ** 2) / float(weights.sum())
        slope = float(mean[1] - mean[0]) / max(self.within + between, _NO_SPREAD)
        offset = float(np.log(total[1] / total[0]) - slope * mean.mean()) if prior else 0.0
        return Odds(offset=offset, slope=slope)

    def table(self) -> BlockTable:
        """The mean contributions per block, for views that lack a peer's columns."""
        return BlockTable(
            codes=self.blocks.codes.tolist(),
            labels=self.blocks.labels.tolist(),
            weights=self.blocks.weights.tolist(),
            shared=self.contributions[:, 0].tolist(),
            peers={peer: self.contributions[:, at].tolist() for at, peer in enumerate(self.blocks.peers, start=1)},
        )


def _coefficients(blocks: Blocks, fit: Fit, spread: Floats) -> Iterator[Coefficient]:
    contract, theta = blocks.contract, fit.theta[fit.layout.shared.start :]
    names: list[tuple[str, str, str | None, float, float]] = [
        (name, shared.name, None, 0.0, 1.0) for shared in contract.shared for name in shared.encoded
    ]
    for cells in blocks.cells:
        for at, column in enumerate(private_columns(contract, cells.peer)):
            names.append((column.name, column.feature, cells.peer, float(cells.centre[at]), float(cells.scale[at])))
    for (name, feature, peer, centre, scale), weight, deviation in zip(names, theta, spread, strict=True):
        yield Coefficient(
            name=name,
            feature=feature,
            peer=peer,
            standardised=float(weight),
            raw=float(weight / scale),
            centre=centre,
            scale=scale,
            effect=float(weight * deviation),
        )


def _origin(part: Part) -> Origin:
    metadata = part.metadata
    return Origin(
        peer=part.peer,
        rows=metadata["rows"],
        cells=part.table.num_rows,
        bytes=part.nbytes,
        created=metadata["created"],
        hash=metadata["hash"],
        guarantee=metadata["policy"]["guarantee"],
    )


def _notes(blocks: Blocks, by_peer: dict[str, Part]) -> Iterator[str]:
    if absent := [peer for peer in blocks.contract.peers if peer not in blocks.peers]:
        yield f"learned without {', '.join(absent)}: no part of theirs was given"
    for peer in blocks.peers:
        yield from (f"{peer}: {note}" for note in by_peer[peer].metadata["notes"])
