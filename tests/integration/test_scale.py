"""On one machine: bounded memory, the same bits on every run, and nothing half written when interrupted."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from sqlglot import exp

from radocraft import Contract, craft, open_source
from radocraft.errors import DataError
from radocraft.gate import Noise
from radocraft.rows.engines._base import ROWS
from radocraft.rows.engines._embedded import DuckDBSource

SHARED = 60
CONTRACT = f"""
name = "scale"
label = {{ column = "y", positive = 1, negative = 0 }}
shared = [
  {{ name = "s", edges = {list(range(1, SHARED))} }},
  {{ name = "t", edges = {list(range(1, SHARED))} }},
  {{ name = "u", edges = {list(range(1, SHARED))} }},
]

[peers.bank.features]
{chr(10).join(f'x{at} = "numeric"' for at in range(8))}
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300,000 rows in nearly as many blocks: the sums alone take more room than the limit below."""
    return write_rows(tmp_path_factory.mktemp("scale") / "rows.parquet", 0)


def write_rows(path: Path, first: int) -> Path:
    columns = ", ".join(f"hash(i * 8 + {at}) / 1e18 - 9 AS x{at}" for at in range(8))
    codes = ", ".join(f"hash(i + {at}00000000) % {SHARED} AS {name}" for at, name in enumerate("stu", start=1))
    rows = f"range({first}, {first + 300_000}) r(i)"
    duckdb.sql(f"COPY (SELECT hash(-i) % 2 AS y, {codes}, {columns} FROM {rows}) TO '{path}'")
    return path


def test_more_blocks_than_memory_go_to_disk(table: Path, tmp_path: Path) -> None:
    contract = Contract.parse(CONTRACT)
    spilling = open_source(table, memory_limit="150MB", temp_directory=tmp_path / "spill")
    little, free = (craft(source, contract, "bank", noise=Noise.seeded(0)) for source in (spilling, table))
    assert little.digest() == free.digest()
    little, free = (craft(source, contract, "bank", bounds=None) for source in (spilling, table))
    np.testing.assert_array_equal(little.codes, free.codes)
    np.testing.assert_allclose(little.sums, free.sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(little.moments, free.moments, rtol=1e-12)


def test_settings_that_make_no_sense_are_refused(table: Path) -> None:
    with pytest.raises(DataError, match="cannot work with these settings"):
        open_source(table, memory_limit="plenty")
    with duckdb.connect() as connection, pytest.raises(DataError, match="keeps its settings"):
        open_source(connection, table="t", exact=True)


def test_exact_gives_the_same_bits(table: Path) -> None:
    contract = Contract.parse(CONTRACT.replace(str(list(range(1, SHARED))), "[30]"))
    tallies = [craft(open_source(table, exact=True), contract, "bank", bounds=None) for _ in range(3)]
    for name in ("rows", "sums", "present", "moments", "origin", "unit"):
        assert len({getattr(tally, name).tobytes() for tally in tallies}) == 1, name


def test_bounded_rows_give_the_same_bits_with_many_threads_and_one(table: Path) -> None:
    contract = Contract.parse(CONTRACT.replace(str(list(range(1, SHARED))), "[30]"))
    sources = [table, table, open_source(table, exact=True)]
    assert len({craft(source, contract, "bank", noise=Noise.seeded(0)).digest() for source in sources}) == 1


def test_a_stream_may_be_interrupted(table: Path) -> None:
    source = open_source([table] * 40)
    assert isinstance(source, DuckDBSource)
    batches = source.batches(exp.select("*").from_(ROWS))
    next(batches)
    source.connection.interrupt()
    with pytest.raises(KeyboardInterrupt):
        list(batches)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of eight such tables."""
    folder = tmp_path_factory.mktemp("many")
    for at in range(8):
        write_rows(folder / f"{at}.parquet", at * 300_000)
    return folder


@pytest.mark.parametrize("wait", [0.2, 0.4, 0.8])
def test_an_interrupted_craft_leaves_nothing_behind(wait: float, many: Path, tmp_path: Path) -> None:
    (tmp_path / "contract.toml").write_text(CONTRACT)
    (tmp_path / "bank.part").write_bytes(b"as it was")
    start = "from radocraft.cli import main; print('ready', flush=True); main()"
    command = [sys.executable, "-c", start, "craft", str(many)]
    options = ["-c", "contract.toml", "-p", "bank", "-o", "bank.part", "--tally", "bank.tally", "--min-rows", "1"]
    with subprocess.Popen([*command, *options, "--temp-dir", "spill"], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert {path.name for path in tmp_path.iterdir()} - {"spill"} == {"contract.toml", "bank.part"}  # and no ledger
    assert (tmp_path / "bank.part").read_bytes() == b"as it was"
    assert not list(tmp_path.glob("spill/*"))
