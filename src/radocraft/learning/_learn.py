"""From parts to a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, one_thread
from radocraft.contract import Contract, Number, private_columns
from radocraft.errors import LearnError
from radocraft.learning._blocks import Blocks, merge_cells
from radocraft.learning._differences import compare_peers, compare_with_all, unlike_codes, warning
from radocraft.learning._drl import fit_drl
from radocraft.learning._fit import Fit, LinkedTest
from radocraft.learning._forecast import Forecast
from radocraft.learning._linked import fit_linked
from radocraft.learning._linked_rows import read_linked
from radocraft.learning._matching import fit_matching
from radocraft.learning._metrics import auc
from radocraft.learning._scores import learn_scores
from radocraft.model import (
    Certificate,
    Coefficient,
    Compared,
    Gate,
    Model,
    Odds,
    Origin,
    ScoreModel,
    Validation,
    Weight,
    plain,
)
from radocraft.parts import Part
from radocraft.sums import Cells
from radocraft.sums import Method as Proportions

_NOISY = "noise"
_UNSURE = 0.02
_OF_SCORES: dict[str, Literal["scores", "average"]] = {"scores": "scores", "average": "average"}


@one_thread
def learn(
    parts: Sequence[Part | str | Path],
    contract: Contract,
    *,
    method: Literal["matching", "drl", "scores", "average"] | None = None,
    caution: float | None = None,
    linked: Any = None,
    alpha: float | None = None,
    regularisation: Literal["tuned", "identity"] = "tuned",
    proportions: Proportions = "adjusted",
    in_common: float = 1.0,
) -> Model | ScoreModel:
    """Learn one model from the peers' parts.

    Parameters
    ----------
    parts
        One part of each peer, or the paths of their files.
    contract
        What the parts were crafted under.
    method
        For columns "matching" (expected matching with caution; the default) or "drl" (the
        paper's); for scores "scores" (fitted weights; the default) or "average" of their log-odds.
    caution
        For matching, from 0 (trust that what no one can see averages out) to 1
        (never worse than the best peer alone, whatever the true matching). If left
        out 0.25, or less where sums over the same people show that less is enough
        (see `docs/method.md`), or as linked rows choose.
    linked
        For matching, a table of truly linked rows with all columns and the
        label: it chooses caution, or replaces it by what it shows, and gives a
        real validation error.
    alpha
        For matching, the ridge strength; by generalised cross-validation if None.
    regularisation
        For drl, Gamma tuned by cross-validation over rados, or the identity.
    proportions
        For peers that lack the label: how their sums by label are estimated, see
        `docs/relaxed.md`.
    in_common
        For scores with a key: the share of people whom two peers both hold.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> model = rc.learn(parts, contract)
    >>> model.peers
    ('bank', 'insurer')
    """
    Contract.expect(contract, "learn(parts, contract)")
    if isinstance(parts, Part | str | Path):
        raise LearnError("One part was given. Give a list with one part, or part file, of each peer.")
    if len(parts) < 2:
        raise LearnError("Learning across peers needs the parts of at least two. Give one part file of each peer.")
    if contract.of_scores:
        return _of_scores(parts, contract, method, in_common)
    if method in ("scores", "average"):
        raise LearnError(f"The method '{method}' is for contracts of scores, and this is a contract of columns.")
    return learn_columns(
        parts,
        contract,
        drl=method == "drl",
        caution=caution,
        linked=linked,
        alpha=alpha,
        regularisation=regularisation,
        proportions=proportions,
    )


def learn_columns(
    parts: Sequence[Part | str | Path],
    contract: Contract,
    *,
    drl: bool = False,
    caution: float | None = None,
    linked: Any = None,
    alpha: float | None = None,
    regularisation: Literal["tuned", "identity"] = "tuned",
    proportions: Proportions = "adjusted",
) -> Model:
    """`learn` for a contract of columns."""
    arrived = [Arrived.of(part, contract) for part in parts]
    blocks = merge_cells(tuple(each.cells for each in arrived), contract, proportions)
    if drl:
        fit = fit_drl(blocks, regularisation)
    elif linked is not None:
        if caution is not None:
            raise LearnError("Linked rows choose caution themselves. Give either `linked` or `caution`.")
        fit = fit_linked(blocks, read_linked(linked, blocks), alpha)
    else:
        fit = fit_matching(blocks, caution, alpha)
    if not all(contract.labelled(peer) for peer in blocks.peers):
        fit = replace(fit, settings={**fit.settings, "proportions": proportions})
    return assemble(blocks, fit, arrived)


def _of_scores(
    parts: Sequence[Part | str | Path], contract: Contract, method: str | None, in_common: float
) -> ScoreModel:
    """The model over scores, from one part of each peer."""
    if method is not None and method not in _OF_SCORES:
        raise LearnError(f"The method '{method}' is for contracts of columns. For scores use `scores` or `average`.")
    if not 0.0 < in_common <= 1.0:
        raise LearnError("`in_common` is the share of people that two peers have in common, above 0 and at most 1.")
    read = [part if isinstance(part, Part) else Part.read(part) for part in parts]
    cells = [part.scores(contract) for part in read]
    if len({each.peer for each in cells}) < len(cells):
        raise LearnError("Two parts come from the same peer. Give one part per peer.")
    notes = [f"{part.peer}: {note}" for part in read for note in part.metadata["notes"]]
    return learn_scores(
        contract,
        cells,
        [*map(_origin, read)],
        notes,
        method=None if method is None else _OF_SCORES[method],
        in_common=in_common,
    )


@dataclass(frozen=True)
class Arrived:
    """What is kept of a part: its numbers, where they come from and what the peer notes; the table itself may go."""

    cells: Cells
    origin: Origin
    notes: tuple[str, ...]

    @classmethod
    def of(cls, given: Part | str | Path, contract: Contract) -> Arrived:
        """Take the numbers out of a part; one that is read for this is gone afterwards, its memory given back."""
        part = given if isinstance(given, Part) else Part.read(given)
        out = cls(part.cells(contract), _origin(part), tuple(part.metadata["notes"]))
        del part
        pa.default_memory_pool().release_unused()
        return out


def assemble(blocks: Blocks, fit: Fit, arrived: Sequence[Arrived]) -> Model:
    """The model of a fit, with all a reader of its file needs to know."""
    forecast = Forecast.of(blocks, fit)
    odds = forecast.odds()
    by_peer = {each.origin.peer: each for each in arrived}
    centre, scale = blocks.label_units
    intercept = centre + scale * (fit.theta[0] if fit.layout.intercept else np.zeros_like(fit.theta[0]))
    coefficients = tuple(_coefficients(blocks, fit, forecast.deviations()))
    differences, effects = tuple(compare_peers(blocks)), forecast.effects()
    promised = _private(by_peer[peer].origin for peer in blocks.peers)
    return Model(
        method=fit.method,
        settings=fit.settings,
        contract=blocks.contract,
        intercept=plain(intercept),
        raw_intercept=plain(intercept - sum(np.array(c.raw) * c.centre for c in coefficients)),
        coefficients=coefficients,
        constants={cells.peer: cells.constants for cells in blocks.cells if cells.constants},
        odds=odds,
        estimate=forecast.estimate(),
        certificate=_certificate(blocks, fit, exact=not promised) if fit.losses else None,
        tuning=fit.tuning,
        validation=_validation(fit.validation, odds, blocks) if fit.validation else None,
        privacy=forecast.noise(promised),
        learned_from=tuple(by_peer[peer].origin for peer in blocks.peers),
        effects=effects,
        blocks=forecast.table(),
        differences=differences,
        population=tuple(compare_with_all(blocks)),
        notes=(
            *fit.notes,
            *unlike_codes(blocks.contract, blocks.cells),
            *filter(None, map(warning, differences)),
            *_notes(blocks, by_peer, effects),
        ),
    )


def _certificate(blocks: Blocks, fit: Fit, *, exact: bool) -> Certificate:
    """The losses; under the worst matching a bound if sums are exact, else what they would have as one."""
    lacking, worst = [peer for peer in blocks.peers if not blocks.contract.labelled(peer)], fit.losses["guaranteed"]
    return Certificate(
        expected=fit.losses["expected"],
        guaranteed=worst if exact else None,
        as_released=None if exact else worst,
        peers=fit.peer_losses,
        uncertain=tuple(peer for peer in lacking if peer in blocks.uncertainty),
        trusted=tuple(peer for peer in lacking if peer not in blocks.uncertainty),
    )


def _coefficients(blocks: Blocks, fit: Fit, deviations: Floats) -> Iterator[Coefficient]:
    contract, theta = blocks.contract, fit.theta[fit.layout.shared.start :] * blocks.label_units[1]
    names: list[tuple[str, str, str | None, float, float]] = [
        (name, shared.name, None, 0.0, 1.0) for shared in contract.shared for name in shared.encoded
    ]
    limits: list[tuple[float | None, float | None]] = [(None, None)] * len(names)
    limits += [(low, high) if low > -np.inf else (None, None) for low, high in np.transpose(blocks.limits).tolist()]
    for place, cells in enumerate(blocks.cells):
        columns = private_columns(contract, cells.peer)
        for index, column in ((index, columns[index]) for index in blocks.owned(place).tolist()):
            names.append(
                (column.name, column.feature, cells.peer, float(cells.centre[index]), float(cells.scale[index]))
            )
    every = zip(names, limits, theta, deviations, strict=True)
    for (name, feature, peer, centre, scale), (low, high), weight, deviation in every:
        yield Coefficient(
            name=name,
            feature=feature,
            peer=peer,
            standardised=plain(weight),
            raw=plain(weight / scale),
            centre=centre,
            scale=scale,
            effect=plain(weight * deviation),
            low=low,
            high=high,
        )


def _validation(test: LinkedTest, odds: Odds | None, blocks: Blocks) -> Validation:
    scores, rows, label = test.scores, test.rows, blocks.contract.label
    compared = tuple(Compared(kind=k, value=v, loss=loss) for k, v, loss in test.compared)
    if odds is None or isinstance(label, Number):
        off = float(np.mean((test.targets - scores) ** 2))
        error, r2 = blocks.label_units[1] * off**0.5, 1.0 - off / float(np.var(test.targets))
        return Validation(rows=rows, loss=test.loss, error=error, r2=r2, compared=compared)
    given = np.array(label.codes)[odds.chosen(scores)]
    columns = zip(scores.reshape(rows, -1).T, label.targets(test.labels).reshape(rows, -1).T, strict=True)
    return Validation(
        rows=rows,
        loss=test.loss,
        error=float(np.mean(given != test.labels)),
        auc=float(np.nanmean([auc(column, target) for column, target in columns])),
        compared=compared,
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
        gate=Gate(**{name: metadata["policy"][name] for name in Gate.model_fields}),
    )


def _private(origins: Iterable[Origin]) -> dict[str, str]:
    """The guarantees of the peers whose parts carry noise."""
    return {origin.peer: origin.guarantee for origin in origins if origin.gate and origin.gate.mode == _NOISY}


def _notes(blocks: Blocks, by_peer: dict[str, Arrived], effects: dict[str, Weight]) -> Iterator[str]:
    if absent := [peer for peer in blocks.contract.peers if peer not in blocks.peers]:
        yield f"learned without {', '.join(absent)}: their part was not given"
    moved = {name: float(np.sum(np.square(effect))) for name, effect in effects.items()}
    for peer, sure in blocks.certainty.items():
        yield _certainty_note(peer, sure, moved[peer] / max(sum(moved.values()), np.finfo(float).tiny))
    for peer in blocks.peers:
        yield from (f"{peer}: {note}" for note in by_peer[peer].notes)


def _certainty_note(peer: str, sure: float | None, share: float) -> str:
    """Whether the proportions of the label could tell a peer's classes apart; ``share`` is its share in the score."""
    if sure is None:
        return (
            f"{peer} lacks the label: its sums by label are estimated from proportions and treated as exact, "
            "in the certificate and in what to expect too"
        )
    if min(sure, share) < _UNSURE:
        return (
            f"{peer} lacks the label, and its proportions by signature say too little about how {peer}'s columns "
            f"differ by label ({sure:.0%}): they cannot help here, and the model is nearly that of the holders of the "
            "label. More signatures may help"
        )
    return (
        f"{peer} lacks the label: its sums by label are estimated from proportions, which explain {sure:.0%} of how "
        "its columns differ by label; the rest is uncertain, and caution allows for it"
    )
