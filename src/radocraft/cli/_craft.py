"""radocraft craft."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._scorer import describe_scorer, print_scorer
from radocraft.cli._terminal import ContractFile, Json, err, out, print_json, progress
from radocraft.contract import Contract
from radocraft.files import size
from radocraft.gate import Policy, describe_rows
from radocraft.parts import Part
from radocraft.peer import scorer_beside, share, table_name_of
from radocraft.rows import Scorer, open_source
from radocraft.sums import Bound, Tally


def craft(
    table: Annotated[
        list[str],
        typer.Argument(
            help="CSV or Parquet files, a folder of them, a DuckDB file, or postgresql://user@host/database."
        ),
    ],
    contract: ContractFile,
    peer: Annotated[str, typer.Option("--peer", "-p", help="Which peer of the contract the table belongs to.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The part file to write.")],
    name: Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")] = None,
    policy: Annotated[Path | None, typer.Option(help="The peer's policy, a TOML file; see `radocraft policy`.")] = None,
    min_rows: Annotated[
        int | None, typer.Option(min=1, help="Without a policy file: blocks with fewer rows are rolled up (10).")
    ] = None,
    rows: Annotated[
        tuple[str, str, str] | None,
        typer.Option(metavar="COLUMN LOW HIGH", help="Only rows whose column is at least LOW and below HIGH."),
    ] = None,
    memory_limit: Annotated[str | None, typer.Option(help="The most memory to use, e.g. 2GB.")] = None,
    temp_dir: Annotated[Path | None, typer.Option(help="Where to spill what does not fit in memory.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help='In mode "exact": the same result to the bit on every run, on one core.')
    ] = False,
    onto: Annotated[Path | None, typer.Option(help="A tally of earlier rows to add these rows to.")] = None,
    tally: Annotated[
        Path | None,
        typer.Option(help="Save the sums without noise here, for --onto. Never send this file."),
    ] = None,
    proportions: Annotated[
        list[Path] | None,
        typer.Option(help="For a peer without the label: a label holder's part; rows are labelled by its proportions."),
    ] = None,
    scorer: Annotated[
        Path | None,
        typer.Option(
            help="For a contract of scores: where the peer's own model is saved; an existing one is used. "
            "[PEER.scorer beside the part]"
        ),
    ] = None,
    refit: Annotated[bool, typer.Option("--refit", help="Fit that model again even if it exists.")] = False,
    secret: Annotated[
        Path | None, typer.Option(help="The file with the secret for hashing keys, if the contract asks for one.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="IDENTITY", help="Sign the part with the key of this network identity.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sum a peer's rows by block, add noise, and write the part that may leave.

    Example: radocraft craft --contract contract.toml --peer bank bank.parquet -o bank.part.parquet
    """
    inputs = [*table, contract, policy, onto, *(proportions or ()), secret, sign]
    check_outputs([output, tally, scorer], inputs, force=True)  # what is there may be of the same release
    agreed, rules = Contract.load(contract), _rules(policy, min_rows)
    holders = [Part.read(path) for path in proportions or ()]
    if holders and (onto is not None or tally is not None):
        raise typer.BadParameter("--onto and --tally add up rows, but --proportions labels the whole table at once.")
    source = open_source(
        table[0] if len(table) == 1 else list(table),
        table=name,
        rows=(rows[0], *_bounds(*rows[1:])) if rows else None,
        memory_limit=memory_limit,
        temp_directory=temp_dir,
        exact=exact,
    )
    earlier = Tally.load(onto, agreed) if onto else None
    notes: list[str] = []
    scorers: list[Scorer] = []
    try:
        with progress(f"craft {peer}", hidden=as_json) as report:
            part = share(
                source,
                agreed,
                peer,
                policy=rules,
                output=output,
                replace=force,
                name=name or table_name_of(table, peer),
                onto=earlier,
                tally=tally,
                proportions=holders,
                keep_scorer=scorer,
                refit=refit,
                on_scorer=scorers.append,
                secret=secret,
                sign=_key(sign) if sign else None,
                say=notes.append,
                progress=report,
            )
    finally:  # where a person has to decide, or where it is refused, this is worth knowing all the more
        if not as_json:
            for note in notes:
                err.print(note)
            for fitted in scorers:
                print_scorer(fitted, scorer or scorer_beside(output, peer))
    _print_part(part, output, notes, scorers, as_json)


def _print_part(part: Part, output: Path, notes: list[str], scorers: list[Scorer], as_json: bool) -> None:
    metadata, policy, bytes_ = part.metadata, part.metadata["policy"], output.stat().st_size
    if as_json:
        print_json(
            {
                "part": str(output),
                "peer": part.peer,
                "rows": metadata["rows"],
                "cells": part.table.num_rows,
                "bytes": bytes_,
                **policy,
                "notes": [*metadata["notes"], *notes],
                **({"scorer": describe_scorer(scorers[0])} if scorers else {}),
            }
        )
        return
    rows = describe_rows(metadata["rows"], policy["mode"])
    what = f"scores of {rows} rows" if part.of_scores else f"{rows} rows"
    out.print(
        f"Wrote {output}: {what} summed into {part.table.num_rows:,} cells, "
        f"{size(bytes_)}. Guarantee: {policy['guarantee']}."
    )
    if policy["rolled_up"]:
        out.print(
            f"{policy['rolled_up']:,} agreed blocks have too few rows, or none; they left only as part of coarser ones."
        )
    for note in metadata["notes"]:
        out.print(f"Note: {note}.")
    out.print(f"See what it contains: radocraft inspect {output}")


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


def _key(folder: Path) -> bytes:
    """The private key of an identity."""
    from radocraft.net import Identity  # noqa: PLC0415 - the network is not needed otherwise

    return Identity.read(folder).private
