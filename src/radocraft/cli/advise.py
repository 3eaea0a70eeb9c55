"""radocraft advise."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.advise import advise as advise_keys
from radocraft.advise import leanest
from radocraft.cli.terminal import ContractFile, Json, out, print_json, progress
from radocraft.contract import Contract


def advise(
    parts: Annotated[list[Path], typer.Argument(help="One part file of each peer.")],
    contract: ContractFile,
    caution: Annotated[float, typer.Option(min=0, max=1, help="As in learn.")] = 0.25,
    top: Annotated[int, typer.Option(min=1, help="How many choices to print.")] = 16,
    as_json: Json = False,
) -> None:
    """Show which shared features help as keys of blocks, so that peers can agree on fewer.

    Example: radocraft advise --contract contract.toml bank.part.parquet insurer.part.parquet
    """
    agreed = Contract.load(contract)
    with progress("advise", hidden=as_json) as report:
        found = advise_keys(list(parts), agreed, caution=caution, progress=report)
    lean = leanest(found)
    if as_json:
        print_json({"leanest": asdict(lean), "choices": [asdict(advice) for advice in found]})
        return
    grid = Table("blocks by", "blocks", "smallest cell", "typical cell", "expected loss", "error to expect")
    for advice in found[:top]:
        keys = ", ".join(advice.keys) or "the label only"
        sizes = (f"{advice.blocks:,}", f"{advice.smallest:,}", f"{advice.typical:,}")
        grid.add_row(
            keys, *sizes, f"{advice.loss:.4f}", f"{advice.error:.1%}", style="bold" if advice == lean else None
        )
    out.print(grid)
    out.print(
        "The leanest choice within 1 % of the best loss is in bold. All are judged by the finest blocks there are."
    )
