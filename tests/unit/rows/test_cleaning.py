"""Single cells, read as the contract says."""

import pyarrow as pa
import pytest

from radocraft import Contract
from radocraft.errors import MissingColumn, WrongType
from radocraft.rows import open_source
from radocraft.rows._cleaning import cleaned
from radocraft.rows._columns import read_columns


def read(rule: str, *cells: object, more: str = "") -> list[object]:
    contract = Contract.parse(f"""
name = "cells"
label = {{ column = "y", positive = 1, negative = 0 }}
[peers.bank.features]
other = "numeric"
{more}
[peers.bank.cleaning]
cell = {{ {rule} }}
""")
    source = cleaned(open_source(pa.table({"cell": pa.array(cells)})), contract, "bank")
    return read_columns(source, ["cell"])["cell"].to_pylist()


@pytest.mark.parametrize(
    ("rule", "cells", "expected"),
    [
        ("decimal = ','", ["15.654,98", "15654,98", "1 000", "-3", "+,5", "1'000'000,"], None),
        ("decimal = '.'", ["15,654.98", "15654.98", "1 000", "-3", "+.5", "1,000,000."], None),
        ("format = '%d.%m.%Y'", ["1.2.2024", "29.02.2024 12:30"], ["2024-02-01", "2024-02-29"]),
        ("format = '%Y%m%d'", ["20240201", "20001231"], ["2024-02-01", "2000-12-31"]),
        ("format = '%m/%d/%y'", ["2/1/24", "12/31/69", "12/31/68"], ["2024-02-01", "1969-12-31", "2068-12-31"]),
        ("fold = true", [" NORTH", "north ", "No rth"], ["north", "north", "no rth"]),
        ("values = { J = true, N = 0 }", [" J", "N", "j"], ["true", "0", "j"]),
        ("fold = true, values = { J = true }", [" J", "j"], ["true", "true"]),
        ("values = { 1 = 'a', 2 = 'b' }", [1, 2, 3], ["a", "b", "3"]),
        ("values = { true = 'a', false = 'b' }", [True, False, None], ["a", "b", None]),
        ("missing = [-999]", [1.5, -999.0, None], [1.5, None, None]),
        ("missing = ['NA', '']", [" x", " NA ", "  ", "na"], [" x", None, None, "na"]),
        ("missing = ['NA'], fold = true", ["X", "na"], ["x", None]),
    ],
)
def test_cells_are_read_as_the_contract_says(rule, cells, expected):
    numbers = [15654.98, 15654.98, 1000.0, -3.0, 0.5, 1_000_000.0]
    assert read(rule, *cells) == (expected or numbers)


@pytest.mark.parametrize(
    ("rule", "cell"),
    [
        ("decimal = ','", "1.5"),
        ("decimal = ','", "12.34.567"),
        ("decimal = '.'", "1,5"),
        ("decimal = '.'", "twelve"),
        ("decimal = '.'", ""),
        ("format = '%d.%m.%Y'", "31.04.2024"),
        ("format = '%d.%m.%Y'", "29.02.2023"),
        ("format = '%d.%m.%Y'", "29.02.1900"),
        ("format = '%d.%m.%Y'", "2024-02-01"),
        ("format = '%d.%m.%Y'", "0.1.2024"),
        ("format = '%m/%d/%Y'", "13/01/2024"),
    ],
)
def test_a_cell_that_is_neither_is_refused_and_not_shown(rule, cell):
    with pytest.raises(WrongType, match=r"'cell' in 'Table'.*`missing`") as refused:
        read(rule, cell)
    assert not cell or cell not in str(refused.value)
    assert read(f"{rule}, missing = ['{cell}']", cell) == [None]


def test_a_rule_for_a_column_that_is_not_there_is_a_mistake():
    with pytest.raises(MissingColumn, match="lacks 'cel'"):
        read("fold = true", "x", more="[peers.bank.cleaning.cel]\nfold = true")
