"""radocraft inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from radocraft.cli._score_part import SCORE_SUMS, print_tables, print_units
from radocraft.cli._terminal import Json, out, print_json
from radocraft.contract import Contract
from radocraft.files import size
from radocraft.gate import describe_rows
from radocraft.parts import Part


def inspect(
    part: Annotated[Path, typer.Argument(help="A part file.")],
    cells: Annotated[int, typer.Option(min=0, help="How many cells to print; 0 for all.")] = 10,
    contract: Annotated[
        Path | None, typer.Option("--contract", "-c", help="Check codes, units and signature under this contract, too.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a part contains, and check it as if an attacker had made it.

    Example: radocraft inspect bank.part.parquet
    """
    read = Part.read(part)
    agreed = None if contract is None else Contract.load(contract)
    read.check(agreed)
    if as_json:
        print_json({**read.metadata, "cells": read.table.to_pylist()})
        return
    facts = Table.grid(padding=(0, 2))
    for key, value in _facts(read, part, agreed).items():
        facts.add_row(key, value)
    out.print(facts)
    out.print()
    print_part(read, cells or read.table.num_rows)


def _facts(part: Part, path: Path, contract: Contract | None) -> dict[str, str]:
    metadata, policy = part.metadata, part.metadata["policy"]
    width, rows = len(metadata["columns"]), describe_rows(metadata["rows"], policy["mode"])
    return {
        "peer": metadata["peer"],
        "contract": f"{metadata['contract']} ({metadata['fingerprint'][:16]})",
        "made": f"{metadata['created']} by radocraft {metadata['radocraft']}",
        "policy": f"{policy['mode']}: {policy['guarantee']}",
        "rows": f"{rows} in {part.table.num_rows:,} cells, "
        + ("one score each" if part.of_scores else f"by {width} private columns"),
        "rolled up": f"{policy['rolled_up']:,} blocks, into coarser ones",
        "besides": besides(part),
        "file": f"{size(path.stat().st_size)}, hash {metadata['hash'][:16]}, not changed since release",
        "checked": _checked(part, contract),
        **({"notes": "; ".join(metadata["notes"])} if metadata["notes"] else {}),
    }


def besides(part: Part) -> str:
    """What leaves beside the cells."""
    if not part.of_scores:
        return "second moments of the private columns, by label"
    groups = {label: len(sums) for label, sums in part.metadata["scores"]["groups"].items()}
    told = ", ".join(f"{count:,} groups of {label}" for label, count in groups.items())
    keyed = f"; sums by group of the key, {told}" if any(groups.values()) else "; no key, so nothing by group"
    return f"rows by agreed signature, and histograms of residuals and of scores, each by label{keyed}"


def _checked(part: Part, contract: Contract | None) -> str:
    """What was checked, and what was not."""
    signed = part.metadata.get("signature") is not None
    if contract is None:
        rest = "codes, units and signature were" if signed else "codes and units were"
        unsigned = "" if signed else "; it is not signed"
        return f"the numbers are plausible; without --contract {rest} not checked{unsigned}"
    if contract.peers[part.peer].public_key is not None:
        return "everything, under the contract, including the signature"
    return f"everything, under the contract, which lists no public key of '{part.peer}'"


def print_part(part: Part, cells: int) -> None:
    """The units of the sums, and some of the cells; of scores all else that leaves, too."""
    if part.of_scores:
        print_units(part)
        _print_cells(part, cells, dict(zip(part.metadata["columns"], SCORE_SUMS, strict=True)))
        print_tables(part, cells)
    else:
        _print_columns(part)
        _print_cells(part, cells, {})


def _print_columns(part: Part) -> None:
    grid = Table("private column", "centre", "scale", title="Units of the sums", title_justify="left")
    metadata = part.metadata
    for name, centre, scale in zip(metadata["columns"], metadata["centre"], metadata["scale"], strict=True):
        grid.add_row(name, f"{centre:.6g}", f"{scale:.6g}")
    out.print(grid)


def _print_cells(part: Part, count: int, words: dict[str, str]) -> None:
    """Some of the cells; ``words`` stand over columns whose names say less."""
    names = part.table.column_names
    keys = [name for name in names if name.startswith("shared:") or name in ("label", "rows")]
    sums = [name for name in names if name.startswith("sum:")]
    rows = part.table.slice(0, count).to_pylist()
    bare = {name: name.partition(":")[2] or name for name in names}
    heads = {name: words.get(bare[name], bare[name]) for name in (*keys, *sums)}
    columns = {name: [heads[name], *(_shown(row[name]) for row in rows)] for name in heads}
    shown = _fitting(columns, at_least=len(keys) + 1)
    title = f"Cells ({len(rows):,} of {part.table.num_rows:,}), {len(shown) - len(keys)} of {len(sums)} sums"
    grid = Table(*(heads[name] for name in shown), title=title, title_justify="left")
    for row in zip(*(columns[name][1:] for name in shown), strict=True):
        grid.add_row(*row)
    out.print(grid)


def _fitting(columns: dict[str, list[str]], at_least: int) -> list[str]:
    """The first columns of a table, each with its heading, that fit the terminal side by side."""
    wide = [max(map(len, texts)) + 3 for texts in columns.values()]
    fitting = int(np.searchsorted(np.cumsum(wide) + 1, out.width, side="right"))
    return [*columns][: max(fitting, at_least)]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
