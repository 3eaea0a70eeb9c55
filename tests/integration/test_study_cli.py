"""radocraft study from end to end, as a user types it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import duckdb
import pytest
from tests.docs.blocks import DOCS, blocks
from tests.unit.research.study.data import needs_data
from typer.testing import CliRunner

from radocraft.cli._study import app
from radocraft.errors import StudyError
from radocraft.research.study._presets import PRESETS

run = CliRunner().invoke


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "smoke.parquet"
    done = run(app, ["run", "--preset", "smoke", "--output", str(path), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"preset": "smoke", "results": str(path), "cells_run": 8, "cells_there": 0}
    return path


@needs_data
def test_summary(results: Path) -> None:
    lines = json.loads(run(app, ["summary", str(results), "--json"]).stdout)
    vertical = {(line["algorithm"], line["caution"]): line for line in lines if line["group"]["setting"] == "vertical"}
    assert vertical["oracle", None]["oracle_gap"] == 0.0
    assert vertical["best peer", None]["q"] is None
    assert vertical["matching", 0.25]["error"] < vertical["best peer", None]["error"]
    shown = run(app, ["summary", str(results), "--by-domain"])
    assert shown.exit_code == 0
    assert "one-peer, p_s = 0.2; standard scaling" in shown.stdout
    assert "| wine" in shown.stdout
    assert "matching 0.25" in run(app, ["summary", str(results)]).stdout


@needs_data
def test_compare(results: Path) -> None:
    found = json.loads(run(app, ["compare", str(results), "--json"]).stdout)
    assert any(verdict["holds"] is not None for verdict in found["claims"])
    assert {line["domain"] for line in found["best_peers"]} == {"wine", "ionosphere"}
    shown = run(app, ["compare", str(results)]).stdout
    assert "holds" in shown
    assert "commoner label" in shown


@needs_data
def test_figures(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install radocraft[study]")
    written = json.loads(run(app, ["figures", str(results), "--output", str(tmp_path), "--json"]).stdout)
    assert str(tmp_path / "overview.png") in written
    assert all(Path(path).stat().st_size > 10_000 for path in written)


def commands_of_the_page() -> list[list[str]]:
    """Every `radocraft study` command of docs/study.md and docs/evidence/relaxed.md, without the words before it."""
    found = [block for page in ("study.md", "evidence/relaxed.md") for block in blocks(DOCS / page)]
    lines = [line for block in found if block.language == "console" for line in block.text.split("\n")]
    words = [shlex.split(part.removeprefix("$ "), comments=True) for line in lines for part in line.split(" && ")]
    return [found[2:] for found in words if found[:2] == ["radocraft", "study"]]


@needs_data
def test_every_command_of_the_page_runs_on_few_cells(results: Path, tmp_path: Path) -> None:
    """With the preset ``smoke``, whose cells are there already, in place of the one that takes long."""
    pytest.importorskip("matplotlib", reason="pip install radocraft[study]")
    found = commands_of_the_page()
    assert {words[0] for words in found} == {"run", "summary", "compare", "figures", "fedsim"}
    for words in found:
        if words[0] == "fedsim":  # minutes; see test_fedsim.py
            continue
        if "--preset" in words:
            at = words.index("--preset") + 1
            assert words[at] in PRESETS
            words[at] = "smoke"
        here = [str(results) if word.endswith(".parquet") else word for word in words]
        here = [str(tmp_path / word) if word == "figures" and at else word for at, word in enumerate(here)]
        done = run(app, here)
        assert done.exit_code == 0, (words, done.output)


@needs_data
def test_the_question_of_the_page_can_be_asked(results: Path) -> None:
    (question,) = [block.text for block in blocks(DOCS / "study.md") if block.language == "sql"]
    answer = duckdb.sql(question.replace("full.parquet", str(results))).fetchall()
    assert {row[0] for row in answer} == {"wine", "ionosphere"}


def test_errors_are_ours(tmp_path: Path) -> None:
    assert isinstance(run(app, ["run", "--preset", "everything"]).exception, StudyError)
    assert isinstance(run(app, ["run", "--domain", "vine", "-o", str(tmp_path / "r")]).exception, StudyError)
    assert isinstance(run(app, ["summary", str(tmp_path / "none.parquet")]).exception, StudyError)


@pytest.mark.parametrize("command", ["run", "summary", "figures", "compare", "fedsim"])
def test_help_shows_an_example(command: str) -> None:
    shown = run(app, [command, "--help"])
    assert shown.exit_code == 0
    assert f"radocraft study {command}" in shown.stdout
