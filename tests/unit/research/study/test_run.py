from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.unit.research.study.data import needs_data

from radocraft.errors import FileError, StudyError
from radocraft.research.study._cell import Cell
from radocraft.research.study._presets import PRESETS, preset_named
from radocraft.research.study._results import SCHEMA, journal_of, read_results
from radocraft.research.study._run import run_study

SMOKE = PRESETS["smoke"].cells
RUN = """
import sys
from radocraft.research.study._presets import PRESETS
from radocraft.research.study._run import run_study
run_study(PRESETS["smoke"].cells, sys.argv[1])
"""


def comparable(records: list[dict]) -> list[str]:
    return sorted(json.dumps({**record, "seconds": 0}, sort_keys=True) for record in records)


@needs_data
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "killed.parquet"
    process = subprocess.Popen([sys.executable, "-c", RUN, str(path)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    journal = journal_of(path)
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = journal.read_bytes().count(b"\n")
    assert not path.exists()
    with journal.open("a") as file:
        file.write('[{"domain": "wi')
    assert len({(r["domain"], r["setting"]) for r in read_results(path)}) == done
    ran, there = run_study(SMOKE, path)
    assert (ran, there) == (len(SMOKE) - done, done)
    assert not journal.exists()
    assert run_study(SMOKE, tmp_path / "whole.parquet") == (len(SMOKE), 0)
    assert comparable(read_results(path)) == comparable(read_results(tmp_path / "whole.parquet"))


def test_a_killed_process_loses_no_finished_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies_at_the_third(cell: Cell) -> tuple[Cell, list[dict]]:
        if cell.seed == 2:
            time.sleep(1.0)  # the other process is done with the first two by now
            os.kill(os.getpid(), signal.SIGKILL)
        return cell, [{**asdict(cell), "algorithm": "oracle", "error": 0.1}]

    monkeypatch.setattr("radocraft.research.study._run._evaluate", dies_at_the_third)
    monkeypatch.setattr("radocraft.research.study._run._spread", list)
    cells = [replace(SMOKE[0], seed=seed) for seed in range(3)]
    path = tmp_path / "r.parquet"
    with pytest.raises(StudyError, match=r"are kept: run the same command again"):
        run_study(cells, path, jobs=2)
    assert {record["seed"] for record in read_results(path)} == {0, 1}


@needs_data
def test_two_processes_give_the_same_results_as_one(tmp_path: Path) -> None:
    cells = SMOKE[:2]
    seen: list[tuple[int, int]] = []
    run_study(cells, tmp_path / "one.parquet", progress=lambda done, total: seen.append((done, total)))
    run_study(cells, tmp_path / "two.parquet", jobs=2)
    assert comparable(read_results(tmp_path / "one.parquet")) == comparable(read_results(tmp_path / "two.parquet"))
    assert seen == [(0, 2), (1, 2), (2, 2)]


@needs_data
def test_results_are_one_parquet_file_with_every_setting_as_a_column(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    run_study(SMOKE[:1], path)
    table = pq.read_table(path)
    assert table.schema.names == SCHEMA.names
    assert {"domain", "binarisation", "scaling", "intercept", "setting", "share", "min_rows"} <= {*table.schema.names}
    assert [file.name for file in tmp_path.iterdir()] == ["r.parquet"]


@needs_data
def test_results_of_before_there_was_a_setting_are_read_at_its_default(tmp_path: Path) -> None:
    path = tmp_path / "study.parquet"
    run_study(SMOKE[:1], path)
    older = pq.read_table(path).drop_columns(["corrupted", "corruption"])
    pq.write_table(older, path)
    assert {(record["corrupted"], record["corruption"]) for record in read_results(path)} == {("nothing", 0.0)}
    assert run_study(SMOKE[:1], path) == (0, 1)


def test_results_that_are_not_there_or_not_ours(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="study run"):
        read_results(tmp_path / "none.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileError):
        read_results(tmp_path / "broken.parquet")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Choose another place"):
        run_study([], tmp_path / "no" / "such" / "folder.parquet")


def test_presets_hold_each_cell_once_and_within_the_papers_ranges() -> None:
    for preset in PRESETS.values():
        assert len({*preset.cells}) == len(preset.cells) > 0
    assert len(PRESETS["grid44"].cells) == 11 * 4 * 2 * 2
    with pytest.raises(StudyError, match="smoke, quick"):
        preset_named("everything")


@needs_data
def test_cells_of_changed_code_run_again(tmp_path: Path) -> None:
    path, cells = tmp_path / "again.parquet", [replace(SMOKE[0], algorithms=name) for name in ("peers", "paper")]
    assert run_study(cells, path) == (2, 0)
    before = comparable(read_results(path))
    assert run_study(cells, path, again="paper") == (1, 1)
    assert comparable(read_results(path)) == before
