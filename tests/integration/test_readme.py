"""The README's commands and code run as they stand, and its figures are those the demo prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from radocraft import __version__
from radocraft.demo._demo import demo

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    (commands,) = [block for block in blocks("sh") if "radocraft example" in block]
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", commands], cwd=folder, env=here, check=True, capture_output=True)
    return folder / "trial"


def test_four_commands_give_scores(trial: Path) -> None:
    assert len((trial / "scores.csv").read_text().splitlines()) == 1001


def test_what_leaves_is_shown_as_it_is_printed(trial: Path) -> None:
    (shown,) = re.findall(r"^```\n(peer .*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    command = [sys.executable, "-m", "radocraft", "inspect", "bank.part.parquet", "--cells", "3"]
    here = {**os.environ, "COLUMNS": "80"}
    printed = subprocess.run(command, cwd=trial, env=here, check=True, capture_output=True, text=True).stdout
    ours, theirs = (
        [line.rstrip() for line in text.strip().splitlines() if not line.startswith(("made ", "file "))]
        for text in (shown, printed)
    )
    assert ours == theirs


def test_library_in_a_dozen_lines(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(trial)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["scores"].view == ("bank", "insurer")  # type: ignore[attr-defined]


def test_figures_are_those_the_demo_prints() -> None:
    for world in demo():
        assert world.title in README
        for result in world.results.values():
            assert re.search(rf"{result.error:.1%} +│ {result.auc:.3f}", README), (world.name, result)
        assert world.results["matching"].error < world.results["best_peer"].error


def test_changelog_knows_the_version() -> None:
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    assert "[Unreleased]" in changelog or f"[{__version__}]" in changelog
