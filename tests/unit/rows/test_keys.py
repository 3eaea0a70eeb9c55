"""Neutral keys: the same number from the same attribute, however a peer holds it."""

import datetime
import hashlib
import hmac
import unicodedata
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from tests.unit.rows.people import SECRET, agree

from radocraft.errors import ContractMismatch, FileError, MissingColumn, WrongType
from radocraft.rows._encoding import Reader
from radocraft.rows._keys import NO_KEY, KeyReader, canonical
from radocraft.rows.engines._base import ROWS
from radocraft.rows.engines._opening import open_source

HASHED = f'hash = 365\nsecret = "{hashlib.sha256(SECRET).hexdigest()}"'


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "secret").write_bytes(SECRET)
    return tmp_path / "secret"


def keys(way: str, column: pa.Array, secret=None) -> list[int]:
    """The keys of a column, read by the embedded engine."""
    contract = agree(key=f'[[key]]\nname = "born"\n{way}')
    source = open_source(pa.table({"born": column}))
    reader = KeyReader.of(Reader(contract, "bank", source.kinds()), secret)
    assert reader is not None
    query = exp.select(reader.expression().as_("key")).from_(ROWS)
    return reader.numbers(source.table(query)["key"].combine_chunks()).tolist()


def days(*dates: str | None) -> pa.Array:
    return pa.array([None if date is None else datetime.date.fromisoformat(date) for date in dates], pa.date32())


@pytest.mark.parametrize(
    ("way", "column", "expected"),
    [
        ('categories = ["a", "b", "c"]', pa.array(["c", "a", None, "d"]), [2, 0, NO_KEY, NO_KEY]),
        ("categories = [1, 2, 3]", pa.array([3.0, 1.0, np.nan, 7.0]), [2, 0, NO_KEY, NO_KEY]),
        ("categories = [1, 2, 3]", pa.array(["3", "1", "x", None]), [2, 0, NO_KEY, NO_KEY]),
        ("edges = [0, 10]", pa.array([-1.0, 0.0, 10.0, None, np.nan]), [0, 1, 2, NO_KEY, NO_KEY]),
        ("edges = [0, 10]", pa.array(["-1", "3", "50", ""]), [0, 1, 2, NO_KEY]),
        ("last_digits = 2", pa.array(["0791234567", "+41 79 123 45 6", "none", None]), [67, 56, NO_KEY, NO_KEY]),
        ("last_digits = 2", pa.array([791234567, 5, None]), [67, 5, NO_KEY]),
        ("last_digits = 3", pa.array([791234567.0, np.nan]), [567, NO_KEY]),
        ("last_digits = 1", pa.array([Decimal("17"), None]), [7, NO_KEY]),
        ("day_of_year = true", days("2001-01-01", "2001-12-31", "2000-12-31", None), [0, 365, 365, NO_KEY]),
        ("day_of_year = true", days("2000-02-29", "2001-03-01", "2000-03-01"), [59, 60, 60]),
        ("day_of_year = true", pa.array(["2001-12-31", "1950-03-01T10:11:12", None]), [365, 60, NO_KEY]),
        ("day_of_year = true", pa.array([datetime.datetime(1950, 3, 1, 23, 59), None]), [60, NO_KEY]),
    ],
)
def test_a_key_is_a_number_from_zero(way, column, expected):
    assert keys(way, column) == expected


def test_a_hash_is_of_the_secret_and_of_what_the_cell_means(secret):
    expected = int.from_bytes(hmac.digest(SECRET, b"3012", "sha256"), "big") % 365
    for column in (pa.array([3012]), pa.array([3012.0]), pa.array([" 3012 "]), pa.array([Decimal("3012")])):
        assert keys(HASHED, column, secret) == [expected]
    assert keys(HASHED, pa.array(["3012", None, "3012"]).dictionary_encode(), secret) == [expected, NO_KEY, expected]
    one, other, *rest = keys(HASHED, pa.array(["Bern ", "BERN", "", None]), secret)
    assert one == other
    assert rest == [NO_KEY, NO_KEY]
    born = "1980-05-17"
    assert keys(HASHED, days(born), secret) == keys(HASHED, pa.array([born]), secret)


def test_hashes_are_spread_evenly(secret):
    found = keys(HASHED, pa.array([f"P{at}" for at in range(36_500)]), secret)
    counts = np.bincount(found, minlength=365)
    assert len(counts) == 365
    assert ((counts - 100.0) ** 2 / 100.0).sum() < 364 + 5 * (2 * 364) ** 0.5  # chi-squared, five deviations


def test_a_secret_must_be_there_be_long_and_be_the_agreed_one(tmp_path, secret):
    with pytest.raises(FileError, match="Say where its file is"):
        keys(HASHED, pa.array(["a"]))
    with pytest.raises(FileError, match="Cannot read the secret"):
        keys(HASHED, pa.array(["a"]), tmp_path / "nowhere")
    (tmp_path / "short").write_bytes(b"guess me")
    with pytest.raises(FileError, match="could be guessed"):
        keys(HASHED, pa.array(["a"]), tmp_path / "short")
    (tmp_path / "other").write_bytes(SECRET + b"!")
    with pytest.raises(ContractMismatch, match="not the secret"):
        keys(HASHED, pa.array(["a"]), tmp_path / "other")


@pytest.mark.parametrize("column", [pa.array(["2001-12-31", "soon"]), pa.array([20011231]), pa.array([True])])
def test_what_is_no_date_has_no_day_of_the_year(column):
    with pytest.raises(WrongType, match="hold no date") as raised:
        keys("day_of_year = true", column)
    assert "soon" not in str(raised.value)


def test_a_table_without_the_key_is_refused():
    contract = agree(key='[[key]]\nname = "phone"\nlast_digits = 2')
    with pytest.raises(MissingColumn, match=r"no column 'phone', the key.*peers\.bank\.columns"):
        KeyReader.of(Reader(contract, "bank", {"age": "integer"}), None)
    assert KeyReader.of(Reader(agree(), "bank", {"age": "integer"}), None) is None


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_are_written_alike_however_they_are_held(number):
    assert {canonical(number), canonical(float(number)), canonical(Decimal(number)), canonical(str(number))} == {
        str(number)
    }


@given(st.text())
def test_spaces_around_and_forms_of_unicode_make_no_difference(text):
    assert canonical(f"  {text}\t") == canonical(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert canonical(unicodedata.normalize(form, text)) == canonical(text)
