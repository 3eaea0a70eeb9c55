"""radocraft audit."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._score_part import GIVEN_THE_MODEL
from radocraft.cli._terminal import Json, out, print_json
from radocraft.parts import Part


def audit(part: Annotated[Path, typer.Argument(help="A part file.")], as_json: Json = False) -> None:
    """Show what an attacker who knows all rows but one can learn from a part at best.

    Example: radocraft audit bank.part.parquet
    """
    read = Part.read(part)
    read.check()
    found = read.audit()
    if as_json:
        print_json({**asdict(found), "sentence": found.sentence})
        return
    out.print(f"{found.sentence}.")
    if read.of_scores:
        out.print(GIVEN_THE_MODEL)
    else:
        out.print("\nOne value, known to within so much in 95 of 100 cases:")
        grid = Table("column", "counts from", "to", f"a usual {found.unit}", "the largest", "of its range remains")
        for column in found.columns:
            numbers = [f"{number:.4g}" for number in (column.low, column.high, column.usual, column.largest)]
            grid.add_row(column.name, *numbers, f"{100 * column.open:.0f} %")
        out.print(grid)
    out.print("\nThe smallest cells, and how well a mean in them is known:")
    grid = Table("cell", "rows", "deviations")
    for cell in found.cells:
        grid.add_row(cell.cell, f"{cell.rows:,}", f"± {cell.mean:.2g}")
    out.print(grid)
