"""From parts to a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from radocraft.arrays import Floats
from radocraft.blocks import Blocks, merge
from radocraft.contract import Contract
from radocraft.encoding import private_columns
from radocraft.errors import LearnError
from radocraft.learners import Fit, fit_drl, fit_matching
from radocraft.model import Model
from radocraft.model.record import Certificate, Coefficient, Origin, Tuned
from radocraft.part import Part
from radocraft.population import Population


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
        constants={cells.peer: cells.constants for cells in blocks.cells if cells.constants},
        odds=population.odds(prior=fit.method == "matching"),
        estimate=population.estimate(prior=fit.method == "matching"),
        certificate=Certificate(**fit.losses, peers=fit.peer_losses) if fit.losses else None,
        tuning=Tuned(**vars(fit.tuning)) if fit.tuning else None,
        learned_from=tuple(_origin(by_peer[peer]) for peer in blocks.peers),
        effects=population.effects(),
        blocks=population.table(),
        notes=tuple(_notes(blocks, by_peer)),
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
