"""Every example runs as it stands and prints what it is there to show."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SHOWS = {
    "01_bank_and_insurer": ["bank: 10,000 rows became 3", "error on 5,000 new people"],
    "02_policy_and_review": [
        "left already: False",
        "left now: True",
        "asked again, the same file: True",
        "ledger: ['proposal', 'approval']",
        "refused: This would exceed the lifetime budget of 'customers': 1 release, together epsilon 2 at",
    ],
    "03_caution": ["caution 1 is never worse: True"],
    "04_only_my_columns": ["scored with the columns of: bank\n", "income", "the same probabilities: True"],
    "05_curves_and_report": ["shows income as a curve: True"],
    "06_linked_rows": ["with 400 of them: measured error"],
    "07_public_table": ["guarantee: none: exact sums leave", "error on wines of other folds: 2.8%"],
}


def test_all_are_known_and_numbered() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(SHOWS)
    listed = re.findall(r"\((\d\d_\w+)\.py\)", (FOLDER / "README.md").read_text())
    assert listed == sorted(SHOWS)


@pytest.mark.parametrize("name", SHOWS)
def test_it_shows_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for words in SHOWS[name]:
        assert words in printed, printed
