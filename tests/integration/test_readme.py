"""The README's commands and code run as they stand, and its figures are those the demo prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from radocraft import __version__
from radocraft.demo import demo

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
    """Word by word, but for numbers: those are noisy, and which cell is the smallest hangs on it."""
    (shown,) = re.findall(r"^```\n(peer .*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    command = [sys.executable, "-m", "radocraft", "inspect", "bank.part.parquet", "--cells", "3"]
    here = {**os.environ, "COLUMNS": "80"}
    printed = subprocess.run(command, cwd=trial, env=here, check=True, capture_output=True, text=True).stdout
    ours, theirs = ([*map(without_numbers, unwrapped(text))] for text in (shown, printed))
    assert ours == theirs
    stated, true = (float(*re.findall(r"epsilon\s+([\d.]+)", text)) for text in (shown, printed))
    assert stated == pytest.approx(true, abs=EPSILON)


EPSILON = 0.14
"""Four standard deviations of the difference of two releases: which blocks stay apart hangs on noise (of 25)."""


def unwrapped(text: str) -> list[str]:
    """Lines as they were before they were broken to fit: where, hangs on how many digits a number has."""
    return re.sub(r"\n {2,}", " ", text.strip()).splitlines()


def without_numbers(line: str) -> str:
    """A line but for its numbers, its hash, its time and the width of its columns."""
    if line.startswith(("made ", "file ", "┏", "┡", "└")):
        return line[:1]
    if line.startswith("│ "):
        cells = [cell.strip() for cell in line.split("│")]
        return " ".join("#" if re.fullmatch(r"[-\d.,e+]+", cell) else cell for cell in cells)
    return " ".join(re.sub(r"[\d.,]*\d", "#", line).split())


def test_library_in_a_dozen_lines(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(trial)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["scores"].view == ("bank", "insurer")  # type: ignore[attr-defined]


NOISY = {"drl": (6.7, 0.1), "matching": (0.12, 0.0012)}
"""Four standard deviations of the difference of two draws of noise, in points of error and in AUC (of 24 draws)."""


def test_figures_are_those_the_demo_prints() -> None:
    for world in demo():
        exact = "exact" in world.title
        (shown,) = re.findall(rf"^{re.escape(world.title)}\n┏(.*?)└", README, flags=re.DOTALL | re.MULTILINE)
        figures = re.findall(r"^│ (\w+)[^│]+│ ([\d.]+)% +│ ([\d.]+) ", shown, flags=re.MULTILINE)
        assert [name for name, *_ in figures] == [name.partition("_")[0] for name in world.results]
        for (name, error, area), result in zip(figures, world.results.values(), strict=True):
            points, off = (0.0, 0.0) if exact else NOISY.get(name, (0.0, 0.0))
            assert float(error) == pytest.approx(100 * result.error, abs=0.051 + points), (world.name, name)
            assert float(area) == pytest.approx(result.auc, abs=0.00051 + off), (world.name, name)
        assert world.results["matching"].error < world.results["best_peer"].error


def test_changelog_knows_the_version() -> None:
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    assert "[Unreleased]" in changelog or f"[{__version__}]" in changelog
