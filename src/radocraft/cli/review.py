"""radocraft review."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli.inspect import print_part
from radocraft.cli.terminal import Json, out, print_json
from radocraft.privacy.pending import Pending


def review(
    pending: Annotated[Path, typer.Argument(help="A pending release, as `radocraft craft` wrote it.")],
    approve: Annotated[bool, typer.Option("--approve", help="Let it leave.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Keep it back for good.")] = False,
    name: Annotated[str | None, typer.Option(help="Who decides; your user name if left out.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded in the ledger.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the approved part.")] = None,
    cells: Annotated[int, typer.Option(help="How many cells to print; 0 for all.")] = 20,
    as_json: Json = False,
) -> None:
    """Show exactly what would leave, then approve or refuse it.

    Example: radocraft review bank.part.parquet.pending --approve --name "A. Muster" --reason "agreed on 3 May"
    """
    if approve and refuse:
        raise typer.BadParameter("Give --approve or --refuse, not both.")
    waiting = Pending.read(pending)
    if as_json and not (approve or refuse):
        print_json({**waiting.facts, "metadata": waiting.part.metadata, "table": waiting.part.table.to_pylist()})
        return
    if not as_json:
        _print_facts(waiting)
        print_part(waiting.part, cells or waiting.part.table.num_rows)
    if not (approve or refuse):
        out.print("Decide: radocraft review PENDING --approve | --refuse --name NAME --reason REASON")
        return
    if not reason:
        raise typer.BadParameter("A decision needs a --reason; it is recorded in the ledger.")
    target = output or Path(str(pending).removesuffix(".pending"))
    if approve and target == pending:
        raise typer.BadParameter("Say where to write the part: --output FILE.")
    entry = waiting.decide("approval" if approve else "refusal", name or getpass.getuser(), reason)
    if approve:
        waiting.part.write(target)
    pending.unlink()
    if as_json:
        print_json({"decision": entry["kind"], "name": entry["name"], "part": str(target) if approve else None})
    else:
        out.print(f"Approved: wrote [bold]{target}[/]." if approve else "Refused: nothing left.")


def _print_facts(waiting: Pending) -> None:
    facts, metadata = waiting.facts, waiting.part.metadata
    grid = Table.grid(padding=(0, 2))
    rolled = facts["rolled_up"]
    told = {
        "would leave": f"{metadata['rows']:,} rows of '{facts['table']}' in {waiting.part.table.num_rows:,} cells",
        "guarantee": metadata["policy"]["guarantee"],
        "cells by size": "; ".join(f"{count:,} of {size}" for size, count in facts["cells_by_size"].items() if count),
        "held back": f"{rolled['blocks']:,} blocks ({rolled['rows']:,} rows) are only shown rolled up",
        "nearest risk": f"the smallest cell holds {facts['smallest_cell']:,} rows; the limit is {facts['limit']:,}",
        **({"notes": "; ".join(facts["notes"])} if facts["notes"] else {}),
    }
    if facts["largest_shares"]:
        told["largest contributors"] = "; ".join(
            f"{name} {share:.0%}" for name, share in facts["largest_shares"].items()
        )
    if facts["budget"]:
        told["budget"] = f"{facts['budget']['before']:.0%} spent before, {facts['budget']['after']:.0%} after"
    for key, value in told.items():
        grid.add_row(key, value)
    out.print(grid)
    out.print()
