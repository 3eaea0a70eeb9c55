"""What a model's scores are made of: by feature, by peer, by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radocraft.cells import ROLLED
from radocraft.contract import Contract
from radocraft.features import ANY, show
from radocraft.model.record import Certificate, Coefficient, Record


@dataclass(frozen=True)
class PeerShare:
    """How much of the score's movement comes from one peer (or the shared features).

    ``effect`` is the standard deviation of its contribution over the training
    population, ``share`` its part of the sum of variances.
    """

    name: str
    effect: float
    share: float


@dataclass(frozen=True)
class BlockShare:
    """A block's mean score and what each peer adds to it."""

    signature: dict[str, str]
    label: str
    weight: float
    score: float
    contributions: dict[str, float]


@dataclass(frozen=True)
class Explanation:
    """Coefficients by effect, peers by share, blocks by weight, each the largest first."""

    coefficients: tuple[Coefficient, ...]
    peers: tuple[PeerShare, ...]
    blocks: tuple[BlockShare, ...]
    certificate: Certificate | None
    sentence: str


def explain(model: Record) -> Explanation:
    """Say what a model's scores are made of.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.Part.seal(rc.release(rc.craft(tables[peer], contract, peer), contract)) for peer in tables]
    >>> explanation = rc.explain(rc.learn(parts, contract))
    >>> sorted(peer.name for peer in explanation.peers)
    ['bank', 'insurer', 'shared']
    """
    variance = sum(effect**2 for effect in model.effects.values()) or 1.0
    shares = [PeerShare(name, effect, effect**2 / variance) for name, effect in model.effects.items()]
    return Explanation(
        coefficients=tuple(sorted(model.coefficients, key=lambda c: -abs(c.effect))),
        peers=tuple(sorted(shares, key=lambda peer: -peer.share)),
        blocks=tuple(_block(model, int(at)) for at in np.argsort(model.blocks.weights)[::-1]),
        certificate=model.certificate,
        sentence=sentence(model.certificate),
    )


def sentence(certificate: Certificate | None) -> str:
    """The certificate in plain words."""
    if certificate is None:
        return "The paper's method gives no bound on the loss."
    best, loss = min(certificate.peers.items(), key=lambda item: item[1])
    if certificate.guaranteed <= loss * (1 + 1e-9):
        return (
            "Whatever the true matching of rows, on the training population as released this model is at least as "
            f"good as {best} alone (loss at most {certificate.guaranteed:.4f}, {best} {loss:.4f})."
        )
    return (
        f"On average over all matchings of rows the loss is {certificate.expected:.4f} ({best}, the best peer alone: "
        f"{loss:.4f}); under the worst of them it is at most {certificate.guaranteed:.4f}."
    )


def _block(model: Record, at: int) -> BlockShare:
    blocks = model.blocks
    contributions = {"shared": blocks.shared[at], **{peer: values[at] for peer, values in blocks.peers.items()}}
    return BlockShare(
        signature=signature(model.contract, blocks.codes[at]),
        label=show(model.classes[int(blocks.labels[at] > 0)]),
        weight=blocks.weights[at],
        score=model.intercept + sum(contributions.values()),
        contributions=contributions,
    )


def signature(contract: Contract, codes: list[int]) -> dict[str, str]:
    """Codes in words, "any" where rolled up."""
    pairs = zip(contract.shared, codes, strict=True)
    return {shared.name: ANY if code == ROLLED else shared.codes[code] for shared, code in pairs}
