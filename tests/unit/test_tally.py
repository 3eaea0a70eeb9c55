"""The tally: adding, moving its origin, keeping it in a file."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.property.worlds import agree, worlds

from radocraft.errors import ContractMismatch, FileError
from radocraft.rows import craft_rows
from radocraft.rows._moments import second_moments
from radocraft.sums._tally import Tally

VALUES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.just(np.nan) | st.floats(-100, 100),
)


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


def moments_of(values, usual):
    """Second moments of (values, present, usual)."""
    present = ~np.isnan(values)
    lines = np.hstack([np.where(present, values, 0.0), present, usual])
    return lines.T @ lines


@given(VALUES)
def test_second_moments_are_those_of_values_and_presence(values):
    present = ~np.isnan(values)
    stacked = np.hstack([np.where(present, values, 0.0), present.astype(float)])
    np.testing.assert_allclose(second_moments(values), stacked.T @ stacked, rtol=1e-12, atol=1e-9)


def test_rows_in_memory(tally):
    raw = tally.rebased(np.zeros(2), np.ones(2))
    np.testing.assert_array_equal(raw.codes, [[0], [1]])
    np.testing.assert_array_equal(raw.labels, [1, -1])
    np.testing.assert_array_equal(raw.rows, [2, 1])
    np.testing.assert_allclose(raw.sums, [[6.0, 9.0], [3.0, 0.0]], atol=1e-12)
    np.testing.assert_array_equal(raw.present, [[2, 2], [1, 0]])
    np.testing.assert_allclose(raw.moments[:2, :2], [[35.0, 37.0], [37.0, 53.0]], rtol=1e-12)
    np.testing.assert_allclose(raw.moments[:2, 2:4], [[9.0, 6.0], [9.0, 9.0]], rtol=1e-12)
    assert tally.total == 3


@given(world=worlds(missing=True), origin=st.floats(-5, 5), unit=st.floats(0.1, 10))
def test_moving_the_origin_is_the_tally_of_moved_values(world, origin, unit):
    tally = world.tally(0)
    width = len(tally.columns)
    moved = tally.rebased(np.full(width, origin), np.full(width, unit))
    raw = world.values[0][world.held[0]]
    values = (raw - origin) / unit
    size = np.nanmax(np.abs(values), initial=1.0)
    expected = moments_of(values, (raw == tally.usual)[:, ~np.isnan(tally.usual)])
    np.testing.assert_allclose(moved.moments, expected, rtol=1e-10, atol=1e-11 * size**2 * len(values))
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
    second = (other + one).rebased(one.origin, one.unit).counted_from(first.usual)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_array_equal(first.present, second.present)
    np.testing.assert_allclose(first.sums, second.sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first.moments, second.moments, rtol=1e-9, atol=1e-8)


def sparse_rows(seed, rows):
    """Four columns: mostly 0, of two values, constant but for the last rows, of three values; some missing."""
    rng = np.random.default_rng(seed)
    values = np.column_stack(
        [
            np.where(rng.random(rows) < 0.3, rng.normal(size=rows), 0.0),
            rng.choice([0.1, 0.3], rows),
            np.where(np.arange(rows) < 0.8 * rows, 0.7, rng.normal(size=rows)),
            rng.choice([-1.0, 0.2, 4.0], rows, p=[0.5, 0.4, 0.1]),
        ]
    )
    return np.where(rng.random(values.shape) < 0.1, np.nan, values)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(20, 60), share=st.floats(0.1, 0.6))
def test_pieces_know_in_how_many_rows_two_columns_are_both_other_than_usual(seed, rows, share):
    """Also where another value is usual in a piece, or nothing else occurs there."""
    values, cut = sparse_rows(seed, rows), int(share * rows)
    contract = agree([4], [2])
    pieces = [
        craft_rows(
            contract,
            "p0",
            ("x0_0", "x0_1", "x0_2", "x0_3"),
            codes=np.zeros((len(some), 1), dtype=np.int64),
            labels=np.ones(len(some), dtype=np.int64),
            values=some,
            bounds=None,
        )
        for some in (values[:cut], values[cut:])
    ]
    for one, other in (pieces, pieces[::-1]):
        both = (one + other).rebased(np.zeros(4), np.ones(4))
        counted = ~np.isnan(both.usual)
        assert not np.isnan(both.usual[1]), "of two values one is usual, whichever"
        expected = moments_of(values, (values == both.usual)[:, counted])
        np.testing.assert_allclose(both.moments, expected, atol=1e-9)
        others = (~np.isnan(values) & (values != both.usual)).sum(axis=0)
        np.testing.assert_array_equal(both.others.sum(axis=0)[counted], others[counted])
        np.testing.assert_array_equal(both.next_rows, (values == both.next).sum(axis=0))


def test_a_tally_comes_back_from_its_file_to_the_bit(tally, contract, tmp_path):
    tally.save(tmp_path / "t.tally")
    again = Tally.load(tmp_path / "t.tally", contract)
    assert (again.fingerprint, again.peer, again.columns) == (tally.fingerprint, tally.peer, tally.columns)
    arrays = ("sums", "present", "others", "moments", "origin", "unit", "usual", "next", "next_rows")
    for name in ("codes", "labels", "rows", *arrays):
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
from radocraft.tally import Tally
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
