"""radocraft inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from radocraft.cli.terminal import Json, out, print_json, size
from radocraft.part import Part


def inspect(
    part: Annotated[Path, typer.Argument(help="A part file.")],
    cells: Annotated[int, typer.Option(help="How many cells to print; 0 for all.")] = 10,
    as_json: Json = False,
) -> None:
    """Show everything a part holds, and check that nobody changed it.

    Example: radocraft inspect bank.part.parquet
    """
    read = Part.read(part)
    if as_json:
        print_json({**read.metadata, "cells": read.table.to_pylist()})
        return
    facts = Table.grid(padding=(0, 2))
    for key, value in _facts(read, part).items():
        facts.add_row(key, value)
    out.print(facts)
    out.print()
    print_part(read, cells or read.table.num_rows)


def _facts(part: Part, path: Path) -> dict[str, str]:
    metadata, policy = part.metadata, part.metadata["policy"]
    width = len(metadata["columns"])
    return {
        "peer": metadata["peer"],
        "contract": f"{metadata['contract']} ({metadata['fingerprint'][:16]})",
        "made": f"{metadata['created']} by radocraft {metadata['radocraft']}",
        "policy": f"{policy['mode']}: {policy['guarantee']}",
        "rows": f"{metadata['rows']:,} in {part.table.num_rows:,} cells, by {width} private columns",
        "rolled up": f"{policy['blocks_rolled_up']:,} blocks, {policy['rows_rolled_up']:,} rows",
        "moments": "one matrix over the whole table (private columns, shared columns, 1)",
        "file": f"{size(path.stat().st_size)}, hash {metadata['hash'][:16]}, not changed since release",
        **({"notes": "; ".join(metadata["notes"])} if metadata["notes"] else {}),
    }


def print_part(part: Part, cells: int) -> None:
    """The units of the sums, and some of the cells."""
    _print_columns(part)
    _print_cells(part, cells)


def _print_columns(part: Part) -> None:
    grid = Table("private column", "centre", "scale", title="Units of the sums", title_justify="left")
    metadata = part.metadata
    for name, centre, scale in zip(metadata["columns"], metadata["centre"], metadata["scale"], strict=True):
        grid.add_row(name, f"{centre:.6g}", f"{scale:.6g}")
    out.print(grid)


def _print_cells(part: Part, count: int) -> None:
    keys = [name for name in part.table.column_names if name.startswith("shared:") or name in ("label", "rows")]
    sums = [name for name in part.table.column_names if name.startswith("sum:")][:4]
    title = f"Cells ({min(count, part.table.num_rows):,} of {part.table.num_rows:,})"
    grid = Table(*(name.partition(":")[2] or name for name in (*keys, *sums)), title=title, title_justify="left")
    for row in part.table.slice(0, count).to_pylist():
        grid.add_row(*(_shown(row[name]) for name in (*keys, *sums)))
    out.print(grid)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
