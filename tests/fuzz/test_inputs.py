"""No input ends in a traceback, a hang, or memory without end: a few hundred of each kind, and all that once did."""

import pytest
from tests.fuzz.run import FINDINGS, by_chance, check
from tests.fuzz.targets import TARGETS

INPUTS = 150


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_are_taken_or_refused_in_words(name):
    assert by_chance(TARGETS[name], INPUTS, seed=0)["inputs"] == INPUTS


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_is_mended(path):
    check(TARGETS[path.parent.name], path.read_bytes())
