"""A sheet of an Excel or OpenDocument file, as a table in memory: its first line holds the names."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from radocraft.errors import DataError, EmptyTable, FileError
from radocraft.rows.engines._driver import driver

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def read_excel(path: Path, sheet: str | None) -> pa.Table:
    """The sheet of that name; without a name the only one."""
    if not path.exists():
        raise FileError(f"There is no file '{path}'. Check the path.")
    calamine = driver("python_calamine", "an Excel file", "excel")
    try:
        with calamine.CalamineWorkbook.from_path(str(path)) as book:
            lines = book.get_sheet_by_name(_chosen(path, book.sheet_names, sheet)).to_python()
    except (calamine.CalamineError, OSError, ValueError) as error:
        raise DataError(
            f"'{path}' is no Excel or OpenDocument file, not a whole one, or one with a password. "
            "Save it anew without a password, or as CSV in UTF-8."
        ) from error
    lines = [line for line in lines if any(cell != "" for cell in line)]
    if len(lines) < 2:
        raise EmptyTable(f"'{path}' has no rows. Give a sheet with a line of names and rows below it.")
    names = [str(name).strip() for name in lines[0]]
    if "" in names or len({*names}) < len(names):
        raise DataError(
            f"The first line of '{path}' must name every column, each differently. Take out what stands above or "
            "beside the table."
        )
    return pa.table({name: _column([line[at] for line in lines[1:]]) for at, name in enumerate(names)})


def _chosen(path: Path, sheets: list[str], sheet: str | None) -> str:
    if sheet is None and len(sheets) == 1:
        return sheets[0]
    if sheet in sheets:
        return str(sheet)
    said = "has several sheets" if sheet is None else f"has no sheet '{sheet}'"
    raise DataError(f"'{path}' {said}. Say which table, one of: {', '.join(sheets)}.")


def _column(cells: list[Any]) -> pa.Array:
    """Numbers, truth values or days if all cells are; else text, as a CSV file would hold it."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        whole = all(value is None or (float(value).is_integer() and abs(value) < 2**53) for value in values)
        return pa.array([value if value is None or not whole else int(value) for value in values])
    if kinds in ({bool}, {datetime.date}, {datetime.datetime}):
        return pa.array(values)
    if kinds == {datetime.date, datetime.datetime}:
        return pa.array([v.date() if isinstance(v, datetime.datetime) else v for v in values], pa.date32())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
