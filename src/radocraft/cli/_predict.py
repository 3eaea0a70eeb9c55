"""radocraft predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._outlook import print_expected
from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import Json, out, print_json, progress
from radocraft.model import Model, ScoreModel, load_model, write_joined, write_scores
from radocraft.rows import open_source


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            help="The people: CSV, Parquet, a folder or a DuckDB file. For a model of scores, files of scores, too.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to write the scores: .csv or .parquet."),
    ],
    name: Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to copy beside the scores, e.g. an id.")] = None,
    on: Annotated[
        str | None, typer.Option(help="For several files of scores: the column that joins their rows.")
    ] = None,
    scorer: Annotated[
        list[Path] | None,
        typer.Option(help="For a model of scores: a peer's scorer, if the table has its columns; may be repeated."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score every row of a table that has the columns or scores of all peers, or of some.

    Example: radocraft predict model.json people.csv -o scores.csv --keep customer_id
    """
    check_outputs([output], [model, *tables, *(scorer or ())], force=force)
    read = load_model(model)
    sources = [open_source(table, table=name) for table in tables]
    if not isinstance(read, ScoreModel) and len(sources) > 1:
        raise typer.BadParameter("A model of columns scores one table at a time. Run the command once per table.")
    if not isinstance(read, ScoreModel) and scorer:
        raise typer.BadParameter("--scorer is for models of scores, and this is a model of columns. Leave it out.")
    with progress("predict", hidden=as_json) as report:
        if isinstance(read, ScoreModel):
            written = write_joined(read, sources, output, on=on, keep=tuple(keep or ()), scorers=scorer or ())
        else:
            written = write_scores(read, sources[0], output, tuple(keep or ()), report)
    absent = [peer for peer in read.peers if peer not in written.view]
    if as_json:
        answer = {"scores": str(output), "rows": written.rows, "given": written.given}
        print_json({**answer, "view": written.view, "filled_in": absent})
        return
    given = list(written.given.items())[1:] if len(written.given) == 2 else list(written.given.items())
    out.print(f"Wrote {output}: {written.rows:,} rows", end="", soft_wrap=True)
    counts = ", ".join(f"{name} {count:,}" for name, count in given)
    out.print(f", of them predicted {counts}." if given else ".")
    if absent:
        _print_absent(read, absent)
    elif isinstance(read, ScoreModel):
        print_expected(read)
    else:
        out.print(read.expectation)


def _print_absent(model: Model | ScoreModel, absent: list[str]) -> None:
    """Which peers are missing, and what took their place."""
    if isinstance(model, ScoreModel):
        out.print(
            f"No scores of {', '.join(absent)} were given; the prediction averages over them. To use them, pass a "
            "file from `radocraft score`, or the table and --scorer FILE."
        )
    else:
        out.print(f"The table has no columns of {', '.join(absent)}; they were filled in from block means.")
