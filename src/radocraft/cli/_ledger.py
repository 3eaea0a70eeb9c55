"""radocraft ledger."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from radocraft.cli._terminal import Json, out, print_json
from radocraft.errors import FileError
from radocraft.gate import epsilon_of
from radocraft.ledger import Budget, Decision, History, Leaving, Ledger, Limits, Line, Withheld


def ledger(
    file: Annotated[Path, typer.Argument(help="The ledger: PEER.ledger beside a part, or as the policy says.")],
    table: Annotated[str | None, typer.Option("--table", help="Only what left of this table.")] = None,
    as_json: Json = False,
) -> None:
    """Tell what left, when, who let it go, what it cost, and what remains.

    Example: radocraft ledger bank.ledger
    """
    if not file.exists():
        raise FileError(f"There is no ledger '{file}'. It is beside the part, or where the policy says.")
    history = Ledger(file).history()
    lines = [line for line in history.lines if not isinstance(line.entry, Decision)]
    lines = [line for line in lines if table in {None, line.entry.table}]
    if table is not None and not lines:
        known = ", ".join(sorted({entry.table for entry in history.leaving()})) or "none"
        raise FileError(f"Nothing of '{table}' is in the ledger '{file}'. Its tables: {known}.")
    if as_json:
        answer = {"ledger": str(file), "head": history.head, "lines": [_line(line, history) for line in lines]}
        print_json({**answer, "tables": {name: _remaining(name, history) for name in _tables(lines)}})
        return
    for name in _tables(lines):
        _print_table(name, [line for line in lines if line.entry.table == name], history)
    out.print(f"Head: {history.head[:32]} ({len(history.lines):,} lines)" if lines else "Nothing has left.")


def _tables(lines: list[Line]) -> list[str]:
    return [*dict.fromkeys(line.entry.table for line in lines)]


def _print_table(name: str, lines: list[Line], history: History) -> None:
    grid = Table("when (UTC)", "what", "contract", "rows", "epsilon", "state", title=name, title_justify="left")
    for line in lines:
        fact = _line(line, history)
        cost = "exact" if fact["epsilon"] is None else "given again" if fact["rho"] == 0 else f"{fact['epsilon']:.3g}"
        state = fact["state"] + (f" ({fact['decided_by']}: {fact['reason']})" if fact["decided_by"] else "")
        grid.add_row(
            _left(line, history).strftime("%Y-%m-%d %H:%M"),
            fact["what"],
            fact["contract"],
            "" if fact["rows"] is None else f"{fact['rows']:,}",
            cost,
            state,
        )
    out.print(grid)
    remaining = _remaining(name, history)
    if remaining is None:
        out.print("Exact sums left; there is no budget.")
    else:
        out.print(f"Spent: {remaining['spent']}. Remains: {remaining['remains']}.")
    out.print()


def _line(line: Line, history: History) -> dict[str, Any]:
    """A line for machines; salt, mark and units are the peer's own business."""
    entry = line.entry
    assert not isinstance(entry, Decision)
    delta = None if entry.limits is None else entry.limits.delta
    common = {
        "number": line.number,
        "time": line.time.isoformat(),
        "what": entry.what,
        "table": entry.table,
        "peer": entry.peer,
        "contract": entry.contract,
        "fingerprint": entry.fingerprint,
        "rho": entry.rho,
        "epsilon": None if entry.rho is None or delta is None else epsilon_of(entry.rho, delta),
        "delta": delta,
        "job": entry.job,
    }
    return common | (_withheld(entry) if isinstance(entry, Withheld) else _leaving(entry, line, history))


def _withheld(entry: Withheld) -> dict[str, Any]:
    """Of what noise let nobody have."""
    nothing = dict.fromkeys(("rows", "cells", "policy", "decided_by", "decided_at", "file"))
    return {**nothing, "state": "withheld", "reason": entry.reason}


def _leaving(entry: Leaving, line: Line, history: History) -> dict[str, Any]:
    """Of what left, or waits."""
    decision = history.decision_on(entry.proposal) if entry.proposal else None
    return {
        "rows": entry.rows,
        "cells": entry.cells,
        "policy": entry.policy,
        "state": history.stage_of(entry),
        "decided_by": decision.name if decision else None,
        "decided_at": _left(line, history).isoformat() if decision else None,
        "reason": decision.reason if decision else None,
        "file": entry.file,
    }


def _left(line: Line, history: History) -> datetime:
    """When it left: when it was decided on, if somebody had to."""
    proposal = getattr(line.entry, "proposal", None)
    decisions = (one for one in history.lines if isinstance(one.entry, Decision) and one.entry.proposal == proposal)
    return next(decisions, line).time


def _remaining(table: str, history: History) -> dict[str, Any] | None:
    """What was spent of a table and what remains, by the policy of its last release."""
    entries = [line.entry for line in history.lines if not isinstance(line.entry, Decision)]
    limits: list[Limits] = [one.limits for one in entries if one.table == table and one.limits is not None]
    if not limits:
        return None
    budget = Budget.of(history, table, limits[-1])
    return {
        "releases": budget.releases,
        "rho": budget.spend.rho if math.isfinite(budget.spend.rho) else None,
        "spent": budget.spent,
        "remains": budget.remains,
        "share": budget.share if math.isfinite(budget.share) else None,
    }
