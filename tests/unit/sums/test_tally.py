"""The tally: adding, moving its origin, keeping it in a file."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.worlds import agree, worlds

from radocraft.errors import ContractMismatch, FileError
from radocraft.rows import craft_rows
from radocraft.sums._tally import Tally


@pytest.fixture
def contract():
    return agree([2, 1], [2])


@pytest.fixture
def tally(contract):
    return craft_rows(
        contract,
        "p0",
        ("x0_0", "x0_1"),
        codes=np.array([[0], [1], [0]]),
        labels=np.array([1, -1, 1]),
        values=np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 7.0]]),
        bounds=None,
    )


def moments_of(values):
    """Second moments of (values, present)."""
    present = ~np.isnan(values)
    lines = np.hstack([np.where(present, values, 0.0), present])
    return lines.T @ lines


def test_rows_in_memory(tally):
    raw = tally.rebased(np.zeros(2), np.ones(2))
    np.testing.assert_array_equal(raw.codes, [[0], [1]])
    np.testing.assert_array_equal(raw.labels, [1, -1])
    np.testing.assert_array_equal(raw.rows, [2, 1])
    np.testing.assert_allclose(raw.sums, [[6.0, 9.0], [3.0, 0.0]], atol=1e-12)
    np.testing.assert_array_equal(raw.present, [[2, 2], [1, 0]])
    negative, positive = raw.moments
    np.testing.assert_allclose(
        negative, np.diag([9.0, 0.0, 1.0, 0.0]) + np.diag([3.0, 0.0], 2) + np.diag([3.0, 0.0], -2)
    )
    np.testing.assert_allclose(positive[:2, :2], [[26.0, 37.0], [37.0, 53.0]], rtol=1e-12)
    np.testing.assert_allclose(positive[:2, 2:4], [[6.0, 6.0], [9.0, 9.0]], rtol=1e-12)
    assert tally.total == 3


@given(world=worlds(missing=True), origin=st.floats(-5, 5), unit=st.floats(0.1, 10))
def test_moving_the_origin_is_the_tally_of_moved_values(world, origin, unit):
    tally = world.tally(0)
    width = len(tally.columns)
    moved = tally.rebased(np.full(width, origin), np.full(width, unit))
    raw = world.values[0][world.held[0]]
    values = (raw - origin) / unit
    size = np.nanmax(np.abs(values), initial=1.0)
    labels = world.labels[world.held[0]]
    for label, moments in zip((-1, 1), moved.moments, strict=True):
        expected = moments_of(values[labels == label])
        np.testing.assert_allclose(moments, expected, rtol=1e-10, atol=1e-11 * size**2 * len(values))
    back = moved.rebased(tally.origin, tally.unit)
    np.testing.assert_allclose(back.sums, tally.sums, rtol=1e-10, atol=1e-11 * size * unit * len(values))


def test_tallies_of_two_contracts_or_two_peers_do_not_add(tally):
    other = craft_rows(
        agree([2, 1], [3]),
        "p0",
        tally.columns,
        codes=np.array([[0]]),
        labels=np.array([1]),
        values=np.ones((1, 2)),
        bounds=None,
    )
    with pytest.raises(ContractMismatch, match="different contracts") as raised:
        tally + other
    assert raised.value.exit_code == 3
    with pytest.raises(ContractMismatch, match="two peers, 'p0' and 'p1'"):
        tally + Tally(**{**tally.__dict__, "peer": "p1"})


@given(world=worlds("G", missing=True))
def test_adding_does_not_depend_on_the_order(world):
    rows = world.held[0]
    one, other = world.tally(0, rows[:2]), world.tally(0, rows[2:])
    first = one + other
    second = (other + one).rebased(one.origin, one.unit)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_array_equal(first.present, second.present)
    np.testing.assert_allclose(first.sums, second.sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first.moments, second.moments, rtol=1e-9, atol=1e-8)


def test_a_tally_comes_back_from_its_file_to_the_bit(tally, contract, tmp_path):
    tally.save(tmp_path / "t.tally")
    again = Tally.load(tmp_path / "t.tally", contract)
    assert (again.fingerprint, again.peer, again.columns) == (tally.fingerprint, tally.peer, tally.columns)
    for name in ("codes", "labels", "rows", "sums", "present", "moments", "origin", "unit"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tally, name))
        assert getattr(again, name).dtype == getattr(tally, name).dtype


def test_a_tally_of_another_contract_is_refused(tally, tmp_path):
    tally.save(tmp_path / "t.tally")
    with pytest.raises(ContractMismatch, match="another contract") as raised:
        Tally.load(tmp_path / "t.tally", agree([2, 1], [3]))
    assert raised.value.exit_code == 3


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    """Every byte of the middle turned over."""
    middle = len(content) // 2
    return content[:middle] + bytes(byte ^ 255 for byte in content[middle : middle + 40]) + content[middle + 40 :]


@pytest.mark.parametrize("damage", [cut, flipped, lambda _: b"", lambda _: b"hello", lambda _: b"\x93NUMPY"])
def test_a_damaged_tally_is_refused(tally, contract, tmp_path, damage):
    path = tmp_path / "t.tally"
    tally.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileError, match="not a readable tally"):
        Tally.load(path, contract)
    with pytest.raises(FileError, match=r"Cannot read the tally '.*nowhere': No such file"):
        Tally.load(tmp_path / "nowhere", contract)


FULL = """
import resource, sys
import numpy as np
from radocraft.errors import FileError
from radocraft.rows import craft_rows
from tests.property.worlds import agree
contract = agree([60], [1])
rng = np.random.default_rng(0)
tally = craft_rows(contract, "p0", tuple(sorted(contract.peers["p0"].features)),
                      codes=np.zeros((4, 1), dtype=np.int64), labels=np.array([1, -1, 1, -1]),
                      values=rng.normal(size=(4, 60)), bounds=None)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    tally.save(sys.argv[1])
except FileError as error:
    print(error)
    raise SystemExit(7)
"""


def test_a_full_disk_leaves_the_old_tally(tally, contract, tmp_path):
    tally.save(tmp_path / "t.tally")
    command = [sys.executable, "-c", FULL, str(tmp_path / "t.tally")]
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stderr) == (7, "")
    assert "Nothing was changed" in done.stdout
    assert Tally.load(tmp_path / "t.tally", contract).total == 3
    assert os.listdir(tmp_path) == ["t.tally"]
