"""From parts to a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from radocraft.arrays import Floats
from radocraft.blocks import Blocks, merge
from radocraft.contract import Contract
from radocraft.encoding import private_columns
from radocraft.errors import LearnError
from radocraft.learners import Fit, fit_drl, fit_linked, fit_matching
from radocraft.learners.fit import Validation
from radocraft.linkage import read_linked
from radocraft.metrics import auc, error_rate
from radocraft.model import Model
from radocraft.model.record import Certificate, Coefficient, Compared, Odds, Origin, Tuned, Validated
from radocraft.part import Part
from radocraft.population import Population

DEFAULT_CAUTION = 0.25


def learn(
    parts: Sequence[Part | str | Path],
    contract: Contract,
    *,
    method: Literal["matching", "drl"] = "matching",
    caution: float | None = None,
    linked: Any = None,
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
        (never worse than the best peer alone, whatever the true matching);
        0.25 if left out and there are no linked rows.
    linked
        For matching, a table of truly linked rows with all columns and the
        label: it chooses caution, or replaces it by what it shows, and gives a
        real validation error.
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
    if method == "drl":
        fit = fit_drl(blocks, regularisation)
    elif linked is not None:
        if caution is not None:
            raise LearnError("Linked rows choose caution themselves. Give either `linked` or `caution`.")
        fit = fit_linked(blocks, read_linked(linked, blocks), alpha)
    else:
        fit = fit_matching(blocks, DEFAULT_CAUTION if caution is None else caution, alpha)
    return assemble(blocks, fit, read)


def assemble(blocks: Blocks, fit: Fit, parts: list[Part]) -> Model:
    """The model of a fit, with all a reader of its file needs to know."""
    population = Population.of(blocks, fit)
    odds = population.odds(prior=fit.method == "matching")
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
        odds=odds,
        estimate=population.estimate(prior=fit.method == "matching"),
        certificate=Certificate(**fit.losses, peers=fit.peer_losses) if fit.losses else None,
        tuning=Tuned(**vars(fit.tuning)) if fit.tuning else None,
        validation=_validated(fit.validation, odds) if fit.validation else None,
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


def _validated(validation: Validation, odds: Odds) -> Validated:
    return Validated(
        rows=validation.rows,
        loss=validation.loss,
        error=error_rate(odds.offset + odds.slope * validation.scores, validation.labels),
        auc=auc(validation.scores, validation.labels),
        compared=tuple(Compared(kind=k, value=v, loss=loss) for k, v, loss in validation.compared),
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
