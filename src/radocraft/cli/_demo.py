"""radocraft demo."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from radocraft.cli._terminal import Json, out, print_json, progress
from radocraft.demo import World
from radocraft.demo import demo as run_demo
from radocraft.files import size

_NAMES = {
    "oracle": "oracle (truly joined rows)",
    "best_peer": "best peer alone",
    "mean_peer": "mean peer alone",
    "zip": "zip (pair rows by block)",
    "drl": "drl (the paper)",
    "matching": "matching (ours)",
}


def demo(as_json: Json = False) -> None:
    """Show the main job on small data: two tables with no shared id, one model.

    Example: radocraft demo
    """
    with progress("demo", hidden=as_json) as report:
        worlds = run_demo(progress=report)
    if as_json:
        print_json({world.name: _plain(world) for world in worlds})
        return
    for world in worlds:
        _print_world(world)
    out.print("Errors are on people nobody trained on. The oracle needs ids that do not exist,")
    out.print("zip needs the rows themselves; matching needs only sums.")
    out.print("Next, files to try the commands on: radocraft example FOLDER")
    out.print("Then your own data: radocraft profile TABLE, radocraft contract new --help")


def _plain(world: World) -> dict[str, object]:
    results: dict[str, object] = {name: asdict(result) for name, result in world.results.items()}
    return {**results, "sent": [asdict(sent) for sent in world.sent]}


def _print_world(world: World) -> None:
    out.print(world.title, style="bold")
    grid = Table("", "test error", "AUC", "bytes that left")
    for name, result in world.results.items():
        style = "bold" if name == "matching" else None
        moved = size(result.bytes) if result.bytes else "-"
        grid.add_row(_NAMES[name], f"{result.error:.1%}", f"{result.auc:.3f}", moved, style=style)
    out.print(grid)
    for sent in world.sent:
        out.print(
            f"  {sent.peer} holds {sent.rows:,} rows ({size(sent.table_bytes)}); what left: "
            f"sums of {sent.cells} cells ({size(sent.part_bytes)})"
        )
    out.print()
