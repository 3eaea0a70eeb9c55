"""radocraft craft."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli.terminal import ContractFile, Json, can_be_written, out, print_json, progress
from radocraft.contract import Contract
from radocraft.offer import let_go, make_release, pending_path
from radocraft.parts import Part
from radocraft.pieces import Bound
from radocraft.policy import Policy
from radocraft.report.numbers import size
from radocraft.sources import open_source
from radocraft.tally import Tally


def craft(
    table: Annotated[
        list[str],
        typer.Argument(
            help="CSV or Parquet files, a folder of them, a DuckDB file, or postgresql://user@host/database."
        ),
    ],
    contract: ContractFile,
    peer: Annotated[str, typer.Option("--peer", "-p", help="Which peer of the contract the table belongs to.")],
    output: Annotated[Path, typer.Option("--output", "-o", callback=can_be_written, help="The part file to write.")],
    name: Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")] = None,
    policy: Annotated[Path | None, typer.Option(help="The peer's policy, a TOML file; see `radocraft policy`.")] = None,
    min_rows: Annotated[
        int | None, typer.Option(min=1, help="Without a policy file: the fewest rows a released cell may hold (10).")
    ] = None,
    rows: Annotated[
        tuple[str, str, str] | None,
        typer.Option(metavar="COLUMN LOW HIGH", help="Only rows whose column is at least LOW and below HIGH."),
    ] = None,
    memory_limit: Annotated[str | None, typer.Option(help="The most memory to take, e.g. 2GB.")] = None,
    temp_dir: Annotated[Path | None, typer.Option(help="Where to put what does not fit in memory.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="The same bits on every run, at the speed of one core.")
    ] = False,
    onto: Annotated[Path | None, typer.Option(help="A tally of earlier rows to add these to.")] = None,
    tally: Annotated[
        Path | None, typer.Option(callback=can_be_written, help="Keep the exact sums here, for --onto. Never send it.")
    ] = None,
    proportions: Annotated[
        list[Path] | None,
        typer.Option(help="For a peer without the label: a holder's part, by whose proportions it labels its rows."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Let it leave without the review the policy asks for.")] = False,
    as_json: Json = False,
) -> None:
    """Sum a peer's rows by block and write the part that may leave.

    Example: radocraft craft --contract contract.toml --peer bank bank.parquet -o bank.part.parquet
    """
    agreed, rules = Contract.load(contract), _rules(policy, min_rows)
    holders = [Part.read(path) for path in proportions or ()]
    if holders and (onto is not None or tally is not None):
        raise typer.BadParameter("--onto and --tally add up rows, but --proportions labels the whole table at once.")
    if rules.privacy is not None and (onto is not None or tally is not None):
        raise typer.BadParameter("--onto and --tally keep exact sums, which differential privacy does not release.")
    source = open_source(
        table[0] if len(table) == 1 else list(table),
        table=name,
        rows=(rows[0], *_bounds(*rows[1:])) if rows else None,
        memory_limit=memory_limit,
        temp_directory=temp_dir,
        exact=exact,
    )
    earlier = Tally.load(onto, agreed) if onto else None
    with progress(f"craft {peer}", hidden=as_json) as report:
        released = make_release(
            source, agreed, peer, rules, onto=earlier, tally=tally, proportions=holders, progress=report
        )
    waits = rules.review and not yes
    part = let_go(released, rules, name or str(table[0]), output, waits=waits)
    written = pending_path(output) if waits else output
    summary = {
        "pending" if waits else "part": str(written),
        "peer": peer,
        "rows": part.metadata["rows"],
        "cells": part.table.num_rows,
        "bytes": written.stat().st_size,
        **part.metadata["policy"],
        "notes": part.metadata["notes"],
    }
    if as_json:
        print_json(summary)
        return
    if waits:
        out.print(
            f"Nothing has left. {written} waits for review: {part.metadata['rows']:,} rows summed into "
            f"{part.table.num_rows:,} cells. See it and decide: radocraft review {written}"
        )
        return
    out.print(
        f"Wrote {output}: {part.metadata['rows']:,} rows summed into {part.table.num_rows:,} cells, "
        f"{size(output.stat().st_size)}. {part.metadata['policy']['guarantee'].capitalize()}."
    )
    if summary["blocks_rolled_up"]:
        out.print(f"{summary['blocks_rolled_up']:,} small blocks were rolled up into coarser ones.")
    for note in part.metadata["notes"]:
        out.print(f"Note: {note}.")
    out.print(f"See what it holds: radocraft inspect {output}")


def _rules(policy: Path | None, min_rows: int | None) -> Policy:
    if policy is not None and min_rows is not None:
        raise typer.BadParameter("--min-rows is for use without --policy; set min_rows in the policy file.")
    return Policy.load(policy) if policy is not None else Policy(10 if min_rows is None else min_rows)


def _bounds(low: str, high: str) -> tuple[Bound, Bound]:
    """Numbers where both are, else text, as in dates."""
    try:
        return float(low), float(high)
    except ValueError:
        return low, high
