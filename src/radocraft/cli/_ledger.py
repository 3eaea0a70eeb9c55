"""radocraft ledger."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._terminal import Json, out, print_json
from radocraft.errors import FileError
from radocraft.gate import epsilon_of
from radocraft.ledger import Budget, Decision, History, Leaving, Ledger, Line, Withheld


def ledger(
    file: Annotated[
        Path, typer.Argument(help="The ledger: PEER.ledger beside a part, or the file named in the policy.")
    ],
    table: Annotated[str | None, typer.Option("--table", help="Only releases of this table.")] = None,
    as_json: Json = False,
) -> None:
    """Show what left, when, who approved it, what it cost, and what remains.

    Example: radocraft ledger bank.ledger
    """
    if not file.exists():
        raise FileError(f"There is no ledger '{file}'. Look beside the part, or where the policy says.")
    history = Ledger(file).history()
    lines = [line for line in history.lines if not isinstance(line.entry, Decision)]
    lines = [line for line in lines if table in {None, line.entry.table}]
    if table is not None and not lines:
        known = ", ".join(sorted({entry.table for entry in history.leaving()})) or "none"
        raise FileError(f"The ledger '{file}' has no table '{table}'. Its tables: {known}.")
    if as_json:
        remaining = {name: _remaining(name, history) for name in _tables(lines)}
        answer = {
            "ledger": str(file),
            "head": history.head,
            "lines": [asdict(_entry(line, history)) for line in lines],
            "tables": {name: budget and asdict(budget) for name, budget in remaining.items()},
        }
        print_json(answer)
        return
    for name in _tables(lines):
        _print_table(name, [line for line in lines if line.entry.table == name], history)
    out.print(f"Head: {history.head[:32]} ({len(history.lines):,} lines)" if lines else "Nothing has left.")


def _tables(lines: list[Line]) -> list[str]:
    return [*dict.fromkeys(line.entry.table for line in lines)]


def _print_table(name: str, lines: list[Line], history: History) -> None:
    grid = Table("when (UTC)", "what", "contract", "rows", "epsilon", "state", title=name, title_justify="left")
    for line in lines:
        entry = _entry(line, history)
        cost = "exact" if entry.epsilon is None else "given again" if entry.rho == 0 else f"{entry.epsilon:.3g}"
        state = entry.state + (f" ({entry.decided_by}: {entry.reason})" if entry.decided_by else "")
        grid.add_row(
            _left(line, history).strftime("%Y-%m-%d %H:%M"),
            entry.what,
            entry.contract,
            "" if entry.rows is None else f"{entry.rows:,}",
            cost,
            state,
        )
    out.print(grid)
    remaining = _remaining(name, history)
    if remaining is None:
        out.print("Exact sums left; there is no budget.")
    else:
        out.print(f"Spent: {remaining.spent}. Remains: {remaining.remains}.")
    out.print()


@dataclass(frozen=True)
class LedgerRow:
    """A line of the ledger as it is shown; salt, mark and units are the peer's own business."""

    number: int
    time: str
    what: str
    table: str
    peer: str
    contract: str
    fingerprint: str
    rho: float | None
    epsilon: float | None
    delta: float | None
    job: str | None
    rows: int | None
    cells: int | None
    policy: str | None
    state: str
    decided_by: str | None
    decided_at: str | None
    reason: str | None
    file: str | None


@dataclass(frozen=True)
class Remaining:
    """What was spent of a table and what remains, by the policy of its last release."""

    releases: int
    rho: float | None
    spent: str
    remains: str
    share: float | None


def _entry(line: Line, history: History) -> LedgerRow:
    entry = line.entry
    assert not isinstance(entry, Decision)
    leaving = entry if isinstance(entry, Leaving) else None
    decision = history.decision_on(leaving.proposal) if leaving and leaving.proposal else None
    delta = None if entry.limits is None else entry.limits.delta
    return LedgerRow(
        number=line.number,
        time=line.time.isoformat(),
        what=entry.what,
        table=entry.table,
        peer=entry.peer,
        contract=entry.contract,
        fingerprint=entry.fingerprint,
        rho=entry.rho,
        epsilon=None if entry.rho is None or delta is None else epsilon_of(entry.rho, delta),
        delta=delta,
        job=entry.job,
        rows=leaving.rows if leaving else None,
        cells=leaving.cells if leaving else None,
        policy=leaving.policy if leaving else None,
        state=history.stage_of(leaving) if leaving else "withheld",
        decided_by=decision.name if decision else None,
        decided_at=_left(line, history).isoformat() if decision else None,
        reason=entry.reason if isinstance(entry, Withheld) else decision.reason if decision else None,
        file=leaving.file if leaving else None,
    )


def _left(line: Line, history: History) -> datetime:
    """When it left: when it was decided on, if somebody had to."""
    proposal = getattr(line.entry, "proposal", None)
    decisions = (other for other in history.lines if _decides(other, proposal))
    return next(decisions, line).time


def _decides(line: Line, proposal: str | None) -> bool:
    return isinstance(line.entry, Decision) and line.entry.proposal == proposal


def _remaining(table: str, history: History) -> Remaining | None:
    entries = [line.entry for line in history.lines if not isinstance(line.entry, Decision)]
    limits = [entry.limits for entry in entries if entry.table == table and entry.limits is not None]
    if not limits:
        return None
    budget = Budget.of(history, table, limits[-1])
    return Remaining(
        releases=budget.releases,
        rho=budget.spend.rho if math.isfinite(budget.spend.rho) else None,
        spent=budget.spent,
        remains=budget.remains,
        share=budget.share if math.isfinite(budget.share) else None,
    )
