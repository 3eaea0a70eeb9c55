"""radocraft review."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from radocraft.cli.inspect import print_part
from radocraft.cli.terminal import Json, err, out, print_json
from radocraft.privacy.pending import Pending
from radocraft.review import Conclusion, ReviewServer, Verdict, conclude, read_waiting
from radocraft.telling import WaitingScores


def review(
    pending: Annotated[Path, typer.Argument(help="What waits, as `radocraft craft` or `scores` wrote it.")],
    approve: Annotated[bool, typer.Option("--approve", help="Let it leave.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Keep it back for good.")] = False,
    name: Annotated[str | None, typer.Option(help="Who decides; your user name if left out.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded in the ledger.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the approved part.")] = None,
    web: Annotated[bool, typer.Option("--web", help="Look and decide on a local page in a browser.")] = False,
    cells: Annotated[int, typer.Option(min=0, help="How many cells, or blocks of counts, to print; 0 for all.")] = 20,
    as_json: Json = False,
) -> None:
    """Show exactly what would leave, then approve or refuse it.

    Example: radocraft review bank.part.parquet.pending --approve --name "A. Muster" --reason "agreed on 3 May"
    """
    if approve and refuse:
        raise typer.BadParameter("Give --approve or --refuse, not both.")
    if (approve or refuse) and not (reason or web):
        raise typer.BadParameter("A decision needs a --reason; it is recorded in the ledger.")
    waiting = read_waiting(pending)
    if web:
        if isinstance(waiting, WaitingScores):
            raise typer.BadParameter("Counts of scores are looked at in the terminal; leave out --web.")
        if approve or refuse or reason:
            raise typer.BadParameter(
                "With --web the decision is made on the page; leave out --approve, --refuse and --reason."
            )
        _on_the_web(pending, output, as_json)
        return
    if as_json and not (approve or refuse):
        print_json(_everything(waiting))
        return
    if not as_json:
        _print_scores(waiting, cells) if isinstance(waiting, WaitingScores) else _print_release(waiting, cells)
    if not (approve or refuse):
        out.print(
            f"Decide with --approve or --refuse:\n  radocraft review {pending} --approve --name NAME --reason WHY"
        )
        return
    verdict: Verdict = "approval" if approve else "refusal"
    _print_conclusion(conclude(pending, verdict, name or getpass.getuser(), reason or "", output), as_json)


def _on_the_web(pending: Path, output: Path | None, as_json: bool) -> None:
    with ReviewServer(pending, output) as server:
        err.print("Open this address in a browser on this machine; it works once:")
        err.print(server.address, soft_wrap=True)
        err.print("Waiting for a decision. Ctrl-C leaves the release undecided.")
        if (conclusion := server.wait()) is not None:
            _print_conclusion(conclusion, as_json)


def _print_conclusion(conclusion: Conclusion, as_json: bool) -> None:
    if as_json:
        print_json(conclusion.told())
    else:
        out.print(f"Approved: wrote {conclusion.part}." if conclusion.part else "Refused: nothing left.")


def _everything(waiting: Pending | WaitingScores) -> dict[str, Any]:
    if isinstance(waiting, WaitingScores):
        return waiting.model_dump(mode="json")
    return {**waiting.facts, "metadata": waiting.part.metadata, "table": waiting.part.table.to_pylist()}


def _print_scores(waiting: WaitingScores, blocks: int) -> None:
    told, line = waiting.told, waiting.line
    bins = [rows for block in told.rows for rows in block]
    _print_told(
        {
            "would leave": f"{told.total:,} rows of '{line['table']}' counted in {len(bins):,} bins of scores",
            "of the model": f"{told.model[:12]}, learned under '{line['contract']}'",
            "guarantee": told.guarantee,
            "nearest risk": f"the smallest bin holds {min(bins, default=0):,} rows; the limit is {waiting.limit:,}",
        }
    )
    grid = Table("block", "begins at bin", "rows")
    for block, starts, rows in list(zip(told.blocks, told.starts, told.rows, strict=True))[: blocks or None]:
        grid.add_row(str(block), " ".join(map(str, starts)), " ".join(map(str, rows)))
    out.print(grid)
    if blocks and len(told.blocks) > blocks:
        out.print(f"{len(told.blocks) - blocks:,} more blocks: --cells 0 shows all.")


def _print_release(waiting: Pending, cells: int) -> None:
    facts, metadata = waiting.facts, waiting.part.metadata
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
    _print_told(told)
    print_part(waiting.part, cells or waiting.part.table.num_rows)


def _print_told(told: dict[str, str]) -> None:
    grid = Table.grid(padding=(0, 2))
    for key, value in told.items():
        grid.add_row(key, value)
    out.print(grid)
    out.print()
