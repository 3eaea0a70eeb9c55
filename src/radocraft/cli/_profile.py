"""radocraft profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._terminal import Json, out, print_json
from radocraft.contract import ColumnProfile
from radocraft.gate import Policy
from radocraft.rows import open_source
from radocraft.rows import profile as profile_table


def profile(
    table: Annotated[Path, typer.Argument(help="CSV, Parquet, a folder of them, or a DuckDB file.")],
    name: Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")] = None,
    outline: Annotated[
        bool, typer.Option(help="Add rounded quartiles and frequent categories, to agree on codes.")
    ] = False,
    policy: Annotated[
        Path | None, typer.Option(help="The peer's policy, a TOML file; it says whom the noise protects.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List a table's columns and their kinds, without showing a row.

    Example: radocraft profile bank.parquet --outline --json > bank.profile.json
    """
    rules = Policy.load(policy) if policy is not None else Policy()
    outlined = profile_table(open_source(table, table=name), outline=outline, policy=rules)
    if as_json:
        print_json(outlined.model_dump(mode="json", exclude_defaults=True))
        return
    more = ["missing", "different", "outline"] if outline else []
    grid = Table("column", "kind", *more, "to be read with", title=str(table), title_justify="left")
    for column in outlined.columns:
        figures = [_share(column.missing), _count(column), _sketch(column)] if outline else []
        grid.add_row(column.name, column.kind, *figures, str(column.cleaning or ""))
    out.print(grid)
    if outlined.guarantee is None:
        out.print("Names and kinds alone; --outline adds what is missing, ranges and categories, with noise.")
    else:
        out.print(f"The outline: {outlined.guarantee}. No ledger counts it, so hand it out only once.")


def _share(missing: float | None) -> str:
    return "" if missing is None else f"{missing:.0%}"


def _count(column: ColumnProfile) -> str:
    return f"about {column.distinct:,}" if column.distinct else "few"


def _sketch(column: ColumnProfile) -> str:
    """Why it is no feature, its categories, or its range and quartiles."""
    if column.unfit is not None:
        return f"no feature: {column.unfit}"
    if column.categories:
        return ", ".join(column.categories)
    if column.span is None:
        return ""
    middle = ", ".join(f"{value:g}" for value in column.quartiles or ())
    return f"{column.span[0]:g} to {column.span[1]:g}; quartiles {middle}"
