"""The whole road on the command line, as a user would walk it, and every way it can fail."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from radocraft.cli import main
from radocraft.demo._example import write_example


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def json(self) -> dict:  # type: ignore[type-arg]
        return json.loads(self.out)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["radocraft", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Ran(int(stop.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    write_example(folder, rows=3000)
    return folder


@pytest.fixture
def road(example: Path, tmp_path: Path, run) -> Path:  # type: ignore[no-untyped-def]
    for file in example.iterdir():
        shutil.copy(file, tmp_path)
    for peer, table in (("bank", "bank.csv"), ("insurer", "insurer.parquet")):
        craft = ("craft", "-c", tmp_path / "contract.toml", "-p", peer, tmp_path / table)
        assert run(*craft, "-o", tmp_path / f"{peer}.part.parquet", "--tally", tmp_path / f"{peer}.tally").code == 0
    return tmp_path


def exact_rules(folder: Path) -> Path:
    """A policy file for tables that are public anyway."""
    (folder / "exact.toml").write_text('mode = "exact"\ngives_away_rows = true\n')
    return folder / "exact.toml"


def flat(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def learn_words(road: Path, *more: object) -> tuple[object, ...]:
    parts = (road / "bank.part.parquet", road / "insurer.part.parquet")
    return ("learn", "-c", road / "contract.toml", *parts, "-o", road / "model.json", *more)


def test_the_whole_road(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    learned = run(*learn_words(road))
    assert learned.code == 0
    assert "under the worst one, by noisy sums" in learned.out
    assert "guaranteed" not in learned.out.replace("no guarantee", "")
    scored = run("predict", road / "model.json", road / "people.csv", "-o", road / "scores.csv", "--keep", "age")
    assert scored.code == 0
    assert "1,000 rows" in " ".join(scored.out.split())
    assert list(pd.read_csv(road / "scores.csv").columns) == ["age", "score", "probability", "class"]
    told = run("explain", road / "model.json", "--top", 3)
    assert told.code == 0
    assert "By feature" in told.out
    reported = run("report", road / "model.json", "-o", road / "report.html")
    assert reported.code == 0
    assert (road / "report.html").read_text().startswith("<!doctype html>")
    inspected = run("inspect", road / "bank.part.parquet", "--cells", 2)
    assert "every number carries noise of at least 0.5 times its sampling error" in flat(inspected.out)
    told = run("ledger", road / "bank.ledger")
    assert (told.code, "Remains: 9 of 10 releases." in flat(told.out)) == (0, True), told.out


def test_json_everywhere(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    assert run(*learn_words(road, "--json")).json()["method"] == "matching"
    assert run("explain", road / "model.json", "--json").json()["peers"]
    reported = run("report", road / "model.json", "-o", road / "r.html", "--json").json()
    assert reported == {"report": str(road / "r.html"), "bytes": (road / "r.html").stat().st_size}
    assert run("inspect", road / "bank.part.parquet", "--json").json()["peer"] == "bank"
    assert run("profile", road / "bank.csv", "--json").json()["columns"][0] == {"name": "defaulted", "kind": "boolean"}
    assert run("contract", "check", road / "contract.toml", "--json").json() == {"ok": True, "mistakes": []}
    assert run("contract", "show", road / "contract.toml", "--json").json()["name"] == "default within a year"
    scored = run("predict", road / "model.json", road / "bank.csv", "-o", road / "s.parquet", "--json").json()
    assert scored["filled_in"] == ["insurer"]
    crafted = run(
        "craft", "-c", road / "contract.toml", "-p", "bank", road / "bank.csv", "-o", road / "p.parquet", "--json"
    )
    assert crafted.json()["rows"] == pytest.approx(3000, abs=200)
    assert (crafted.json()["mode"], crafted.json()["noise"]) == ("noise", 0.5)
    assert crafted.json()["notes"] == ["The same release of an unchanged table: given again, nothing spent."]
    assert (road / "p.parquet").read_bytes() == (road / "bank.part.parquet").read_bytes()
    (line,) = run("ledger", road / "bank.ledger", "--json").json()["lines"]
    assert (line["what"], line["state"], line["table"]) == ("part", "released", "bank.csv")


def test_new_rows_onto_a_tally_give_the_part_of_the_whole(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    lines = (road / "bank.csv").read_text().splitlines(keepends=True)
    (road / "old.csv").write_text("".join(lines[:2000]))
    (road / "new.csv").write_text("".join([lines[0], *lines[2000:]]))
    craft = ("craft", "-c", road / "contract.toml", "-p", "bank", "--policy", exact_rules(road))
    assert run(*craft, road / "bank.csv", "-o", road / "whole.part.parquet").code == 0
    assert run(*craft, road / "old.csv", "-o", road / "old.part.parquet", "--tally", road / "t").code == 0
    onto = run(*craft, road / "new.csv", "--onto", road / "t", "-o", road / "all.part.parquet")
    assert onto.code == 0, onto.err
    whole, grown = (pq.read_table(road / f"{name}.part.parquet") for name in ("whole", "all"))
    assert whole.column("rows").to_pylist() == grown.column("rows").to_pylist()
    for name in whole.column_names:
        if name.startswith("sum:"):
            for a, b in zip(whole.column(name).to_pylist(), grown.column(name).to_pylist(), strict=True):
                assert a == pytest.approx(b, rel=1e-9, abs=1e-9)


def test_new_rows_onto_a_tally_are_a_release_of_their_own(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    lines = (road / "bank.csv").read_text().splitlines(keepends=True)
    (road / "new.csv").write_text("".join([lines[0], *lines[:0:-3]]))
    craft = ("craft", "-c", road / "contract.toml", "-p", "bank", road / "new.csv", "--onto", road / "bank.tally")
    for name in ("all", "again"):
        assert run(*craft, "-o", road / f"{name}.parquet").code == 0
    assert (road / "all.parquet").read_bytes() == (road / "again.parquet").read_bytes()
    rows = [line["rows"] for line in run("ledger", road / "bank.ledger", "--json").json()["lines"]]
    assert rows == [pytest.approx(3000, abs=200), pytest.approx(4000, abs=200)]
    other = (*craft[:-1], road / "all.parquet", "-o", road / "x")
    assert "not a readable tally" in flat(run(*other).err)


def test_drafting_from_profiles(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    for name in ("bank.csv", "insurer.parquet"):
        profile = run("profile", road / name, "--outline", "--json")
        (road / f"{name}.json").write_text(profile.out)
    peers = (f"bank={road / 'bank.csv.json'}", f"insurer={road / 'insurer.parquet.json'}")
    words = ("contract", "new", *peers, "--name", "n", "--label", "defaulted", "--positive", "yes", "--negative", "no")
    assert run(*words, "-o", road / "draft.toml").code == 0
    assert run("contract", "check", road / "draft.toml").code == 0
    assert 'bank_score = "score"' in run(*words).out
    assert "insurer_score: the score of boosted trees" in flat(run("contract", "show", road / "draft.toml").out)
    shown = run("contract", "show", road / "draft.toml", "--json").json()
    assert shown["peers"]["bank"]["features"]["bank_score"]["kind"] == "score"
    assert run(*words, "--columns", "-o", road / "columns.toml").code == 0
    assert run("contract", "check", road / "columns.toml").code == 0
    assert 'income = "spline"' in (road / "columns.toml").read_text()


FAILURES = {
    "missing column": (("craft", "-c", "contract.toml", "-p", "insurer", "bank.csv", "-o", "x"), 1, "lacks"),
    "unknown peer": (("craft", "-c", "contract.toml", "-p", "bnk", "bank.csv", "-o", "x"), 1, "no peer 'bnk'"),
    "no file": (("craft", "-c", "contract.toml", "-p", "bank", "nobody.csv", "-o", "x"), 1, "no file"),
    "no folder to write to": (
        ("craft", "-c", "contract.toml", "-p", "bank", "nobody.csv", "-o", "nowhere/x"),
        1,
        "there is no folder 'nowhere'",
    ),
    "no folder for the tally": (
        ("craft", "-c", "contract.toml", "-p", "bank", "nobody.csv", "-o", "x", "--tally", "nowhere/t"),
        1,
        "there is no folder 'nowhere'",
    ),
    "a folder to write to": (("learn", "-c", "contract.toml", "nobody", "-o", "."), 1, "it is a folder"),
    "no contract": (("craft", "-c", "nobody.toml", "-p", "bank", "bank.csv", "-o", "x"), 1, "': No such file"),
    "too few rows": (
        ("craft", "-c", "contract.toml", "-p", "bank", "bank.csv", "-o", "x", "--min-rows", "5000"),
        4,
        "too few rows of label",
    ),
    "one part": (("learn", "-c", "contract.toml", "bank.part.parquet", "-o", "m"), 1, "at least two"),
    "a part twice": (
        ("learn", "-c", "contract.toml", "bank.part.parquet", "bank.part.parquet", "-o", "m"),
        1,
        "two parts of 'bank'",
    ),
    "another contract": (
        ("learn", "-c", "other.toml", "bank.part.parquet", "insurer.part.parquet", "-o", "m"),
        3,
        "not this one",
    ),
    "no part": (("inspect", "nobody.parquet"), 1, "Cannot read the part 'nobody.parquet': No such file"),
    "not a part": (("inspect", "bank.csv"), 1, "not a readable part"),
    "not a model": (("explain", "contract.toml"), 1, "not a model"),
    "a tally of another contract": (
        ("craft", "-c", "other.toml", "-p", "bank", "bank.csv", "--onto", "bank.tally", "-o", "x"),
        3,
        "another contract",
    ),
    "bad caution": (
        ("learn", "-c", "contract.toml", "bank.part.parquet", "insurer.part.parquet", "-o", "m", "--caution", "2"),
        2,
        "",
    ),
    "fewer cells than none": (("inspect", "bank.part.parquet", "--cells", "-3"), 2, ""),
    "unknown command": (("crfat",), 2, ""),
    "mistakes in the contract": (("contract", "check", "wrong.toml"), 1, ""),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_have_their_code_and_say_what_to_do(road: Path, run, monkeypatch, name: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(road)
    text = Path("contract.toml").read_text()
    Path("other.toml").write_text(text.replace("edges = [30, 45, 60]", "edges = [30, 45, 65]"))
    Path("wrong.toml").write_text(text.replace("edges = [30, 45, 60]", "edges = [60, 45]").replace('"yes"', '"no"'))
    before = {*road.iterdir()}
    words, code, expected = FAILURES[name]
    ran = run(*words)
    assert (ran.code, expected in ran.err.replace("\n", " ")) == (code, True), ran.err
    assert {*road.iterdir()} == before
    if code in (1, 3, 4) and words[0] != "contract":
        failed = run(*words, "--json")
        assert json.loads(failed.err)["message"]


def bad_tables(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A peer's table with one thing wrong in each."""
    text, large = table.astype({"income": object}), table.astype({"income": float})
    text.loc[5, "income"], large.loc[7, "income"] = "a lot", float("inf")
    return {
        "lacking": table.drop(columns="income"),
        "text": text,
        "nothing but text": table.assign(income="a lot"),
        "empty": table.iloc[:0],
        "one-class": table[table["defaulted"] == "yes"],
        "label": table.assign(defaulted=["perhaps", *table["defaulted"][1:]]),
        "infinite": large,
    }


BAD_TABLES = {
    "lacking": ("MissingColumn", "lacks 'income'"),
    "text": ("WrongType", "holds text"),
    "nothing but text": ("WrongType", "holds text"),
    "empty": ("EmptyTable", "no rows"),
    "one-class": ("PolicyRefusal", "too few rows of label 'no', or none"),
    "label": ("UnknownLabel", "values other than"),
    "infinite": ("NotFinite", "infinities"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_has_its_own_error_and_nothing_is_written(road: Path, run, name: str) -> None:  # type: ignore[no-untyped-def]
    bad_tables(pd.read_csv(road / "bank.csv"))[name].to_csv(road / "bad.csv", index=False)
    before = {*road.iterdir()}
    failed = run("craft", "-c", road / "contract.toml", "-p", "bank", road / "bad.csv", "-o", road / "x", "--json")
    kind, said = BAD_TABLES[name]
    told = json.loads(failed.err)
    code = 4 if kind == "PolicyRefusal" else 1
    assert (failed.code, told["error"], said in told["message"]) == (code, kind, True), told
    assert {*road.iterdir()} == before


@pytest.mark.parametrize("what", ["policy", "contract"])
def test_a_draft_does_not_replace_what_somebody_wrote(road: Path, run, what: str) -> None:  # type: ignore[no-untyped-def]
    (road / "mine.toml").write_text("as I wrote it")
    label = ("--label", "defaulted", "--positive", "yes", "--negative", "no", "--name", "n")
    more = (f"bank={road / 'bank.csv'}", *label) if what == "contract" else ()
    ran = run(what, "new", *more, "-o", road / "mine.toml")
    assert (ran.code, "already exists" in " ".join(ran.err.split())) == (1, True), ran.err
    assert (road / "mine.toml").read_text() == "as I wrote it"


def test_a_decision_without_a_reason_is_refused_before_anything_is_read(run) -> None:  # type: ignore[no-untyped-def]
    ran = run("review", "nothing.pending", "--approve")
    assert (ran.code, ran.out) == (2, "")
    assert "--reason" in ran.err


def test_an_unknown_category_is_a_code_and_a_constant_column_a_note(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    table = pd.read_csv(road / "bank.csv").assign(income=5)
    table.loc[:300, "job"] = "astronaut"
    table.to_csv(road / "odd.csv", index=False)
    words = ("craft", "-c", road / "contract.toml", "-p", "bank", road / "odd.csv", "-o", road / "odd.parquet")
    exact = run(*words, "--policy", exact_rules(road))
    assert exact.code == 0
    assert "'income' is the same in all rows" in flat(exact.out)
    assert sum(pq.read_table(road / "odd.parquet").column("sum:job=unseen").to_pylist()) == 301
    assert run(*words, "--force").code == 0
    part = run("inspect", road / "odd.parquet", "--json").json()
    sd = part["levels"]["sums"] * len(part["cells"]) ** 0.5
    assert abs(sum(cell["sum:job=unseen"] for cell in part["cells"]) - 301) < 6 * sd
    learn = ("learn", "-c", road / "contract.toml", road / "odd.parquet", road / "insurer.part.parquet")
    assert run(*learn, "-o", road / "m").code == 0


def test_a_shared_feature_spelled_otherwise_is_told_by_its_peer(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    table = pd.read_csv(road / "bank.csv")
    table.assign(region=table["region"].str.upper()).to_csv(road / "loud.csv", index=False)
    crafted = run("craft", "-c", road / "contract.toml", "-p", "bank", road / "loud.csv", "-o", road / "loud.parquet")
    assert crafted.code == 0
    assert "nearly no row has an agreed category of 'region': compare the spelling" in flat(crafted.out)


def test_bad_parts_have_their_own_error(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    whole = (road / "bank.part.parquet").read_bytes()
    (road / "cut.parquet").write_bytes(whole[:3000])
    file = pq.ParquetFile(road / "bank.part.parquet")
    table = file.read().replace_schema_metadata(None)
    more = pa.array([rows + 1 for rows in table.column("rows").to_pylist()])
    table = table.set_column(table.column_names.index("rows"), "rows", more)
    words = [name for name in table.column_names if name == "label" or name.startswith("shared:")]
    lean = {"compression": "zstd", "use_dictionary": words, "store_schema": False}
    with pq.ParquetWriter(road / "edited.parquet", table.schema, **lean) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"radocraft": file.metadata.metadata[b"radocraft"]})
    pd.read_csv(road / "bank.csv").assign(region="mars").to_csv(road / "mars.csv", index=False)
    for peer, table in (("bank", "mars.csv"), ("insurer", "insurer.parquet")):
        craft = ("craft", "-c", road / "contract.toml", "-p", peer, road / table, "--policy", exact_rules(road))
        assert run(*craft, "-o", road / f"{peer}.exact.parquet").code == 0
    for name, other, kind, said in (
        ("cut", "insurer.part", "FileError", "truncated"),
        ("edited", "insurer.part", "Tampered", "changed after release"),
        ("bank.exact", "insurer.exact", "LearnError", "No block is known to two peers"),
    ):
        parts = (road / f"{name}.parquet", road / f"{other}.parquet")
        failed = run("learn", "-c", road / "contract.toml", *parts, "-o", road / "m", "--json")
        told = json.loads(failed.err)
        assert (failed.code, told["error"], said in told["message"]) == (1, kind, True), told


def test_a_full_disk_is_told_and_the_spend_is_kept(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    """What a device did with its bytes nobody knows; so they count as having left."""
    words = ("craft", "-c", road / "contract.toml", "-p", "bank", road / "bank.csv", "-o", "/dev/full")
    nowhere = run(*words)
    assert (nowhere.code, "no place beside it for a ledger" in flat(nowhere.err)) == (1, True), nowhere.err
    (road / "policy.toml").write_text('ledger = "bank.ledger"\nmin_rows = 11\n')
    failed = run(*words, "--policy", road / "policy.toml")
    assert (failed.code, "No space left on device" in flat(failed.err)) == (1, True), failed.err
    assert len(run("ledger", road / "bank.ledger", "--json").json()["lines"]) == 2


@pytest.mark.parametrize(("columns", "each", "exact"), [(14, 15, True), (60, 15, True), (60, 50, False)])
def test_more_columns_than_rows(tmp_path: Path, run, columns: int, each: int, exact: bool) -> None:  # type: ignore[no-untyped-def]
    """Exact sums of so few rows can be learned from; with noise hardly anything is left, and the part says so."""
    labels, rng, peers = np.repeat([0, 1], each), np.random.default_rng(0), ("a", "b", "c")
    lines = ['name = "wide"', 'label = { column = "y", positive = 1, negative = 0 }']
    for peer in peers:
        names = [f"{peer}{at}" for at in range(columns)]
        table = pd.DataFrame(rng.normal(size=(2 * each, columns)) + labels[:, None], columns=names)
        table.assign(y=labels).to_csv(tmp_path / f"{peer}.csv", index=False)
        lines += [f"[peers.{peer}.features]", *(f'{name} = "numeric"' for name in names)]
    (tmp_path / "c.toml").write_text("\n".join(lines))
    rules = ("--policy", exact_rules(tmp_path)) if exact else ()
    for peer in peers:
        words = ("craft", "-c", tmp_path / "c.toml", "-p", peer, tmp_path / f"{peer}.csv", *rules)
        crafted = run(*words, "-o", tmp_path / f"{peer}.parquet")
        assert crafted.code == 0, crafted.err
        assert ("expect a weak model from this few rows" in flat(crafted.out)) != exact
    learn = ("learn", "-c", tmp_path / "c.toml", *(tmp_path / f"{peer}.parquet" for peer in peers))
    learned = run(*learn, "-o", tmp_path / "m", "--json")
    assert learned.code == 0, learned.err
    assert (tmp_path / "m").exists()
    told = learned.json()["estimate"]
    assert (told["error"], told["intervals"]) == (None, {}), "of few rows nothing is told but the base rate"
    assert 0.0 < told["base_rate"] <= 0.5


def test_names_like_markup_are_printed_as_they_are(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    text = (road / "contract.toml").read_text().replace('"clerk"', '"[/clerk]"')
    (road / "odd.toml").write_text(text)
    pd.read_csv(road / "bank.csv").replace("clerk", "[/clerk]").to_csv(road / "odd.csv", index=False)
    part = road / "[red]odd.parquet"
    assert "[red]odd" in run("craft", "-c", road / "odd.toml", "-p", "bank", road / "odd.csv", "-o", part).out.replace(
        "\n", ""
    )
    assert "job=[/clerk]" in run("inspect", part).out
    assert "[/clerk]" in run("contract", "show", road / "odd.toml").out


def test_all_mistakes_of_a_contract_come_at_once(road: Path, run) -> None:  # type: ignore[no-untyped-def]
    text = (road / "contract.toml").read_text()
    text = text.replace("edges = [30, 45, 60]", "edges = [60, 45]").replace('positive = "yes"', 'positive = "no"')
    (road / "wrong.toml").write_text(text)
    mistakes = run("contract", "check", road / "wrong.toml", "--json").json()["mistakes"]
    assert len(mistakes) == 2
    assert {mistake["place"].split(" (line")[0] for mistake in mistakes} == {"label", "shared[1]"}


def test_the_installed_command_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "radocraft", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("radocraft ")
