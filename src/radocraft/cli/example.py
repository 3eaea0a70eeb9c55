"""radocraft example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli.terminal import out
from radocraft.example import write_example


def example(
    folder: Annotated[Path, typer.Argument(help="Where to write the files; made if it is not there.")],
    rows: Annotated[int, typer.Option(min=100, help="How many customers.")] = 10_000,
) -> None:
    """Write example tables of a bank and an insurer, their contract, and people to score.

    Example: radocraft example trial && cd trial
    """
    for path in write_example(folder, rows):
        out.print(f"Wrote {path}", soft_wrap=True)
