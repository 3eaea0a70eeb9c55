"""The paper's route for a peer without the label: it labels its own rows, and crafts as usual.

The holders of the label send the peer their parts, and with them the share of the
label in every signature. The peer learns a classifier of its own columns from these
proportions and gives the label to the rows with the largest scores, in every signature as
many as its share says. Alternating Mean Map (Patrini et al. 2014), for the square loss:

1. start from what proportions tell (`adjusted`), and solve for theta;
2. given theta, the labels with the least loss that keep the counts: the rows are
   ranked by score in every signature, and the first are positive;
3. given labels, the theta with the least loss: ridge on the sums by label.

Neither step increases

    sum_i (y_i - theta^T z_i)^2 / m + alpha ||theta||^2                    (docs, eq. 9)

so it converges. A step is one statement where the rows are, crafting's own, with the label
given by rank: rows never come into memory. What leaves goes through the gate as always.

Labels found this way are the classifier's own opinion, so sums by label are farther
apart than those of true labels; `learn` with sums by signature knows better how
much to believe (docs/relaxed.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radocraft.arrays import Floats
from radocraft.contract import Contract, TwoValues
from radocraft.errors import ContractMismatch
from radocraft.progress import Progress, quiet
from radocraft.rows._craft import craft, relabelled
from radocraft.rows._ranking import Ranking
from radocraft.sums import Cells, Tally, guess_by_label, standardise

ALPHA = 0.01
ROUNDS = 20
_CONVERGED = 1e-6
_UNSURE = 0.02


@dataclass(frozen=True)
class OwnLabels:
    """A peer's rows by the labels it gave them.

    Parameters
    ----------
    tally
        Its sums by signature and such label.
    ranking
        How a row gets its label.
    losses
        Eq. 9 after every round.
    certainty
        How far proportions could be trusted, from 0 to 1; see `LabelDifferences`.
    note
        What a reader of the part has to know.
    """

    tally: Tally
    ranking: Ranking
    losses: tuple[float, ...]
    certainty: float
    note: str


def label_rows(
    data: Any, contract: Contract, peer: str, holders: Sequence[Cells], *, progress: Progress = quiet
) -> OwnLabels:
    """Label the rows of a peer that lacks the label by the proportions in others' parts, and tally them.

    Parameters
    ----------
    data, contract, peer, progress
        As for `craft`.
    holders
        Cells of peers that hold the label, under the same contract.

    Examples
    --------
    >>> import radocraft as rc
    >>> from radocraft.rows import label_rows
    >>> agreed, tables = rc.example_peers(rows=2000)
    >>> spelled = agreed.model_dump(mode="json")
    >>> spelled["label"]["held_by"] = ["bank"]
    >>> contract = rc.Contract.model_validate(spelled)
    >>> part = rc.share(tables["bank"], contract, "bank")
    >>> found = label_rows(tables["insurer"], contract, "insurer", [part.cells(contract)])
    >>> sorted(set(found.tally.labels.tolist())), bool(found.losses[-1] <= found.losses[0])
    ([-1, 1], True)
    """
    check_route(contract, peer, holders)
    exact = craft(data, contract, peer, bounds=None, progress=progress)
    own = standardise(exact, contract)
    guessed, shares, certainty = guess_by_label(own, tuple(holders), contract.label.codes)
    theta, losses, tally = solve(guessed, own.moments)[0], [], exact
    positives = whole_counts(own.rows * shares[:, 1])
    for number in range(ROUNDS):
        progress(f"labels, round {number + 1}", 0, 0)
        ranking = Ranking(theta[: len(own.columns)], own.centre, own.scale, own.codes, positives)
        tally = relabelled(exact, data, contract, ranking)
        theta, loss = solve(standardise(tally, contract), own.moments)
        losses.append(loss)
        if number and losses[-2] - loss <= _CONVERGED * losses[-2]:
            break
    names = ", ".join(cells.peer for cells in holders)
    return OwnLabels(tally, ranking, tuple(losses), certainty, _note(names, certainty))


def check_route(contract: Contract, peer: str, holders: Sequence[Cells]) -> None:
    """The peer must lack the label, the parts be of others who hold it, and the label have two values."""
    contract.peer(peer)
    if contract.labelled(peer):
        raise ContractMismatch(
            f"'{peer}' holds the label, so there is nothing to find by proportions. Leave them out, or correct "
            "`held_by` in the contract."
        )
    if not isinstance(contract.label, TwoValues):
        raise ContractMismatch(
            "Rows are labelled by rank, which is for labels of two values. Craft sums by signature instead (leave "
            "the proportions out): `learn` estimates sums by label from them."
        )
    if others := [cells.peer for cells in holders if not contract.labelled(cells.peer)]:
        raise ContractMismatch(f"'{others[0]}' lacks the label too: its part holds no proportions. Give a holder's.")
    if not holders:
        raise ContractMismatch("No part of a holder of the label was given. Give at least one.")


def solve(cells: Cells, moments: Floats) -> tuple[Floats, float]:
    """Ridge on sums by label, (private columns, shared columns, 1); and its loss, eq. 9."""
    sums = np.column_stack([cells.sums, cells.shared.toarray(), cells.rows])
    total, aim = float(cells.rows.sum()), cells.labels @ sums
    penalty = np.full(len(moments), ALPHA)
    penalty[-1] = 0.0
    theta = np.linalg.lstsq(moments / total + np.diag(penalty), aim / total, rcond=None)[0]
    loss = 1.0 - 2.0 * aim @ theta / total + theta @ moments @ theta / total + penalty @ theta**2
    return np.asarray(theta, dtype=np.float64), float(loss)


def whole_counts(counts: Floats) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Whole numbers next to these whose sum is next to theirs, too.

    >>> whole_counts(np.array([0.4, 0.4, 0.4, 2.0]))
    array([0, 1, 0, 2])
    """
    return np.diff(np.rint(np.cumsum(counts)), prepend=0.0).astype(np.int64)


def _note(names: str, sure: float) -> str:
    beginning = (
        f"labelled its own rows by the proportions of {names} (Alternating Mean Map); learning takes them for true"
    )
    if sure < _UNSURE:
        return f"{beginning}, though proportions say too little about its columns: they cannot help here"
    return f"{beginning}, though proportions explain only {sure:.0%} of how its columns differ by label"
