"""What a model's scores are made of: by feature, by peer, by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa

from radocraft.arrays import Ints, Tabular
from radocraft.contract import ANY, Contract
from radocraft.model._fields import Certificate, Coefficient, Weight, plain
from radocraft.sums import ROLLED

if TYPE_CHECKING:
    from radocraft.model._model import Model


@dataclass(frozen=True)
class PeerShare:
    """How much of the score's movement comes from one peer (or the shared features).

    ``effect`` is the standard deviation of its contribution over the training
    population (to the score of each class, if there are several), ``share`` its
    part of the sum of variances.
    """

    name: str
    effect: Weight
    share: float


@dataclass(frozen=True)
class BlockShare:
    """A block's mean score and what each peer adds to it."""

    signature: dict[str, str]
    label: str
    weight: float
    score: Weight
    contributions: dict[str, Weight]


@dataclass(frozen=True, repr=False)
class Explanation(Tabular):
    """Coefficients by effect, peers by share, blocks by weight, each the largest first."""

    coefficients: tuple[Coefficient, ...]
    peers: tuple[PeerShare, ...]
    blocks: Sequence[BlockShare]
    certificate: Certificate | None
    sentence: str
    privacy: str | None = None

    def to_arrow(self) -> pa.Table:
        """The coefficients, those that move scores most first; with several classes one column of each number."""
        names = ("name", "feature", "peer", "effect", "standardised", "raw", "centre", "scale")
        columns = {name: [getattr(c, name) for c in self.coefficients] for name in names}
        table = {name: values for name, values in columns.items() if not isinstance(values[0], tuple)}
        several = {name: values for name, values in columns.items() if name not in table}
        for name, values in several.items():
            table |= {f"{name}_{at}": [*of_class] for at, of_class in enumerate(zip(*values, strict=True))}
        return pa.table(table | {"peer": pa.array(columns["peer"], pa.string())})

    def in_one_line(self) -> str:
        """Whose columns move the score, and by how much."""
        shares = ", ".join(f"{peer.name} {peer.share:.0%}" for peer in self.peers)
        return f"Explanation({shares} of what moves the score)"

    def in_sentences(self) -> tuple[str, ...]:
        """The certificate, and what noise costs."""
        return (self.sentence, *([] if self.privacy is None else [self.privacy]))

    def drawn(self) -> str | None:
        """The effects, of a model with one score."""
        return None if isinstance(self.coefficients[0].effect, tuple) else "effect"


def explain(model: Model) -> Explanation:
    """Say what a model's scores are made of.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> explanation = rc.explain(rc.learn(parts, contract))
    >>> sorted(peer.name for peer in explanation.peers)
    ['bank', 'insurer', 'shared']
    """
    squares = {name: float(np.sum(np.square(effect))) for name, effect in model.effects.items()}
    variance = sum(squares.values()) or 1.0
    shares = [PeerShare(name, effect, squares[name] / variance) for name, effect in model.effects.items()]
    return Explanation(
        coefficients=tuple(sorted(model.coefficients, key=lambda c: -np.abs(c.effect).max())),
        peers=tuple(sorted(shares, key=lambda peer: -peer.share)),
        blocks=BlockShares(model, np.argsort(model.blocks.weights)[::-1]),
        certificate=model.certificate,
        sentence=sentence(model.certificate, noisy=model.privacy is not None),
        privacy=model.privacy.sentence if model.privacy else None,
    )


def sentence(certificate: Certificate | None, *, noisy: bool = False) -> str:
    """The certificate in plain words; sums with noise give estimates, no guarantee."""
    if certificate is None:
        return "The paper's method gives no bound on the loss."
    bound = _bound(certificate, noisy)
    if certificate.trusted:
        return (
            f"If the estimated sums by label of {', '.join(certificate.trusted)} were exact (what follows is "
            f"therefore too optimistic): {bound[0].lower()}{bound[1:]}"
        )
    if certificate.uncertain:
        return (
            f"{bound} Sums by label of {', '.join(certificate.uncertain)} are estimated; the worst case "
            "allows an error of two standard deviations in them."
        )
    return bound


def _bound(certificate: Certificate, noisy: bool) -> str:
    best, loss = min(certificate.peers.items(), key=lambda item: item[1])
    if noisy:
        return (
            f"On the released sums the loss is {certificate.expected:.4f} on average over all matchings of rows "
            f"({best}, the best peer alone: {loss:.4f}) and at most {certificate.worst:.4f} under the worst of "
            "them. These sums carry noise, so for the true rows this is an estimate and no guarantee."
        )
    if certificate.worst <= loss * (1 + 1e-9):
        return (
            "Whatever the true matching of rows, on the training population as released this model is at least as "
            f"good as {best} alone (loss at most {certificate.worst:.4f}, {best} {loss:.4f})."
        )
    return (
        f"On average over all matchings of rows the loss is {certificate.expected:.4f} ({best}, the best peer alone: "
        f"{loss:.4f}); under the worst of them it is at most {certificate.worst:.4f}."
    )


@dataclass(frozen=True, eq=False)
class BlockShares(Sequence[BlockShare]):
    """Blocks of a model in some order, each put into words when it is asked for: there may be a million."""

    model: Model
    order: Ints

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> BlockShare: ...
    @overload
    def __getitem__(self, index: slice) -> BlockShares: ...
    def __getitem__(self, index: int | slice) -> BlockShare | BlockShares:
        if isinstance(index, slice):
            return BlockShares(self.model, self.order[index])
        return _block(self.model, int(self.order[index]))


def _block(model: Model, index: int) -> BlockShare:
    blocks = model.blocks
    contributions = {"shared": blocks.shared[index], **{peer: values[index] for peer, values in blocks.peers.items()}}
    return BlockShare(
        signature=signature(model.contract, blocks.codes[index]),
        label=model.contract.label.names[model.contract.label.codes.index(blocks.labels[index])],
        weight=blocks.weights[index],
        score=plain(np.array(model.intercept) + np.sum([*contributions.values()], axis=0)),
        contributions=contributions,
    )


def signature(contract: Contract, codes: list[int]) -> dict[str, str]:
    """Codes in words, "any" where rolled up."""
    pairs = zip(contract.shared, codes, strict=True)
    return {shared.name: ANY if code == ROLLED else shared.codes[code] for shared, code in pairs}
