"""No command writes over a file that it reads, by whatever name, nor over another one without --force."""

import os
import sys
from pathlib import Path

import pytest

from radocraft.cli import main
from radocraft.cli._commands import COMMANDS, load
from radocraft.demo import write_example

CRAFT = ["craft", "bank.csv", "-c", "contract.toml", "-p", "bank"]
OUTPUTS = {"output", "tally", "scorer"}

# Every command that writes a file: its words, without the output, and the files among them that it reads.
WRITING = {
    "craft": (CRAFT, ["bank.csv", "contract.toml"]),
    "craft of several": (["craft", "a.csv", "folder", *CRAFT[2:]], ["a.csv", "folder/b.csv"]),
    "craft of a pattern": (["craft", "*.csv", *CRAFT[2:]], ["a.csv", "bank.csv"]),
    "craft with all there is": (
        [*CRAFT, "--policy", "p.toml", "--onto", "t", "--secret", "k", "--proportions", "a.part"],
        ["p.toml", "t", "k", "a.part"],
    ),
    "score": (["score", "s", "bank.csv"], ["s", "bank.csv"]),
    "review": (["review", "a.pending", "--approve", "--reason", "why"], ["a.pending"]),
    "count": (["count", "m.json", "bank.csv", "-p", "bank", "--policy", "p.toml"], ["m.json", "bank.csv", "p.toml"]),
    "learn": (
        ["learn", "-c", "contract.toml", "a.part", "b.part", "--linked", "linked.csv"],
        ["contract.toml", "a.part", "b.part", "linked.csv"],
    ),
    "report": (["report", "m.json"], ["m.json"]),
    "predict": (["predict", "m.json", "bank.csv", "a.csv"], ["m.json", "bank.csv", "a.csv"]),
    "recalibrate": (["recalibrate", "m.json", "c.json"], ["m.json", "c.json"]),
    "contract new": (
        ["contract", "new", "bank=bank.csv", "b=b.json", "--name", "n", "--label", "x"],
        ["bank.csv", "b.json"],
    ),
    "policy new": (["policy", "new", "bank"], []),
    "collect": (
        ["collect", "-c", "contract.toml", "--from", "bank=localhost:1", "-i", "me", "--second-round", "m.json"],
        ["contract.toml", "m.json", "me/key.pem"],
    ),
}
KEPT_SAFE_OTHERWISE = {
    "example": "its files are looked for before any is written",
    "identity init": "the folder must be empty",
    "identity adopt": "the folder must be new",
    "identity issue": "a folder with an identity needs --force",
    "identity rotate": "made to replace an identity of the same name",
    "peer serve": "a scorer that is kept is used; over any other file none is written",
    "peer push": "the same",
    "study run": "a file that holds no results of a study is refused",
    "study figures": "each file is compared with what is there",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_example(tmp_path, rows=1000)
    (tmp_path / "folder").mkdir()
    (tmp_path / "me").mkdir()
    for name in {name for _, names in WRITING.values() for name in names}:
        if not (tmp_path / name).exists():
            (tmp_path / name).write_text(f"what stands in {name}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["radocraft", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), " ".join(capsys.readouterr().err.split())

    return call


def leaves(name: str, command: object) -> list[tuple[str, object]]:
    inner = getattr(command, "commands", None)
    return [(name, command)] if inner is None else [leaf for n, c in inner.items() for leaf in leaves(f"{name} {n}", c)]


def test_every_command_that_writes_is_tried_here():
    commands = dict(leaf for name in COMMANDS for leaf in leaves(name, load(name)))
    writing = {name for name, command in commands.items() if OUTPUTS & {param.name for param in command.params}}
    tried = {name for name in commands if name in WRITING}
    assert writing <= tried | {*KEPT_SAFE_OTHERWISE}
    for name in tried | {"example", "study figures", "identity issue"}:
        assert "force" in {param.name for param in commands[name].params}, name


@pytest.mark.parametrize("name", WRITING)
def test_no_command_writes_over_what_it_reads(folder, run, name):
    words, inputs = WRITING[name]
    for read in inputs:
        before = (folder / read).read_bytes()
        os.symlink(folder / read, folder / "soft")
        os.link(folder / read, folder / "hard")
        for output in (read, f"./folder/../{read}", "soft", "hard"):
            code, said = run(*words, "-o", output, "--force")
            assert (code, "is an input of this command" in said) == (1, True), said
            assert (folder / read).read_bytes() == before
        (folder / "soft").unlink()
        (folder / "hard").unlink()


@pytest.mark.parametrize("option", ["--tally", "--scorer"])
def test_nor_by_any_other_option(folder, run, option):
    before = (folder / "bank.csv").read_bytes()
    code, said = run(*CRAFT, "-o", "x", option, "bank.csv", "--force")
    assert (code, "is an input of this command" in said) == (1, True), said
    assert (folder / "bank.csv").read_bytes() == before
    code, said = run(*CRAFT, "-o", "x", option, "x")
    assert (code, "Two outputs" in said) == (1, True), said


@pytest.mark.parametrize("name", [name for name in WRITING if not name.startswith(("craft", "review", "count"))])
def test_another_file_is_written_over_with_force_alone(folder, run, name):
    (folder / "mine").write_text("as I wrote it")
    code, said = run(*WRITING[name][0], "-o", "mine")
    assert (code, "already exists" in said, "--force" in said) == (1, True, True), said
    assert (folder / "mine").read_text() == "as I wrote it"
    code, said = run(*WRITING[name][0], "-o", "mine", "--force")
    assert "already exists" not in said


def test_with_force_the_file_is_replaced(folder, run):
    (folder / "mine").write_text("as I wrote it")
    assert run("policy", "new", "bank", "-o", "mine", "--force")[0] == 0
    assert (folder / "mine").read_text().startswith("#")


def test_a_part_is_written_onto_itself_and_onto_nothing_else(folder, run):
    assert run(*CRAFT, "-o", "p", "--tally", "sums")[0] == 0
    part, sums, ledger = (Path(name).read_bytes() for name in ("p", "sums", "bank.ledger"))
    code, said = run(*CRAFT, "-o", "p", "--tally", "sums")
    assert (code, "given again, nothing spent" in said) == (0, True), said
    Path("bank.csv").write_text("".join(Path("bank.csv").read_text().splitlines(keepends=True)[:-100]))
    for more in (["-o", "p"], ["-o", "q", "--tally", "sums"], ["-o", "people.csv"], ["-o", "bank.ledger"]):
        code, said = run(*CRAFT, *more)
        assert code == 1, said
        assert "already exists" in said or "Two outputs" in said
    assert (part, sums, ledger) == tuple(Path(name).read_bytes() for name in ("p", "sums", "bank.ledger"))
    assert run(*CRAFT, "-o", "p", "--tally", "sums", "--force")[0] == 0
    assert Path("p").read_bytes() != part
    assert Path("bank.ledger").read_bytes().startswith(ledger)


def test_what_waits_for_review_is_written_onto_itself_and_onto_nothing_else(folder, run):
    Path("p.toml").write_text("review = true\n")
    craft = [*CRAFT, "--policy", "p.toml"]
    for _ in range(2):
        assert run(*craft, "-o", "p")[0] == 5
    waiting, ledger = Path("p.pending").read_bytes(), Path("bank.ledger").read_bytes()
    Path("bank.csv").write_text("".join(Path("bank.csv").read_text().splitlines(keepends=True)[:-100]))
    code, said = run(*craft, "-o", "p")
    assert (code, "'p.pending' already exists" in said) == (1, True), said
    approve = ["review", "p.pending", "--approve", "--reason", "agreed"]
    code, said = run(*approve, "-o", "people.csv")
    assert (code, "'people.csv' already exists" in said) == (1, True), said
    assert (waiting, ledger) == (Path("p.pending").read_bytes(), Path("bank.ledger").read_bytes())
    assert run(*approve)[0] == 0
    assert Path("people.csv").read_text().startswith('"')


def test_an_example_is_not_written_over_what_somebody_changed(folder, run):
    Path("contract.toml").write_text("as I wrote it")
    code, said = run("example", ".")
    assert (code, "already exists" in said) == (1, True), said
    assert Path("contract.toml").read_text() == "as I wrote it"
    assert run("example", ".", "--force")[0] == 0


def test_counts_are_written_onto_themselves_and_onto_nothing_else(folder, run):
    assert run(*CRAFT, "-o", "1")[0] == 0
    assert run("craft", "insurer.parquet", "-c", "contract.toml", "-p", "insurer", "-o", "2")[0] == 0
    assert run("learn", "-c", "contract.toml", "1", "2", "-o", "model.json")[0] == 0
    count = ["count", "model.json", "bank.csv", "-p", "bank"]
    assert [run(*count, "-o", "counts")[0] for _ in range(2)] == [0, 0]
    code, said = run(*count, "-o", "people.csv")
    assert (code, "already exists" in said) == (1, True), said


def test_an_identity_is_not_issued_over_another(folder, run):
    assert run("identity", "init", "authority")[0] == 0
    issue = ["identity", "issue", "authority", "bank", "-o", "bank"]
    assert run(*issue)[0] == 0
    key = Path("bank/key.pem").read_bytes()
    code, said = run(*issue)
    assert (code, "already exists" in said) == (1, True), said
    assert Path("bank/key.pem").read_bytes() == key


def test_results_of_a_study_are_not_written_over_a_table(folder, run):
    for name in ("bank.csv", "insurer.parquet"):
        before = Path(name).read_bytes()
        code, said = run("study", "run", "--preset", "smoke", "-o", name)
        assert (code, Path(name).read_bytes()) == (1, before), said
