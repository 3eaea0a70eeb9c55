"""Every promise of the threat model names tests, and these exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
NAMED = sorted({*re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)})


@pytest.mark.parametrize("name", NAMED)
def test_each_test_it_names_exists(name):
    path, _, function = name.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"\ndef {function}(" in text if function else "\ndef test_" in text


def test_each_promise_has_a_test():
    section = ""
    for line in PAGE.splitlines():
        section = line if line.startswith("| promise") else section if line.startswith("|") else ""
        if section and not line.startswith(("| promise", "|---")):
            assert "`tests/" in line, line
