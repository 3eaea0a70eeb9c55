"""radocraft example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force
from radocraft.cli._terminal import Json, out, print_json
from radocraft.demo import write_example


def example(
    folder: Annotated[Path, typer.Argument(help="Where to write the files; created if missing.")],
    rows: Annotated[int, typer.Option(min=100, help="How many customers.")] = 10_000,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write example tables of a bank and an insurer, and their contract.

    Example: radocraft example trial && cd trial
    """
    written = write_example(folder, rows, replace=force)
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        out.print(f"Wrote {path}", soft_wrap=True)
    out.print("Next, in that folder:\n  radocraft craft -c contract.toml -p bank bank.csv -o bank.part.parquet")
