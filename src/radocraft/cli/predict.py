"""radocraft predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli.terminal import Json, can_be_written, out, print_json, progress
from radocraft.model import Model, write_scores
from radocraft.rows import open_source


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    table: Annotated[Path, typer.Argument(help="The people to score: CSV, Parquet, a folder, a DuckDB file.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", callback=can_be_written, help="Where to write the scores: .csv or .parquet."),
    ],
    name: Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to copy beside the scores, e.g. an id.")] = None,
    as_json: Json = False,
) -> None:
    """Score every row of a table, with all peers' columns or only some of them.

    Example: radocraft predict model.json people.csv -o scores.csv --keep customer_id
    """
    read = Model.load(model)
    with progress("predict", hidden=as_json) as report:
        written = write_scores(read, open_source(table, table=name), output, tuple(keep or ()), report)
    absent = [peer for peer in read.peers if peer not in written.view]
    if as_json:
        told = {"scores": str(output), "rows": written.rows, "given": written.given}
        print_json({**told, "view": written.view, "filled_in": absent})
        return
    given = list(written.given.items())[1:] if len(written.given) == 2 else list(written.given.items())
    out.print(f"Wrote {output}: {written.rows:,} rows", end="", soft_wrap=True)
    counts = ", ".join(f"{name} {count:,}" for name, count in given)
    out.print(f", of them predicted {counts}." if given else ".")
    if absent:
        out.print(f"The table has no columns of {', '.join(absent)}; they were filled in from block means.")
