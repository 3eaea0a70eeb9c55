"""The benchmarks measure what they say, on tables small enough for a test."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from radocraft.cli._bench import app
from radocraft.parts import Part
from radocraft.research.bench import _learn as bench_learn
from radocraft.research.bench._growth import growth, growth_of
from radocraft.research.bench._linkage import against_linkage
from radocraft.research.bench._measure import measure
from radocraft.research.bench._scan import CODES, contract_of, write_table
from radocraft.rows._craft import craft


def take_room(megabytes: int) -> int:
    return int(np.ones(megabytes * 131072).sum())


def keep_room(megabytes: int) -> int:
    held = np.ones(megabytes * 131072)
    time.sleep(30)
    return len(held)


def test_memory_is_that_of_the_function_alone() -> None:
    small, large = measure(take_room, 1), measure(take_room, 300)
    assert (small.result, large.result) == (131072, 300 * 131072)
    assert 250e6 < large.peak - small.peak < 400e6


def spend(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_first_call_on_something_small_does_not_count() -> None:
    assert measure(spend, 0.0, warm=(1.0,)).cpu < 0.5 <= measure(spend, 1.0, warm=(0.0,)).cpu


def test_what_exceeds_a_cap_did_not_finish() -> None:
    late = measure(time.sleep, 60, seconds=1.0)
    assert (late.finished, late.why) == (False, "stopped after 1 s")
    greedy = measure(keep_room, 1_500, memory=2**30)
    assert (greedy.finished, greedy.why) == (False, "stopped above 1.0 GiB")


def test_growth_is_the_exponent() -> None:
    assert growth([10, 100, 1000], [5, 50 * 10**0.5, 5000]) == pytest.approx(1.5)


def test_scan_and_craft_read_the_same_table() -> None:
    options = ["craft", "--rows", "3000", "--width", "4", "--repeats", "1", "--json"]
    printed = CliRunner().invoke(app, options)
    assert printed.exit_code == 0, printed.output
    found = json.loads(printed.output)
    assert found["scan"]["finished"]
    assert found["grouped"]["result"] == found["sums"]["result"] == found["whole"]["result"][0] <= 512
    assert {"DuckDB", "DuckDB, our settings"} <= set(found["engines"])
    assert min(found["sums_ratio"], found["whole_ratio"]) > 0


def test_the_generated_table_has_the_blocks_it_promises(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", 20_000, 2, CODES[500])
    assert len(craft(tmp_path / "t.parquet", contract_of(2, CODES[500]), "bank").rows) == 512


def test_growth_is_measured_along_one_size(tmp_path: Path) -> None:
    rows = growth_of(tmp_path, "rows", (3_000, 30_000))
    assert all(cost.finished for cost in rows.costs)
    assert rows.held[1] > 5 * rows.held[0]
    assert 0 < rows.sent[1] < rows.held[1] / 10
    peers = growth_of(tmp_path, "peers", (2, 3))
    assert peers.sent[1] == pytest.approx(1.5 * peers.sent[0], rel=0.1)
    assert not list(tmp_path.glob("rows.parquet"))


def test_learning_and_reading_see_the_same_parts() -> None:
    options = ["learn", "--blocks", "500", "--width", "3", "--rows", "5000", "--repeats", "1", "--json"]
    printed = CliRunner().invoke(app, options)
    assert printed.exit_code == 0, printed.output
    found = json.loads(printed.output)
    assert (found["blocks"], found["columns"]) == (512, 6)
    assert found["reading"]["result"] == 2 * 512
    blocks, error = found["learning"]["result"]
    assert (blocks, error < 0.45) == (512, True)
    assert min(found["ratio"], found["cpu_ratio"]) > 0


def test_a_made_up_tally_could_be_of_rows() -> None:
    """Its moments, both labels together, are those of block means and of a positive scatter inside blocks."""
    contract = bench_learn.contract_of(3, 2)
    tally = bench_learn.tally_of(contract, "bank", 3, 2, 500)
    moments = tally.moments.sum(axis=0)
    inside = moments[:3, :3] - (tally.sums.T / tally.rows) @ tally.sums
    assert np.linalg.eigvalsh(inside).min() > 0
    np.testing.assert_allclose(moments[:3, 3], tally.sums.sum(axis=0))
    assert moments[-1, -1] == tally.total == bench_learn.tally_of(contract, "shop", 3, 2, 500).total


def test_a_made_up_part_is_one_that_learners_take(tmp_path: Path) -> None:
    contract = bench_learn.contract_of(3, 2)
    bench_learn.write_part(tmp_path / "part", "bank", 3, 2, 500)
    assert Part.read(tmp_path / "part").cells(contract).total == pytest.approx(500, abs=50)


def test_learning_beside_zip(tmp_path: Path) -> None:
    found = {rival.method: rival for rival in against_linkage(tmp_path, [3_000], ["radocraft", "zip"])}
    assert all(rival.cost.finished for rival in found.values())
    assert abs(found["radocraft"].error - found["zip"].error) < 0.05
    assert 0 < found["radocraft"].error < 0.3
