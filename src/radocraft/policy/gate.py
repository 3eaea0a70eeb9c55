"""The gate: what a peer lets leave.

`release` is the only way from a tally to a `Release`, and a part can be made
from nothing else. Today's rule is the minimum number of rows: a block with
fewer joins its siblings ("any" in place of its last code), and so on, at the
end to the label alone, so that no rows are lost and no cell is small.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radocraft.arrays import Ints, Truths, first_of_each, number_rows
from radocraft.cells import ROLLED, Cells, constant_features, standardise
from radocraft.contract import Contract, show
from radocraft.errors import ContractMismatch, OneClass, PolicyRefusal
from radocraft.policy.rules import Policy
from radocraft.tally import Tally


@dataclass(frozen=True)
class Release:
    """Cells that passed the gate, with what the gate did to them."""

    contract: Contract
    cells: Cells
    min_rows: int
    blocks_rolled_up: int
    rows_rolled_up: int
    notes: tuple[str, ...] = field(default=())


def release(tally: Tally, contract: Contract, policy: Policy | None = None) -> Release:
    """Let a tally through the gate, rolling up what is too small to leave.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from radocraft import Contract, Policy, craft, open_source, release
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... shared = [{ name = "age", edges = [40] }]
    ... peers.bank.features = { income = "numeric" }
    ... ''')
    >>> rows = pa.table({"bad": [0, 0, 0, 1, 1], "age": [30, 35, 50, 30, 60], "income": [2.0, 3.0, 1.0, 4.0, 5.0]})
    >>> released = release(craft(open_source(rows), contract, "bank"), contract, Policy(min_rows=2))
    >>> released.cells.rows, released.cells.codes.ravel()
    (array([3, 2]), array([-1, -1]))
    """
    policy = policy or Policy()
    if tally.fingerprint != contract.fingerprint:
        raise ContractMismatch("The tally was crafted under another contract; craft it anew under this one.")
    exact = standardise(tally, contract)
    check_labels(exact, contract, policy)
    codes = rolled_up(exact, policy.min_rows)
    moved = (codes == ROLLED).any(axis=1)
    notes = [f"'{name}' is constant: it carries nothing" for name in constant_features(exact, contract)]
    return Release(
        contract=contract,
        cells=exact.grouped(codes),
        min_rows=policy.min_rows,
        blocks_rolled_up=int(moved.sum()),
        rows_rolled_up=int(exact.rows[moved].sum()),
        notes=tuple(notes),
    )


def check_labels(cells: Cells, contract: Contract, policy: Policy) -> None:
    """Both labels must occur, in enough rows to show at least their totals."""
    if len({*cells.labels.tolist()}) < 2:
        raise OneClass(
            f"Only one value of the label '{contract.label.column}' occurs at '{cells.peer}'. "
            "A model needs both; check [label] in the contract, or give more rows."
        )
    for value, sign in zip(contract.label.values, (-1, 1), strict=True):
        whole = cells.labels == sign
        if cells.rows[whole].sum() < policy.min_rows:
            raise PolicyRefusal(
                f"'{cells.peer}' has fewer than {policy.min_rows} rows with label '{show(value)}', so not even their "
                "total may leave. Give more rows; lower min_rows only if your data officer agrees."
            )


def rolled_up(cells: Cells, min_rows: int) -> Ints:
    """New codes for every block, such that no group of equal codes and label is small."""
    codes = cells.codes.copy()
    for level in reversed(range(codes.shape[1])):
        codes[too_small(codes, cells, min_rows), level] = ROLLED
    while (small := too_small(codes, cells, min_rows)).any():
        codes = absorb(codes, cells, int(cells.labels[small][0]))
    return codes


def too_small(codes: Ints, cells: Cells, min_rows: int) -> Truths:
    """Blocks whose group, as coded now, has too few rows or too few present values behind a sum."""
    group = number_rows(np.column_stack([codes, cells.labels]))
    rows = np.bincount(group, cells.rows)
    small = rows < min_rows
    for column in np.flatnonzero((cells.present < cells.rows[:, None]).any(axis=0)):
        present = np.bincount(group, cells.present[:, column])
        small |= (present > 0) & (present < min_rows)
    return small[group]


def absorb(codes: Ints, cells: Cells, label: int) -> Ints:
    """Roll the smallest cell of a label that still has a code up to the label alone.

    Needed when what is left over at the top is itself too small to leave. A cell
    inside another cell stays: everybody can tell where a peer's signature went,
    because it is always the finest of the peer's cells that contains it.
    """
    coded = (cells.labels == label) & (codes != ROLLED).any(axis=1)
    if not coded.any():
        raise PolicyRefusal(
            f"At '{cells.peer}' a column has too few present values for even a label's total to leave. "
            "Leave that column out of the contract, or give more rows."
        )
    among = np.flatnonzero(coded)
    group = number_rows(codes[among])
    shown = [tuple(cell) for cell in codes[among[first_of_each(group)]].tolist()]
    every = {*shown}
    by_size = np.argsort(np.bincount(group, cells.rows[among]), kind="stable")
    smallest = next(at for at in by_size if not every.intersection(coarser(shown[at])))
    codes = codes.copy()
    codes[among[group == smallest]] = ROLLED
    return codes


def coarser(cell: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every cell that contains this one, but itself and the label alone."""
    known = sum(code != ROLLED for code in cell)
    return [(*cell[:level], *[ROLLED] * (len(cell) - level)) for level in range(1, known)]
