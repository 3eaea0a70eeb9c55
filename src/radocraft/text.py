"""Text from files, contracts and parts, made harmless: for a terminal, for JSON shown on one, and for a spreadsheet."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+\-]?[0-9]+(\.[0-9]*)?([eE][+\-]?[0-9]+)?$"


def plain(text: str) -> str:
    r"""A text without characters that steer a terminal, or turn the direction of reading.

    Examples
    --------
    >>> plain("bank\x1b[2J of\u202e Bern")
    'bank[2J of Bern'
    """
    return _CONTROL.sub("", text)


def plain_json(text: str) -> str:
    r"""A JSON document with such characters spelled out.

    Examples
    --------
    >>> plain_json('{"name": "a\x9bb"}')
    '{"name": "a\\u009bb"}'
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_formulas(table: pa.Table) -> pa.Table:
    """A table whose texts no spreadsheet takes for a formula: such a text gets a leading apostrophe; numbers do not.

    Examples
    --------
    >>> without_formulas(pa.table({"=a": ["=1+1", "-5", "Bern", None]})).to_pydict()
    {"'=a": ["'=1+1", '-5', 'Bern', None]}
    """
    columns = [_escaped(column) if _is_text(column.type) else column for column in table.columns]
    names = _escaped(pa.chunked_array([pa.array(table.column_names, pa.string())])).to_pylist()
    return pa.table(columns, names=names)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _escaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = column.cast(pa.large_string())
    formula = pc.and_not(pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER))
    marked = pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, pa.scalar("", texts.type))
    return pc.if_else(pc.fill_null(formula, False), marked, texts)
