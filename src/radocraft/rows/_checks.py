"""Checks of a peer's table against the contract."""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats, Truths
from radocraft.contract import Boolean, Column, Number, Quantity, Spline
from radocraft.errors import EmptyTable, MissingColumn, NotFinite, UnknownLabel, WrongType
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import infinite, whole
from radocraft.rows.engines._base import ROWS, Named, Source


def check_columns(reader: Reader, source: Source) -> None:
    """All missing columns, then all columns of a kind that cannot be read, each at once."""
    contract, peer = reader.contract, reader.peer
    wanted = [
        *([contract.label.column] if contract.labelled(peer) else []),
        *(s.name for s in contract.shared),
        *contract.own_columns(peer),
    ]
    names = {name: contract.column_of(peer, name) for name in wanted}
    if absent := [column for column in names.values() if column not in reader.kinds]:
        raise MissingColumn(
            f"'{source.name}' lacks {listed(absent)}, which the contract asks of '{peer}'. "
            f"It has {listed(list(reader.kinds))}. If only the name differs, map it under [peers.{peer}.columns]."
        )
    features = contract.peers[peer].features.items()
    dates = [s.name for s in contract.shared if s.date is not None]
    dates += [name for name, f in features if f.kind == "date"]
    numeric = [s.name for s in contract.shared if s.edges is not None and s.date is None]
    numeric += [name for name, f in features if isinstance(f, Quantity | Boolean | Spline) and name not in dates]
    numeric += [contract.label.column] if isinstance(contract.label, Number) else []
    if reader.persons is not None and reader.persons.column not in reader.kinds:
        raise MissingColumn(
            f"'{source.name}' has no column '{reader.persons.column}' that says whose a row is. "
            "Correct `person` in the policy."
        )
    if wrong := [names[name] for name in numeric if reader.kind(name) == "date"]:
        raise WrongType(
            f"{listed(wrong)} in '{source.name}' holds dates, which are no numbers. Say in the contract which number "
            'of them is meant: a feature of kind "date", or a shared one with `date = "year"`.'
        )
    if wrong := [names[name] for name in numeric if reader.kind(name) == "other"]:
        raise WrongType(
            f"{listed(wrong)} in '{source.name}' is neither number, truth value, date nor text. "
            "Convert it to a number first, or leave it out of the contract."
        )
    if wrong := [names[name] for name in dates if reader.kind(name) not in ("date", "text")]:
        raise WrongType(
            f"{listed(wrong)} in '{source.name}' holds no dates. Correct the feature in the contract, or the column "
            f"under [peers.{peer}.columns]."
        )


def check_rows(count: int, source: Source) -> None:
    """There must be some."""
    if count == 0:
        raise EmptyTable(f"'{source.name}' has no rows. Give a table with at least one.")


def check_read(reader: Reader, source: Source) -> None:
    """No cell may hold something that is not of the kind the contract says; costs a scan, so ask when it is known."""
    if wrong := misread_columns(source, reader):
        raise WrongType(
            f"{listed(wrong)} in '{source.name}' holds text where the contract says numeric or boolean. "
            "Clean the column, leave such cells empty, or make it categorical."
        )


def check_labels(unknown: bool, source: Named, reader: Reader) -> None:
    """Every row must have one of the agreed labels."""
    if unknown:
        label = reader.contract.label
        if isinstance(label, Number):
            raise UnknownLabel(
                f"The label '{reader.contract.column_of(reader.peer, label.column)}' in '{source.name}' is missing or "
                "no number in some rows. Leave those rows out, or correct [label] in the contract."
            )
        *most, last = (f"'{name}'" for name in label.names)
        raise UnknownLabel(
            f"The label '{reader.contract.column_of(reader.peer, label.column)}' in '{source.name}' holds values other "
            f"than {', '.join(most)} and {last}, or is missing in some rows. "
            "Leave those rows out, or correct [label] in the contract."
        )


def misread_columns(source: Source, reader: Reader) -> list[str]:
    """Which columns hold cells that cannot be read; asked only after the fact."""
    names = reader.convertible()
    if not names:
        return []
    worst = [
        exp.func("MAX", exp.cast(reader.misread_in(name), "INT")).as_(f"m_{index}") for index, name in enumerate(names)
    ]
    misread = source.table(exp.select(*worst).from_(ROWS)).to_pylist()[0]
    return [reader.contract.column_of(reader.peer, name) for index, name in enumerate(names) if misread[f"m_{index}"]]


def check_finite(moments: Floats, columns: tuple[Column, ...], source: Source) -> None:
    """Infinities, and numbers whose squares overflow, show on the diagonal of some label's moments."""
    squares = np.diagonal(moments, axis1=1, axis2=2)[:, : len(columns)]
    _refuse_infinite(np.asarray(~np.isfinite(squares).all(axis=0)), columns, source)


def check_bounded(reader: Reader, columns: tuple[Column, ...], source: Source) -> None:
    """Which columns hold infinities; costs a scan, so ask when it is known that some do."""
    asked = [exp.Case().when(infinite(value), whole(1)) for value in reader.plain()]
    counts = [exp.func("COUNT", one).as_(f"c_{index}") for index, one in enumerate(asked)]
    counted = source.table(exp.select(*counts).from_(reader.rows(ROWS))).to_pylist()[0]
    numbers = tuple(columns[index] for index in reader.layout.plain)
    _refuse_infinite(np.array([counted[f"c_{index}"] > 0 for index in range(len(numbers))]), numbers, source)


def _refuse_infinite(bad: Truths, columns: tuple[Column, ...], source: Source) -> None:
    if bad.any():
        names = list(dict.fromkeys(column.feature for column, wrong in zip(columns, bad, strict=True) if wrong))
        raise NotFinite(
            f"{listed(names)} in '{source.name}' holds infinities or numbers too large to square. "
            "Replace them by missing values or finite numbers."
        )


def listed(names: list[str]) -> str:
    """Names in quotes, with commas."""
    return ", ".join(f"'{name}'" for name in names)
