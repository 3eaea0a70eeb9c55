"""Contracts beyond two values of the label, on the command line."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.unit.pages.models import learned

from radocraft.cli import main

SHARED = '[[shared]]\nname = "s"\ncategories = ["x", "y"]\n'
PEERS = '[peers.one.features]\nu = "numeric"\n[peers.two.features]\nv = "numeric"\n'


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["radocraft", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out + captured.err

    return call


def people(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, rows)
    u, v = kind + rng.normal(size=rows), (kind == 1) + rng.normal(size=rows)
    frame = pd.DataFrame({"kind": np.array(["a", "b", "c"])[kind], "s": rng.choice(["x", "y"], rows), "u": u, "v": v})
    return frame.assign(much=u - v + rng.normal(size=rows))


@pytest.mark.parametrize(
    ("label", "columns", "words"),
    [
        ('column = "kind"\nclasses = ["a", "b", "c"]\n', ["score:a", "probability:b", "class"], "AUC"),
        ('column = "much"\nkind = "numeric"\nedges = [0, 2]\n', ["prediction"], "R²"),
    ],
    ids=["classes", "number"],
)
def test_the_whole_road(label: str, columns: list[str], words: str, tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    contract, model = tmp_path / "contract.toml", tmp_path / "model.json"
    contract.write_text(f'name = "relaxed"\n[label]\n{label}{SHARED}{PEERS}')
    assert run("contract", "check", contract)[0] == 0
    assert run("contract", "show", contract)[0] == 0
    table, parts = people(2000), []
    for peer, own in (("one", "u"), ("two", "v")):
        kept = table[["kind", "much", "s", own]].sample(frac=1.0, random_state=1)
        kept.to_csv(tmp_path / f"{peer}.csv", index=False)
        parts.append(tmp_path / f"{peer}.part.parquet")
        code, said = run("craft", "-c", contract, "-p", peer, tmp_path / f"{peer}.csv", "-o", parts[-1])
        assert code == 0, said
        assert run("inspect", parts[-1])[0] == 0
    code, said = run("learn", "-c", contract, *parts, "-o", model)
    assert code == 0, said
    assert words in said
    table.to_csv(tmp_path / "people.csv", index=False)
    code, said = run("predict", model, tmp_path / "people.csv", "-o", tmp_path / "scores.csv", "--keep", "much")
    assert code == 0, said
    assert {*columns} <= {*pd.read_csv(tmp_path / "scores.csv").columns}
    code, said = run("explain", model)
    assert code == 0, said
    assert "By feature" in said
    assert json.loads(run("explain", model, "--json")[1])["coefficients"]
    assert run("advise", "-c", contract, *parts)[0] == 0
    code, said = run("report", model, "-o", tmp_path / "report.html")
    assert code == 0, said


def test_one_labelled_peer(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    contract, model = tmp_path / "contract.toml", tmp_path / "model.json"
    label = 'column = "kind"\nclasses = ["a", "b", "c"]\n'
    contract.write_text(f'name = "one label"\n[label]\n{label}held_by = ["three"]\n{SHARED}{PEERS}')
    code, said = run("contract", "check", contract)
    assert code == 1
    assert "there is no peer 'three'" in said
    contract.write_text(contract.read_text().replace('"three"', '"one"'))
    assert "two lacks the label" in run("contract", "show", contract)[1]
    table, parts = people(2000), []
    for peer, columns in (("one", ["kind", "s", "u"]), ("two", ["s", "v"])):
        table[columns].to_csv(tmp_path / f"{peer}.csv", index=False)
        parts.append(tmp_path / f"{peer}.part.parquet")
        code, said = run("craft", "-c", contract, "-p", peer, tmp_path / f"{peer}.csv", "-o", parts[-1])
        assert code == 0, said
    for way in ("adjusted", "mean-map", "laplacian"):
        code, said = run("learn", "-c", contract, *parts, "-o", model, "--proportions", way, "--force")
        assert code == 0, said
        assert "two lacks the label" in said
        assert run("report", model, "-o", tmp_path / "report.html", "--force")[0] == 0
        assert f"--proportions {way}" in (tmp_path / "report.html").read_text()


def test_a_peer_labels_its_own_rows(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    """Of tables that are public anyway: no noise on sums hides a row from labels that depend on all of them."""
    contract, table = tmp_path / "contract.toml", people(2000)
    label = 'column = "much"\npositive = "yes"\nnegative = "no"\nheld_by = ["one"]\n'
    contract.write_text(f'name = "own labels"\n[label]\n{label}{SHARED}{PEERS}')
    table["much"] = np.where(table["much"] + (table["s"] == "x") > 0, "yes", "no")
    for peer, columns in (("one", ["much", "s", "u"]), ("two", ["s", "v"])):
        table[columns].to_csv(tmp_path / f"{peer}.csv", index=False)
    one, two = tmp_path / "one.part.parquet", tmp_path / "two.part.parquet"
    rules = tmp_path / "exact.toml"
    rules.write_text('mode = "exact"\ngives_away_rows = true\n')
    words = ("craft", "-c", contract, "-p", "one", tmp_path / "one.csv", "-o", one, "--policy", rules)
    assert run(*words)[0] == 0
    default = ("craft", "-c", contract, "-p", "two", tmp_path / "two.csv", "-o", two, "--proportions", one)
    code, said = run(*default)
    assert (code, "no noise on sums hides a row from that" in " ".join(said.split())) == (4, True)
    assert not two.exists()
    own = (*default, "--policy", rules)
    code, said = run(*own)
    assert code == 0, said
    assert "cannot help" in said, "two signatures are too few to tell, and it says so before the part is used"
    assert "labelled its own rows by the proportions of one" in " ".join(said.split())
    code, said = run("inspect", two)
    assert "yes" in said
    code, said = run("learn", "-c", contract, one, two, "-o", tmp_path / "model.json")
    assert code == 0, said
    assert "learning takes them for true" in " ".join(said.split())
    assert run(*own, "--tally", tmp_path / "tally")[0] == 2
    other = [tmp_path / "other.part.parquet" if word == one else word for word in words]
    code, said = run(*other, "--proportions", one)
    assert code == 3
    assert "holds the label" in said


def test_scores_of_a_number_are_told_in_its_units_and_pieces_of_a_curve_are_explained(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    learned("number").save(tmp_path / "model.json")
    said = run("explain", tmp_path / "model.json")[1]
    by_block = said.split("By block (mean)")[1]
    assert "+1,1" in by_block
    assert ".00 " not in by_block
    assert "Pieces of a curve (pressure)" in said.replace("\n", " ")
