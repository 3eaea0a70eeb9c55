"""The pages on the design say what is there: every file, and every word with one meaning."""

import re
import tomllib

import pytest
from tests.docs.blocks import DOCS

SOURCE = DOCS.parent / "src" / "radocraft"
DESIGN = (DOCS / "design.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
WORDS = tomllib.loads((DOCS / "glossary.toml").read_text(encoding="utf-8"))
RETIRED = ("offer", "telling", "told", "answering", "settle", "surety", "doubt", "desk", "station", "let_go")


def test_every_file_named_on_the_page_is_there_and_every_file_is_named():
    named = {name for name in re.findall(r"`([\w/]+\.py)`", DESIGN) if not name.startswith("__")}
    there = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    assert named - there - {"__init__.py", "craft.py"} == set()
    assert {name for name in there if not name.endswith(("__init__.py", "__main__.py"))} <= named


@pytest.mark.parametrize(
    ("task", "file"),
    [
        ("an engine", "rows/engines/_opening.py"),
        ("a kind of feature", "contract/_features.py"),
        ("a policy rule", "gate/_policy.py"),
        ("a kind of chart", "pages/_charts.py"),
        ("a command", "cli/_commands.py"),
        ("an error", "errors.py"),
        ("a claim of the study", "research/study/_claims.py"),
        ("a message of the network", "net/_messages.py"),
        ("a cleaning rule", "contract/_cleaning.py"),
        ("a column of the ledger", "ledger/_lines.py"),
    ],
)
def test_a_new_contributor_finds_the_file(task, file):
    (row,) = re.findall(rf"^\| {task} \| (.*) \|$", DESIGN, flags=re.MULTILINE)
    assert f"`{file}`" in row


def test_words_are_plain():
    """A word has one line, which ends as a sentence; words that were given up are not used."""
    assert all(meaning.endswith(".") for meaning in WORDS.values())
    for word in RETIRED:
        assert not re.search(rf"\b{word}\b", GLOSSARY + DESIGN), word
