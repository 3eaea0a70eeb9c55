"""The terminal: eighty columns, no colour where none is wanted, JSON everywhere, completion."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.cells import cell_len
from tests.docs.warm import warm_command

from radocraft.cli import app
from radocraft.demo._example import write_example

WAITING = {("peer", "serve"), ("peer", "push")}  # they run until they are stopped, and print no result
COLOUR = re.compile(r"\x1b\[[0-9;]*[34][0-9][0-9;]*m")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield path, command


def test_every_command_speaks_json() -> None:
    silent = {
        path
        for path, command in commands(typer.main.get_command(app))
        if "--json" not in {option for parameter in command.params for option in parameter.opts}
    }
    assert silent <= WAITING


def test_every_command_has_help_with_an_example() -> None:
    for path, command in commands(typer.main.get_command(app)):
        assert f"Example: radocraft {' '.join(path)}" in (command.help or ""), path


def test_no_word_of_help_is_taken_for_markup() -> None:
    for path, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            told = getattr(parameter, "help", None) or ""
            assert not re.search(r"\[[a-z#/@]", told), (path, told)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose `radocraft` starts at once."""
    with warm_command(tmp_path_factory.mktemp("bin")) as folder:
        yield folder


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    write_example(folder, rows=3000)
    return folder


ROAD = """
radocraft profile bank.csv --outline
radocraft contract check contract.toml
radocraft contract show contract.toml
radocraft policy new bank -o policy.toml
radocraft policy show policy.toml
radocraft craft -c contract.toml -p bank bank.csv --policy policy.toml -o bank.part.parquet
radocraft review bank.part.parquet.pending --approve --name A --reason b
radocraft craft -c contract.toml -p insurer insurer.parquet -o insurer.part.parquet
radocraft inspect bank.part.parquet
radocraft learn -c contract.toml bank.part.parquet insurer.part.parquet -o model.json
radocraft explain model.json
radocraft advise -c contract.toml bank.part.parquet insurer.part.parquet
radocraft predict model.json people.csv -o scores.csv
radocraft report model.json
"""


def test_all_it_prints_fits_eighty_columns(trial: Path, command: Path) -> None:
    place = {**os.environ, "PATH": f"{command}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
    done = subprocess.run(["bash", "-e"], input=ROAD, cwd=trial, env=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    assert len(lines) > 100
    assert [line for line in lines if cell_len(line) > 80] == []


def on_a_terminal(*words: str, **environment: str) -> str:
    """What a command prints to a terminal that can show colours."""
    mine, theirs = pty.openpty()
    place = {**os.environ, "TERM": "xterm-256color", **environment}
    with subprocess.Popen(
        [sys.executable, "-m", "radocraft", *words], stdout=theirs, stderr=theirs, env=place
    ) as running:
        os.close(theirs)
        printed = b""
        try:
            while piece := os.read(mine, 1 << 16):
                printed += piece
        except OSError:  # the other end is closed
            pass
        running.wait()
    os.close(mine)
    return printed.decode()


def test_no_colour_where_none_is_wanted() -> None:
    assert COLOUR.search(on_a_terminal("inspect", "nowhere.parquet"))
    assert not COLOUR.search(on_a_terminal("inspect", "nowhere.parquet", NO_COLOR="1"))


def test_the_shell_completes_commands() -> None:
    place = {**os.environ, "_RADOCRAFT_COMPLETE": "complete_bash", "COMP_WORDS": "radocraft re", "COMP_CWORD": "1"}
    program = shutil.which("radocraft", path=str(Path(sys.executable).parent))
    assert program is not None
    done = subprocess.run([program], env=place, capture_output=True, text=True, check=False)
    assert {"report", "review"} <= {*done.stdout.split()}


def test_drafts_and_examples_as_json(tmp_path: Path, command: Path) -> None:
    place = {**os.environ, "PATH": f"{command}{os.pathsep}{os.environ['PATH']}"}

    def told(*words: str) -> Any:
        done = subprocess.run(["radocraft", *words, "--json"], cwd=tmp_path, env=place, capture_output=True, check=True)
        return json.loads(done.stdout)

    assert len(told("example", "trial", "--rows", "100")["files"]) == 4
    assert told("policy", "new", "bank", "-o", "policy.toml")["written"] == "policy.toml"
    draft = (
        "contract",
        "new",
        "bank=trial/bank.csv",
        "insurer=trial/insurer.parquet",
        "--name",
        "n",
        "--label",
        "defaulted",
    )
    assert "[label]" in told(*draft, "--positive", "yes", "--negative", "no")["contract"]
