"""What `import radocraft as rc` offers: these names, each documented with an example, and nothing else."""

import inspect
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

import radocraft as rc

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
NAMES = [name for name in rc.__all__ if not name.startswith("_")]
PYDANTIC = {name for name in dir(BaseModel) if not name.startswith("__")}


def test_completion_shows_the_public_names_and_nothing_else():
    assert dir(rc) == sorted(rc.__all__)
    assert all(hasattr(rc, name) for name in rc.__all__)


def test_a_name_that_is_not_there_is_missed_as_in_any_module():
    with pytest.raises(AttributeError, match="no attribute 'lern'"):
        rc.lern  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_documented_with_an_example_that_uses_it(name):
    text = inspect.getdoc(getattr(rc, name)) or ""
    example = text.partition("Examples\n--------\n")[2]
    assert ">>>" in example
    assert re.search(rf"\b{name}\b|\b{name.lower()}\b", example) or name in ("Part", "ScoreModel", "Scorer", "Tally")


def test_the_reference_lists_the_public_names_and_no_other():
    listed = re.findall(r"^::: radocraft\.(\w+)$", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("name", ["Contract", "Policy", "Model", "ScoreModel"])
def test_completing_a_record_shows_none_of_pydantics_names(name):
    kind = getattr(rc, name)
    assert not {*dir(kind)} & PYDANTIC - {*vars(kind)}
    assert {"load"} <= {*dir(kind)}


def test_completing_a_contract_shows_its_fields():
    contract, _ = rc.example_peers(rows=100)
    shown = {name for name in dir(contract) if not name.startswith("_")}
    assert {"name", "label", "shared", "peers", "fingerprint"} <= shown
    assert not shown & PYDANTIC
