"""What a profile tells, and what it keeps to itself."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from radocraft import Policy
from radocraft.contract._outline import Profile
from radocraft.errors import FileError
from radocraft.gate._noise import Noise
from radocraft.rows._profile import profile

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
        ("when", "date"),
    ]
    assert all(c.quartiles is None and c.categories is None for c in told.columns)


def test_outline_of_a_public_table() -> None:
    told = profile(TABLE, outline=True, policy=Policy.exact(10))
    assert told.by_name["town"].categories == ("Bern", "Ulm")
    assert told.by_name["id"].categories is None
    assert told.by_name["age"].quartiles == (28.0, 35.0, 43.0)
    assert told.guarantee is not None
    assert told.guarantee.startswith("none: exact")


def test_outline_is_read_off_noisy_counts() -> None:
    rng = np.random.default_rng(0)
    rows = 20_000
    table = pa.table(
        {
            "income": rng.lognormal(10.0, 0.5, rows),
            "none": pa.array([None] * rows, pa.float64()),
            "town": rng.choice(["Bern", "Ulm", "Rare"], rows, p=[0.5, 0.499, 0.001]),
            "id": [f"c{at}" for at in range(rows)],
        }
    )
    told = profile(table, outline=True, noise=Noise.seeded("outline"))
    assert told.guarantee is not None
    assert told.guarantee.startswith("read off noisy counts: epsilon")
    assert told.by_name["town"].categories == ("Bern", "Ulm")
    assert told.by_name["id"].categories is None
    quartiles = np.quantile(table["income"].to_numpy(), [0.25, 0.5, 0.75])
    np.testing.assert_allclose(told.by_name["income"].quartiles, quartiles, rtol=0.06)


def test_outline_of_persons_costs_as_much_however_many_rows_they_have() -> None:
    table = pa.concat_tables([TABLE.append_column("who", pa.array(range(40))) for _ in range(30)])
    told, single = (
        profile(rows, outline=True, policy=Policy(unit="person", person="who"), noise=Noise.seeded("who"))
        for rows in (table, table.slice(0, 40))
    )
    assert told == single
    assert "per person" in str(told.guarantee)


def test_text_files_are_read_for_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,b,t,e\n1,true,x,\n2.5,false,2,\n")
    kinds = {c.name: c.kind for c in profile(path).columns}
    assert kinds == {"n": "number", "b": "boolean", "t": "text", "e": "text"}


def test_round_trip_and_what_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    told = profile(TABLE, outline=True)
    path.write_text(told.model_dump_json())
    assert Profile.load(path) == told
    path.write_text("{}")
    with pytest.raises(FileError, match="radocraft profile"):
        Profile.load(path)
