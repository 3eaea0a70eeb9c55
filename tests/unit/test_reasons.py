"""Why a block is held back: the reviewer is told, the part is not."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from radocraft.contributors import find_contributors
from radocraft.policy.rules import Dominance

from radocraft import Contract, Part, Policy, craft, release
from radocraft.gate._release import Release
from radocraft.rows.engines._opening import open_source

CONTRACT = Contract.parse(
    'name = "n"\nlabel = { column = "y", positive = 1, negative = 0 }\n'
    'shared = [{ name = "place", categories = ["a", "b", "c", "d"] }]\npeers.bank.features = { x = "numeric" }'
)


def released(sizes: dict[tuple[str, int], int], policy: Policy, first: float = 1.0) -> Release:
    """Blocks of these sizes, by place and label; the first row of all has its own value."""
    keys = [key for key, count in sizes.items() for _ in range(count)]
    x = np.linspace(1.0, 2.0, len(keys))
    x[0] = first
    rows = open_source(pa.table({"place": [place for place, _ in keys], "y": [label for _, label in keys], "x": x}))
    tally = craft(rows, CONTRACT, "bank")
    return release(tally, CONTRACT, policy, find_contributors(rows, CONTRACT, "bank", tally, policy))


def reasons(release: Release) -> dict[tuple[str, str], str]:
    return {(one.signature[0], one.label): one.reason for one in release.held_back}


SIZES = {("a", 1): 50, ("a", 0): 60, ("b", 1): 50, ("b", 0): 60, ("c", 1): 4, ("c", 0): 70, ("d", 1): 3, ("d", 0): 70}


def test_few_rows_and_what_has_to_go_along() -> None:
    told = released(SIZES, Policy(10))
    found = reasons(told)
    assert found["c", "1"] == found["d", "1"] == "fewer than 10 rows"
    assert {*found} == {("c", "1"), ("d", "1"), ("a", "1")}  # seven rows alone would be too few
    assert found["a", "1"] == "what is rolled up beside it would be too small alone"
    assert len(told.held_back) == told.blocks_rolled_up
    assert all(one.leaves_as == ("any",) for one in told.held_back)


def test_a_few_large_values() -> None:
    policy = Policy(10, dominance=Dominance(share=0.5))
    assert reasons(released(SIZES, policy, first=100.0))["a", "1"] == "few values, or a few large ones, make up a sum"


def test_one_label_only() -> None:
    sizes = {("a", 1): 50, ("a", 0): 60, ("b", 1): 50, ("c", 0): 60}
    found = reasons(released(sizes, Policy(10, mixed_labels=True)))
    assert found["b", "1"] == found["c", "0"] == "all rows of its signature have one label"


def test_no_signature_at_all() -> None:
    found = reasons(released(SIZES, Policy(10, signatures="labels-only")))
    assert Counter(found.values()) == {"the policy lets no signature leave": len(SIZES)}


@pytest.mark.parametrize("word", ["held_back", "fewer than 10 rows"])
def test_nothing_of_it_leaves(word: str) -> None:
    told = released(SIZES, Policy(10))
    part = Part.seal(told)
    assert told.held_back
    assert word not in json.dumps(part.metadata)
    assert word not in str(part.table.to_pydict())
