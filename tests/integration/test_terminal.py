"""The terminal: eighty columns, no colour where none is wanted, JSON everywhere, completion."""

import csv
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

import pandas as pd
import pytest
import typer.main
from rich.cells import cell_len
from tests.docs.warm import warm_command

from radocraft.cli import app, main
from radocraft.demo._example import CONTRACT, write_example

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
radocraft craft -c contract.toml -p bank bank.csv --policy policy.toml -o bank.part.parquet || test $? = 5
radocraft review bank.part.parquet.pending
radocraft review bank.part.parquet.pending --approve --name A --reason b
radocraft craft -c contract.toml -p insurer insurer.parquet -o insurer.part.parquet
radocraft craft -c contract.toml -p insurer insurer.parquet -o insurer.part.parquet
radocraft ledger bank.ledger
radocraft ledger insurer.ledger
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


# --- what others wrote ----------------------------------------------------------------------------

STEER = "\x1b[2J\x1b]0;gone\x07\u202e"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Any]:
    """Runs a command in a folder of its own; gives its code and all that it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["radocraft", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), "".join(capsys.readouterr())

    return call


def steers(text: str) -> bool:
    return any(sign in text for sign in "\x1b\x07\x9b\u202e")


def test_no_control_character_of_a_file_reaches_the_terminal(said: Any, tmp_path: Path) -> None:
    """Whoever wrote it: names of tables, reasons, codes of a part, columns, values, file names, arguments."""
    write_example(tmp_path, rows=3000)
    (tmp_path / "policy.toml").write_text(
        f'table = {json.dumps("customers" + STEER)}\nledger = "bank.ledger"\nreview = true\n'
    )
    craft = ("craft", "-c", "contract.toml", "-p", "bank", "bank.csv", "-o", "part", "--policy", "policy.toml")
    shown = {"craft": said(*craft), "craft --json": said(*craft, "--json")}
    shown |= {"review": said("review", "part.pending"), "review --json": said("review", "part.pending", "--json")}
    assert [code for code, _ in shown.values()] == [5, 5, 0, 0], shown
    decided = said("review", "part.pending", "--approve", "--name", f"A{STEER}", "--reason", f"fine{STEER}")
    shown |= {"decided": decided, "ledger": said("ledger", "bank.ledger")}
    shown |= {"ledger --json": said("ledger", "bank.ledger", "--json")}
    assert "fine" in shown["ledger"][1]
    shown["no table"] = said("ledger", "bank.ledger", "--table", f"t{STEER}")
    Path(f"odd{STEER}.csv").write_text(f"a{STEER},b\nx{STEER},1\ny,2\n" * 60)
    for more in ((), ("--outline",), ("--json",)):
        shown[f"profile {more}"] = said("profile", f"odd{STEER}.csv", *more)
    shown["a wrong table"] = said("craft", "-c", "contract.toml", "-p", "bank", f"odd{STEER}.csv", "-o", "x")
    shown["a wrong peer"] = said("craft", "-c", "contract.toml", "-p", f"b{STEER}", "bank.csv", "-o", "x")
    shown["no part"] = said("inspect", f"nowhere{STEER}")
    shown["no command"] = said(f"crfat{STEER}")
    shown["no option"] = said("inspect", f"--{STEER}")
    shown["no number"] = said("inspect", "part", "--cells", f"many{STEER}")
    shown["no number --json"] = said("inspect", "part", "--cells", f"many{STEER}", "--json")
    assert json.loads(shown["no number --json"][1])["error"] == "UsageError"
    assert {shown[name][0] for name in ("no command", "no option", "no number", "no number --json")} == {2}
    for name, (_, text) in shown.items():
        assert text.strip(), name
        assert not steers(text), (name, text)


@pytest.mark.parametrize("text", [STEER, "tab\t", "line\n", "\x7f", "\u2028"])
def test_a_contract_that_would_steer_the_terminal_is_refused_with_its_place(said: Any, text: str) -> None:
    """Else its peers would make parts that nobody can read."""
    quoted = json.dumps(text)
    for old, new, place in (
        ('"clerk"', quoted, "peers.bank.features.job.categories[0]"),
        ('"north"', quoted, "shared[0].categories[0]"),
        ('"yes"', quoted, "label.positive"),
        ('"default within a year"', quoted, "name"),
        ("car_age =", f"{quoted} =", "peers.insurer.features."),
    ):
        Path("contract.toml").write_text(CONTRACT.replace(old, new, 1))
        code, told = said("contract", "check", "contract.toml")
        told = " ".join(told.split())
        assert (code, place in told, "control character" in told) == (1, True, True), told
        assert not steers(told)
        assert not steers(said("contract", "show", "contract.toml")[1])


def test_a_deep_contract_is_a_mistake_and_no_traceback(said: Any) -> None:
    Path("contract.toml").write_text("name = " + "[" * 100_000 + "]" * 100_000)
    code, told = said("contract", "check", "contract.toml")
    assert (code, "not valid TOML" in told) == (1, True), told[:500]


def test_no_formula_reaches_a_spreadsheet(said: Any, tmp_path: Path) -> None:
    """Neither a value that is kept, nor a column's name, nor a class of the contract."""
    write_example(tmp_path, rows=3000)
    text = CONTRACT.replace('positive = "yes"', 'positive = "=yes()"').replace('negative = "no"', 'negative = "@no"')
    Path("contract.toml").write_text(text)
    for name, read, write in (
        ("bank.csv", pd.read_csv, lambda table: table.to_csv("bank.csv", index=False)),
        ("insurer.parquet", pd.read_parquet, lambda table: table.to_parquet("insurer.parquet")),
    ):
        write(read(name).replace({"defaulted": {"yes": "=yes()", "no": "@no"}}))
    for peer, table in (("bank", "bank.csv"), ("insurer", "insurer.parquet")):
        assert said("craft", "-c", "contract.toml", "-p", peer, table, "-o", f"{peer}.part")[0] == 0
    assert said("learn", "-c", "contract.toml", "bank.part", "insurer.part", "-o", "model.json")[0] == 0
    people = pd.read_csv("people.csv").iloc[:6]
    odd = ["=1+1", "+cmd|'/c calc'!A0", "-2+3", "@SUM(A1)", "-5", "Bern"]
    people.assign(**{"=column": odd, "fine": odd}).to_csv("odd.csv", index=False)
    keep = ("--keep", "=column", "--keep", "fine")
    code, told = said("predict", "model.json", "odd.csv", "-o", "scores.csv", *keep)
    assert code == 0, told
    with Path("scores.csv").open(newline="") as file:
        lines = [*csv.reader(file)]
    assert lines[0][:2] == ["'=column", "fine"]
    cells = [cell for line in lines for cell in line]
    assert [cell for cell in cells if re.match(r"[=@\t]|[+-](?![\d.]+(e[+-]?\d+)?$)", cell)] == []
    assert [line[1] for line in lines[1:]] == ["'=1+1", "'+cmd|'/c calc'!A0", "'-2+3", "'@SUM(A1)", "-5", "Bern"]
    assert {line[-1] for line in lines[1:]} <= {"'=yes()", "'@no"}
