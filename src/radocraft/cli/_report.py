"""radocraft report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import Json, out, print_json
from radocraft.files import size
from radocraft.model import load_model
from radocraft.pages import write_report


def report(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a report for people: one HTML file that opens without a network.

    Example: radocraft report model.json -o report.html
    """
    check_outputs([output], [model], force=force)
    written = write_report(load_model(model), output)
    if as_json:
        print_json({"report": str(output), "bytes": written})
    else:
        out.print(f"Wrote {output}, {size(written)}. Open it in a browser.")
