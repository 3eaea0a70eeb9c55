"""radocraft score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import Json, out, print_json, progress
from radocraft.model import write_table
from radocraft.rows import Scorer, open_source


def score(
    scorer: Annotated[Path, typer.Argument(help="The scorer that was saved when the part was made.")],
    table: Annotated[str, typer.Argument(help="The peer's own people: a file, a folder or a database.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write: .parquet or .csv.")],
    name: Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to copy beside the scores, e.g. an id.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score a peer's own people with its own model; predict combines the peers' scores.

    Example: radocraft score bank.scorer customers.csv -o bank.scores.parquet --keep customer_id
    """
    check_outputs([output], [scorer, table], force=force)
    read = Scorer.load(scorer)
    with progress("score", hidden=as_json) as report:
        scores = read.score(open_source(table, table=name), keep=tuple(keep or ()), progress=report)
    write_table(scores, output)
    if as_json:
        print_json({"scores": str(output), "peer": read.peer, "rows": scores.num_rows})
        return
    out.print(f"Wrote {output}: log-odds of {scores.num_rows:,} rows by the model of {read.peer}.", soft_wrap=True)
    on = f" --on {keep[0]}" if keep else ""
    out.print(f"These scores are about single people. Combine them: radocraft predict model.json {output} ...{on}")
    if not keep:
        out.print("Rows keep their order. To join them by an id, copy its column: --keep COLUMN")
