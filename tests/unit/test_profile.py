"""What a profile tells, and what it keeps to itself."""

from pathlib import Path

import pyarrow as pa
import pytest

from radocraft.errors import FileError
from radocraft.profile import Profile, profile

TABLE = pa.table(
    {
        "age": [20, 30, 40, 50] * 10,
        "town": ["Bern"] * 25 + ["Ulm"] * 14 + ["Rare"],
        "member": [True, False] * 20,
        "id": [f"c{at}" for at in range(40)],
        "when": pa.array([0] * 40, pa.timestamp("s")),
    }
)


def test_names_and_kinds_only() -> None:
    told = profile(TABLE)
    assert [(c.name, c.kind) for c in told.columns] == [
        ("age", "number"),
        ("town", "text"),
        ("member", "boolean"),
        ("id", "text"),
        ("when", "other"),
    ]
    assert all(c.quartiles is None and c.categories is None for c in told.columns)


def test_outline_names_no_rare_category() -> None:
    told = profile(TABLE, outline=True).by_name
    assert told["town"].categories == ("Bern", "Ulm")
    assert told["id"].categories is None
    assert told["age"].quartiles == (28.0, 35.0, 42.0)


def test_text_files_are_read_for_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,b,t,e\n1,true,x,\n2.5,false,2,\n")
    kinds = {c.name: c.kind for c in profile(path).columns}
    assert kinds == {"n": "number", "b": "boolean", "t": "text", "e": "text"}


def test_round_trip_and_what_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(profile(TABLE, outline=True).model_dump_json())
    assert Profile.load(path) == profile(TABLE, outline=True)
    path.write_text("{}")
    with pytest.raises(FileError, match="radocraft profile"):
        Profile.load(path)
