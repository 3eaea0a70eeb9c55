"""radocraft bench."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._terminal import Json, out, print_json
from radocraft.pages import size
from radocraft.research import CODES, Codec, against_linkage, against_reading, against_scan

app = typer.Typer(help="What crafting and learning cost on this machine.", no_args_is_help=True)


@app.command()
def craft(
    rows: Annotated[int, typer.Option(help="Rows of the generated table.")] = 1_000_000,
    width: Annotated[int, typer.Option(help="Private columns.")] = 20,
    blocks: Annotated[int, typer.Option(help="About so many blocks: 500, 50000 or 1000000.")] = 500,
    codec: Annotated[Codec, typer.Option(help="How the file is compressed.")] = "zstd",
    repeats: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 3,
    memory_limit: Annotated[str | None, typer.Option(help="The most memory for the engine, e.g. 2GB.")] = None,
    as_json: Json = False,
) -> None:
    """Craft a generated table, against the quickest bare scan of the same file.

    Example: radocraft bench craft --rows 1000000 --blocks 500
    """
    if blocks not in CODES:
        raise typer.BadParameter(f"{blocks} is none of {', '.join(map(str, CODES))}.", param_hint="'--blocks'")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found = against_scan(place, rows, width, blocks, codec=codec, repeats=repeats, memory_limit=memory_limit)
    if as_json:
        print_json(asdict(found))
        return
    table = Table("work", "wall", "cpu", "peak", "x scan (wall)", "x scan (cpu)", title=f"{rows:,} x {width}")
    for name, cost, wall, cpu in (
        (f"bare scan ({min(found.engines, key=found.engines.__getitem__)})", found.scan, 1.0, 1.0),
        ("DuckDB's GROUP BY", found.grouped, found.grouped_ratio, found.grouped.cpu / found.scan.cpu),
        ("sums", found.sums, found.sums_ratio, found.sums_cpu_ratio),
        ("sums and moments", found.whole, found.whole_ratio, found.whole_cpu_ratio),
    ):
        table.add_row(name, f"{cost.wall:.2f} s", f"{cost.cpu:.2f} s", size(cost.peak), f"{wall:.2f}", f"{cpu:.2f}")
    out.print(table)


@app.command()
def learn(
    blocks: Annotated[int, typer.Option(help="About so many blocks.")] = 50_000,
    width: Annotated[int, typer.Option(help="Private columns of each of the two peers.")] = 100,
    rows: Annotated[int, typer.Option(help="Rows behind each part.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """Learn from two generated parts, against reading them.

    Example: radocraft bench learn --blocks 50000 --width 100
    """
    with tempfile.TemporaryDirectory() as folder:
        found = against_reading(Path(folder), blocks, width, rows, repeats=repeats)
    if as_json:
        print_json(asdict(found))
        return
    title = f"{found.blocks:,} blocks x {found.columns}, {size(found.bytes)} of parts"
    table = Table("work", "wall", "cpu", "peak", "x reading (wall)", "x reading (cpu)", title=title)
    for name, cost, wall, cpu in (
        ("read both parts", found.reading, 1.0, 1.0),
        ("read and learn", found.learning, found.ratio, found.cpu_ratio),
    ):
        table.add_row(name, f"{cost.wall:.2f} s", f"{cost.cpu:.2f} s", size(cost.peak), f"{wall:.2f}", f"{cpu:.2f}")
    out.print(table)


@app.command()
def linkage(
    rows: Annotated[list[int], typer.Option(help="Rows at each peer; give it again for more sizes.")] = [1_000, 10_000],  # noqa: B006
    method: Annotated[list[str], typer.Option(help="radocraft, zip, splink or recordlinkage.")] = ["radocraft", "zip"],  # noqa: B006
    names: Annotated[bool, typer.Option("--names", help="Give both peers names and dates of birth.")] = False,
    seconds: Annotated[float, typer.Option(help="Stop a method after so many seconds.")] = 300.0,
    as_json: Json = False,
) -> None:
    """Learn across two generated tables, against linking their rows.

    Example: radocraft bench linkage --rows 1000 --method radocraft --method splink
    """
    with tempfile.TemporaryDirectory() as folder:
        found = against_linkage(Path(folder), rows, method, names=names, seconds=seconds)
    if as_json:
        print_json([asdict(rival) for rival in found])
        return
    table = Table("rows", "method", "wall", "cpu", "peak", "sent", "test error")
    for rival in found:
        cost = rival.cost
        figures = (f"{cost.wall:.1f} s", f"{cost.cpu:.1f} s", size(cost.peak), size(rival.sent), f"{rival.error:.2%}")
        table.add_row(f"{rival.rows:,}", rival.method, *(figures if cost.finished else (cost.why, "", "", "", "")))
    out.print(table)
