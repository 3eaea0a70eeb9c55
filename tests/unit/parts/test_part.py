"""The part file: what it holds, how it is read by others, and how a changed one is refused."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st
from tests.property.worlds import World, agree, worlds
from tests.unit.parts.releases import LABELS, agreed, headed, make

from radocraft.errors import ContractMismatch, FileError, PolicyRefusal, Tampered
from radocraft.gate._policy import Policy
from radocraft.gate._release import Release, release
from radocraft.ledger import Leaving, Ledger
from radocraft.parts._part import Part

KEY = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture
def world() -> World:
    rng = np.random.default_rng(0)
    count = 60
    values = rng.normal(size=(count, 2))
    values[:10, 1] = np.nan
    labels = np.where(np.arange(count) % 2, 1, -1)
    codes = np.column_stack([np.arange(count) // 30, rng.integers(0, 3, count)])
    return World(agree([2], [2, 3]), codes, labels, (values,), (np.arange(count),))


@pytest.fixture
def part(world) -> Part:
    return world.parts(8)[0]


def there_and_back(released: Release) -> None:
    """What is read is what was released: its numbers to the bit, moments but for rounding."""
    sink = pa.BufferOutputStream()
    headed(released).stream(sink)
    read = Part.read(pa.BufferReader(sink.getvalue()))
    read.check()
    cells = read.cells(released.contract)
    assert (cells.peer, cells.columns, cells.levels) == (
        released.cells.peer,
        released.cells.columns,
        released.cells.levels,
    )
    assert cells.constants == released.cells.constants
    for name in ("centre", "scale", "codes", "labels", "rows", "sums", "present"):
        np.testing.assert_array_equal(getattr(cells, name), getattr(released.cells, name))
    np.testing.assert_allclose(cells.shared.toarray(), released.cells.shared.toarray(), atol=1e-12)
    np.testing.assert_allclose(cells.by_label, released.cells.by_label, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(cells.by_label, cells.by_label.transpose(0, 2, 1))


@given(world=worlds("G", missing=True, rows=(6, 60)), min_rows=st.integers(1, 5))
def test_exact_sums_come_back(world, min_rows):
    there_and_back(release(world.tally(0), world.contract, Policy.exact(min_rows)))


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("min_rows", [1, 10])
def test_a_release_comes_back_whatever_its_label(label, noise, min_rows):
    made = make(agreed(LABELS[label]), noise=noise, min_rows=min_rows)
    there_and_back(made)
    if not noise:
        np.testing.assert_allclose(made.cells.by_label, made.true_moments(), rtol=1e-12, atol=1e-9)


def test_a_part_says_what_it_is(part, world, tmp_path):
    part.write(tmp_path / "p.parquet")
    assert (tmp_path / "p.parquet").stat().st_size == part.nbytes
    again = Part.read(tmp_path / "p.parquet")
    assert again.metadata == part.metadata
    told = again.metadata
    assert (again.peer, told["peer"], told["rows"], told["format"]) == ("p0", "p0", 60, 2)
    assert told["fingerprint"] == world.contract.fingerprint
    assert told["policy"]["min_rows"] == 8
    assert told["policy"]["rolled_up"] > 0
    assert "exact sums leave" in told["policy"]["guarantee"]
    assert (told["ledger"], set(told["levels"].values())) == (None, {0.0})


def test_a_part_with_noise_says_how_much_and_what_it_is_worth():
    made = make()
    told = headed(made, "1" * 64).metadata
    assert told["ledger"] == "1" * 64
    assert told["levels"]["sums"] == made.cells.levels.sums > 1
    policy = told["policy"]
    assert (policy["mode"], policy["noise"], policy["rho"], policy["delta"]) == ("noise", 0.5, 0.7, 1e-6)
    assert policy["epsilon"] == made.epsilon
    assert policy["guarantee"].startswith("every number carries noise of at least 0.5 times its sampling error, that")
    assert f"epsilon {made.epsilon:.3g} at delta 1e-06 per row" in policy["guarantee"]


def test_any_parquet_reader_opens_it(part, tmp_path):
    path = tmp_path / "p.parquet"
    part.write(path)
    rows = [duckdb.read_parquet(str(path)).df(), pd.read_parquet(path), pl.read_parquet(path).to_pandas()]
    for frame in rows:
        assert frame["rows"].sum() == 60
        assert frame["rows"].min() >= 8
        assert {*frame["shared:s1"]} >= {"any"}
        assert {*frame["label"]} == {"1", "-1"}
        assert {"sum:x0_0", "sum:x0_1", "present:x0_1", "shared-sum:s1=missing"} <= {*frame.columns}
        assert "present:x0_0" not in frame.columns


def test_a_path_that_looks_like_a_partition_is_only_a_path(part, tmp_path):
    (tmp_path / "peer=bank").mkdir()
    part.write(tmp_path / "peer=bank" / "p.parquet")
    assert Part.read(tmp_path / "peer=bank" / "p.parquet").table.to_pydict() == part.table.to_pydict()


def test_a_part_of_another_contract_is_refused(part):
    with pytest.raises(ContractMismatch, match="made under the contract 'world'") as raised:
        part.cells(agree([2], [2, 4]))
    assert raised.value.exit_code == 3


def rewritten(path, change_table=lambda table: table, change_metadata=lambda metadata: None):
    """The same file with something in it changed, and the old hash."""
    with pq.ParquetFile(path) as file:
        table, metadata = file.read(), json.loads(file.metadata.metadata[b"radocraft"])
    change_metadata(metadata)
    table = change_table(table)
    words = [name for name in table.column_names if name == "label" or name.startswith("shared:")]
    lean = {"compression": "zstd", "use_dictionary": words, "store_schema": False}
    with pq.ParquetWriter(path, table.schema, **lean) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"radocraft": json.dumps(metadata)})


def with_column(name: str, change):
    def changed(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        at = next(at for at, value in enumerate(values) if value is not None)
        values[at] = change(values[at])
        return table.set_column(table.column_names.index(name), name, pa.array(values))

    return changed


@pytest.mark.parametrize(
    "change",
    [
        with_column("rows", lambda rows: rows + 1),
        with_column("sum:x0_0", lambda value: np.nextafter(value, 9)),
        with_column("present:x0_1", lambda count: count - 1),
        with_column("shared-sum:s1=0", lambda value: value + 1),
        with_column("shared-sum:s1=missing", lambda zero: None if zero == 0 else zero),
        with_column("label", lambda label: "1" if label == "-1" else "-1"),
        with_column("shared:s1", lambda code: "0" if code != "0" else "1"),
        lambda table: table.slice(1),
        lambda table: pa.concat_tables([table.slice(1), table.slice(0, 1)]),
        lambda table: table.drop_columns(["present:x0_1"]),
        lambda table: table.append_column("sum:more", pa.array([1.0] * table.num_rows)),
        lambda table: table.rename_columns([name.replace("x0_0", "x0_9") for name in table.column_names]),
    ],
)
def test_an_edited_table_is_refused(part, tmp_path, change):
    path = tmp_path / "p.parquet"
    part.write(path)
    rewritten(path)
    Part.read(path)
    rewritten(path, change)
    with pytest.raises(Tampered, match="does not match its hash") as raised:
        Part.read(path)
    assert raised.value.exit_code == 1


@pytest.mark.parametrize(
    "key", ["peer", "fingerprint", "rows", "moments", "centre", "policy", "created", "hash", "new"]
)
def test_edited_metadata_is_refused(part, tmp_path, key):
    path = tmp_path / "p.parquet"
    part.write(path)
    rewritten(path, change_metadata=lambda metadata: metadata.update({key: "something else"}))
    with pytest.raises(Tampered):
        Part.read(path)


def test_a_part_of_another_format_is_refused(part, tmp_path):
    path = tmp_path / "p.parquet"
    part.write(path)
    rewritten(path, change_metadata=lambda metadata: metadata.update(format=99))
    with pytest.raises(FileError, match="has format 99"):
        Part.read(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_part_cut_short_is_refused(part, tmp_path, share):
    path = tmp_path / "p.parquet"
    part.write(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileError, match="not a readable part"):
        Part.read(path)


def test_what_is_no_part_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "plain.parquet")
    (tmp_path / "text.parquet").write_text("hello")
    for name in ("plain", "text", "nowhere"):
        said = "No such file or directory" if name == "nowhere" else "not a readable part"
        with pytest.raises(FileError, match=said):
            Part.read(tmp_path / f"{name}.parquet")


FULL = """
import resource, sys
from radocraft.errors import FileError
from radocraft.parts import Part
part = Part.read(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
try:
    part.write(sys.argv[2])
except FileError as error:
    print(error)
    raise SystemExit(7)
"""


def test_a_full_disk_leaves_the_old_part(part, tmp_path):
    part.write(tmp_path / "new.parquet")
    shutil.copy(tmp_path / "new.parquet", tmp_path / "old.parquet")
    before = (tmp_path / "old.parquet").read_bytes()
    command = [sys.executable, "-c", FULL, str(tmp_path / "new.parquet"), str(tmp_path / "old.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (7, "")
    assert "Nothing was changed" in done.stdout
    assert (tmp_path / "old.parquet").read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new.parquet", "old.parquet"]


@pytest.mark.parametrize(
    "policy",
    [
        Policy(8),
        Policy(8, ledger="p0.ledger"),
        Policy(8, review=True),
        Policy.exact(8, ledger="p0.ledger"),
        Policy.exact(8, review=True),
    ],
    ids=lambda policy: f"{policy.mode}, review {policy.review}, ledger {policy.ledger}",
)
def test_what_no_ledger_knows_cannot_be_written(policy, tmp_path):
    part = Part.of(replace(make(noise=0.5 if policy.noisy else 0.0), policy=policy))
    assert part.nbytes > 1000
    for write in (part.write, replace(part, metadata={**part.metadata}).write, part.signed(KEY).write):
        with pytest.raises(PolicyRefusal, match=r"is in no ledger.*share"):
            write(tmp_path / "p.parquet")
    with pytest.raises(PolicyRefusal, match="stay in memory"):
        part.stream(pa.BufferOutputStream())
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("exact", [False, True])
def test_a_part_leaves_when_its_ledger_says_so_and_not_before(exact, tmp_path):
    """Naming a ledger opens nothing: its line counts. A proposal is none, nor is one of another file."""
    ledger, made = Ledger(tmp_path / "ledger"), make(noise=0.0 if exact else 0.5)
    policy = Policy.exact(ledger=str(ledger.path)) if exact else Policy(ledger=str(ledger.path))
    part = Part.of(replace(made, policy=policy), ledger)
    words = {"what": "part", "table": "t", "peer": "bank", "contract": "c", "fingerprint": "f" * 64, "rows": 1}
    words |= {"cells": 1, "policy": "noise", "rho": 0.5, "file": part.metadata["hash"]}
    for line in ({}, {"kind": "release", "file": "a" * 64}, {"kind": "proposal", "proposal": "b" * 64}):
        if line:
            ledger.append(Leaving(**{**words, **line}))
        for write in (part.write, part.signed(KEY).write):
            with pytest.raises(PolicyRefusal, match="is in no ledger"):
                write(tmp_path / "part")
    ledger.append(Leaving(**words, kind="release"))
    part.write(tmp_path / "part")
    assert Part.read(tmp_path / "part").metadata == part.metadata


def test_what_is_put_together_by_hand_has_no_ledger_and_cannot_be_written(tmp_path):
    part = Part.of(make())
    with pytest.raises(PolicyRefusal, match="is in no ledger"):
        Part(part.table, part.metadata).write(tmp_path / "part")
