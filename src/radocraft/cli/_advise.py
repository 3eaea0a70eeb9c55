"""radocraft advise."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._terminal import ContractFile, Json, out, print_json, progress
from radocraft.contract import Contract
from radocraft.learning import DEFAULT_CAUTION, Advice, best_order, leanest
from radocraft.learning import advise as advise_keys


def advise(
    parts: Annotated[list[Path], typer.Argument(help="One part file of each peer.")],
    contract: ContractFile,
    caution: Annotated[float, typer.Option(min=0, max=1, help="At which key sets are compared.")] = DEFAULT_CAUTION,
    top: Annotated[int, typer.Option(min=1, help="How many subsets to print.")] = 16,
    as_json: Json = False,
) -> None:
    """Show which shared features help, so that peers can agree on fewer.

    Example: radocraft advise --contract contract.toml bank.part.parquet insurer.part.parquet
    """
    agreed = Contract.load(contract)
    with progress("advise", hidden=as_json) as report:
        advices = advise_keys(list(parts), agreed, caution=caution, progress=report)
    lean, order = leanest(advices), best_order(advices)
    if as_json:
        print_json({"leanest": asdict(lean), "order": order, "choices": [asdict(advice) for advice in advices]})
        return
    grid = Table("blocks by", "blocks", "smallest", "typical", "loss", "error")
    for advice in advices[:top]:
        sizes = (f"{advice.blocks:,}", f"{advice.smallest:,}", f"{advice.typical:,}")
        grid.add_row(_keys(advice), *sizes, f"{advice.loss:.4f}", f"{advice.error:.1%}")
    out.print(grid)
    out.print(
        f"The leanest choice within 1 % of the best loss: {_keys(lean)}. Smallest and typical are rows of a cell; "
        "loss and error are to be expected, all judged by the finest blocks there are."
    )
    if len(order) > 1:
        out.print(f"List them in the contract in this order (the last is given up first): {', '.join(order)}.")


def _keys(advice: Advice) -> str:
    return ", ".join(advice.keys) or "the label only"
