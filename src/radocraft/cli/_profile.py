"""radocraft profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._terminal import Json, out, print_json
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
        print_json(outlined.model_dump(mode="json", exclude_none=True))
        return
    grid = Table("column", "kind", *(["outline"] if outline else []), title=str(table), title_justify="left")
    for column in outlined.columns:
        sketch = column.categories or tuple(f"{edge:g}" for edge in column.quartiles or ())
        grid.add_row(column.name, column.kind, *([", ".join(sketch)] if outline else []))
    out.print(grid)
    if outlined.guarantee is not None:
        out.print(f"The outline: {outlined.guarantee}. No ledger counts it, so hand it out only once.")
