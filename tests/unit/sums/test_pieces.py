"""A tally knows which rows are in it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from radocraft import Contract, Policy, Tally, craft, open_source, share
from radocraft.errors import AlreadyIn, MissingColumn
from radocraft.sums._pieces import Piece, Range

CONTRACT = Contract.parse("""
name = "days"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = [0, 1] }]
peers.bank.features = { x = { kind = "numeric", centre = 0, scale = 1 } }
""")


def day(seed: int, rows: int = 50) -> pa.Table:
    rng = np.random.default_rng(seed)
    whole = {"y": rng.integers(0, 2, rows), "s": rng.integers(0, 2, rows), "id": seed * rows + np.arange(rows)}
    return pa.table({**whole, "x": rng.normal(size=rows)})


def same(one: Tally, other: Tally) -> None:
    order = [np.lexsort([tally.labels, *tally.codes.T]) for tally in (one, other)]
    for name in ("codes", "labels", "rows", "sums", "present"):
        np.testing.assert_allclose(getattr(one, name)[order[0]], getattr(other, name)[order[1]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.moments, other.moments, rtol=1e-12, atol=1e-12)


def test_the_next_day_is_added_and_the_same_day_is_refused(tmp_path: Path) -> None:
    for at in range(3):
        pq.write_table(day(at), tmp_path / f"{at}.parquet")
    tally = craft(tmp_path / "0.parquet", CONTRACT, "bank")
    tally = craft([tmp_path / "1.parquet", tmp_path / "2.parquet"], CONTRACT, "bank", onto=tally)
    same(tally, craft(tmp_path, CONTRACT, "bank"))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "other name.parquet").write_bytes((tmp_path / "1.parquet").read_bytes())
    with pytest.raises(AlreadyIn, match=r"'other name\.parquet' are already in the tally"):
        craft(tmp_path / "copy", CONTRACT, "bank", onto=tally)
    with pytest.raises(AlreadyIn):
        tally + craft(tmp_path / "2.parquet", CONTRACT, "bank")


def test_no_row_counts_twice_towards_the_least_number(tmp_path: Path) -> None:
    """A file given twice, or beside its copy, would let half as many rows leave as the policy says."""
    pq.write_table(day(0), tmp_path / "0.parquet")
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "0.parquet").read_bytes())
    for files in ([tmp_path / "0.parquet"] * 2, tmp_path):
        with pytest.raises(AlreadyIn, match="given twice"):
            share(files, CONTRACT, "bank")
        with pytest.raises(AlreadyIn, match="given twice"):
            share(files, CONTRACT, "bank", policy=Policy.exact())
    tally = craft(day(1), CONTRACT, "bank")
    with pytest.raises(AlreadyIn, match="given twice"):
        craft([tmp_path / "0.parquet", tmp_path / "copy.parquet"], CONTRACT, "bank", onto=tally)


def test_a_saved_tally_still_knows(tmp_path: Path) -> None:
    craft(day(0), CONTRACT, "bank").save(tmp_path / "tally")
    tally = Tally.load(tmp_path / "tally", CONTRACT)
    with pytest.raises(AlreadyIn):
        craft(day(0).to_pandas(), CONTRACT, "bank", onto=tally)
    assert craft(day(1), CONTRACT, "bank", onto=tally).total == 100


@pytest.mark.parametrize("kind", ["parquet", "csv", "memory"])
def test_ranges_of_rows_add_up_and_may_not_overlap(kind: str, tmp_path: Path) -> None:
    if kind == "memory":
        data = day(0)
    elif kind == "parquet":
        pq.write_table(day(0), data := tmp_path / "all.parquet")
    else:
        day(0).to_pandas().to_csv(data := tmp_path / "all.csv", index=False)
    first = craft(open_source(data, rows=("id", 0, 20)), CONTRACT, "bank")
    rest = open_source(data, rows=("id", 20, 1000))
    same(craft(rest, CONTRACT, "bank", onto=first), craft(data, CONTRACT, "bank"))
    for overlapping in (open_source(data, rows=("id", 19, 30)), open_source(data), open_source(data, rows=("x", 5, 6))):
        with pytest.raises(AlreadyIn):
            craft(overlapping, CONTRACT, "bank", onto=first)


def test_a_range_needs_its_column() -> None:
    with pytest.raises(MissingColumn, match="no column 'day'"):
        open_source(day(0), rows=("day", 1, 2))


def test_large_files_are_told_apart_by_any_stretch(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(6 * 2**20)
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(content)
    (tmp_path / "c").write_bytes(content[:-1] + b"!")
    (tmp_path / "d").write_bytes(content[:-1])
    (tmp_path / "e").write_bytes(content[: 3 * 2**20] + bytes(2**18) + content[3 * 2**20 + 2**18 :])
    pieces = {name: Piece.of_file(tmp_path / name).identity for name in "abcde"}
    assert pieces["a"] == pieces["b"]
    assert len({*pieces.values()}) == 4


def test_tables_in_memory_are_told_apart() -> None:
    pieces = [Piece.of_table("t", table).identity for table in (day(0), day(0), day(1), day(0)[::-1], day(0)[:49])]
    assert pieces[0] == pieces[1]
    assert len({*pieces}) == 4


def test_ranges_meet_where_they_share_a_row() -> None:
    january = Piece("t", "t", Range("day", "2026-01-01", "2026-02-01"))
    february = Piece("t", "t", Range("day", "2026-02-01", "2026-03-01"))
    assert not january.meets(february)
    assert january.meets(Piece("t", "t", Range("day", "2026-01-31", "2026-03-01")))
    assert january.meets(Piece("t", "t"))
    assert not january.meets(Piece("u", "u"))
    assert Piece.from_json(january.to_json()) == january
