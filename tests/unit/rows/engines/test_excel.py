"""Excel files as companies have them, and files in encodings of Windows."""

import datetime
import gzip

import pytest
from sqlglot import exp
from tests.unit.rows.engines.test_opening import content

from radocraft.errors import DataError, EmptyTable, FileError
from radocraft.rows.engines._base import ROWS
from radocraft.rows.engines._opening import open_source

openpyxl = pytest.importorskip("openpyxl")  # a developer may lack it
DAY = datetime.datetime(2024, 5, 1)


def workbook(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in sheets.items():
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(line)
    book.save(path)
    return path


LINES = [
    ["customer", "age", "income", "member", "since", "code"],
    ["Müller", 41, 1.5, True, DAY, 12],
    ["Meier", None, 2, False, None, "12a"],
    [None, None, None, None, None, None],
]


def test_a_sheet_is_a_table(tmp_path):
    source = open_source(workbook(tmp_path / "bank.XLSX", customers=LINES))
    kinds = {"customer": "text", "age": "integer", "income": "number", "member": "boolean", "code": "text"}
    assert source.kinds() == kinds | {"since": "date"}
    assert [row["age"] for row in content(source)] == [41, None]
    assert [row["code"] for row in content(source)] == ["12", "12a"]
    assert source.pieces[0].name.endswith("bank.XLSX")


def test_which_sheet_is_asked_for_and_what_is_no_table_is_refused(tmp_path):
    path = workbook(tmp_path / "two.xlsx", first=LINES, second=[["a"], [1]], empty=[["a"]], odd=[["a", "a"], [1, 2]])
    assert open_source(path, table="second").kinds() == {"a": "integer"}
    with pytest.raises(DataError, match=r"several sheets\. Say which table, one of: first, second"):
        open_source(path)
    with pytest.raises(DataError, match="no sheet 'third'"):
        open_source(path, table="third")
    with pytest.raises(EmptyTable, match="no rows"):
        open_source(path, table="empty")
    with pytest.raises(DataError, match="name every column, each differently"):
        open_source(path, table="odd")
    with pytest.raises(FileError, match="Give it alone"):
        open_source([path, path])
    (tmp_path / "none.xlsx").write_text("a,b")
    with pytest.raises(DataError, match="no Excel or OpenDocument file"):
        open_source(tmp_path / "none.xlsx")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("late", [False, True])
def test_an_encoding_of_windows_is_named_with_the_way_out(tmp_path, encoding, late):
    path = tmp_path / "bank.csv"
    path.write_bytes(("name;x\n" + "Meier;1\n" * 30_000 * late + "Müller;2\n").encode(encoding))
    with pytest.raises(DataError, match="iconv -f WINDOWS-1252 -t UTF-8") as refused:
        open_source(path).table(exp.select("*").from_(ROWS))
    assert "ller" not in str(refused.value)


def test_compressed_text_is_read_and_what_only_says_so_is_not(tmp_path):
    good, bad = tmp_path / "good.csv.gz", tmp_path / "bad.csv.gz"
    good.write_bytes(gzip.compress(b"name;x\nMeier;1\n"))
    bad.write_bytes(b"name;x\nMeier;1\n")
    assert content(open_source(good)) == [{"name": "Meier", "x": "1"}]
    with pytest.raises(DataError, match=r"Take .gz or .zst off its name"):
        open_source(bad)
