"""The fingerprint: blind to how a contract is written, and to nothing else."""

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radocraft.contract._contract import Contract

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
NUMBERS = st.integers(-50, 50) | st.floats(-50, 50)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Sound contracts, as TOML would give them."""
    names = draw(st.lists(NAMES.filter(lambda name: "=" not in name), min_size=6, max_size=6, unique=True))
    edges = draw(st.lists(st.integers(-50, 50), min_size=2, max_size=4, unique=True))
    categories = draw(st.lists(st.integers(-9, 9) | st.sampled_from(["a", "ü b", '"']), min_size=2, unique_by=str))
    return {
        "name": draw(NAMES),
        "label": {"column": names[0], "positive": 1, "negative": draw(st.sampled_from([0, -1, "no", 0.5]))},
        "shared": [
            {"name": names[1], "edges": sorted(edges)},
            {"name": names[2], "categories": categories, "encoding": draw(st.sampled_from(["one-hot", "ordinal"]))},
        ],
        "peers": {
            "bank": {
                "features": {
                    names[3]: {"kind": "numeric", "centre": draw(NUMBERS), "scale": draw(st.integers(1, 9))},
                    names[4]: {"kind": "categorical", "categories": list(reversed(categories))},
                },
                "columns": {names[1]: "theirs"},
            },
            "shop": {"features": {names[5]: {"kind": draw(st.sampled_from(["numeric", "boolean"]))}}},
        },
        "intercept": draw(st.booleans()),
    }


def written(tree: dict[str, Any], random: Random) -> str:
    """The tree as TOML, in some order of keys, with some comments, each number in some form."""

    def value(entry: Any) -> str:
        if isinstance(entry, dict):
            items = [f"{json.dumps(key, ensure_ascii=False)} = {value(held)}" for key, held in shuffled(entry)]
            return "{ " + ", ".join(items) + " }"
        if isinstance(entry, list):
            return f"[{random.choice(['', ' '])}" + f",{random.choice(['', '  '])}".join(map(value, entry)) + "]"
        if isinstance(entry, bool | str):
            return json.dumps(entry, ensure_ascii=False)
        if isinstance(entry, int):
            return random.choice([f"{entry}", f"{float(entry)!r}", f"{entry}.00", f"{entry}e0"])
        return repr(entry)

    def shuffled(entry: dict[str, Any]) -> list[tuple[str, Any]]:
        return random.sample(list(entry.items()), len(entry))

    lines = []
    for key, entry in shuffled(tree):
        lines += [*random.choice([[], ["# a remark"], [""]]), f"{key} = {value(entry)}{random.choice(['', ' # so'])}"]
    return "\n".join(lines)


@given(tree=trees(), one=st.integers(0, 2**32), other=st.integers(0, 2**32))
def test_writing_does_not_change_the_fingerprint(tree, one, other):
    first, second = (Contract.parse(written(tree, Random(seed))) for seed in (one, other))
    assert first == second
    assert first.fingerprint == second.fingerprint


def rename(table: dict[str, Any], old: str, new: str) -> None:
    table[new] = table.pop(old)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda t: t.update(name=t["name"] + "!"),
    "label column": lambda t: t["label"].update(column="the label"),
    "positive value": lambda t: t["label"].update(positive=2),
    "positive as text": lambda t: t["label"].update(positive="1"),
    "negative value": lambda t: t["label"].update(negative="other"),
    "values swapped": lambda t: t["label"].update(positive=t["label"]["negative"], negative=t["label"]["positive"]),
    "intercept": lambda t: t.update(intercept=not t["intercept"]),
    "shared name": lambda t: t["shared"][1].update(name="renamed"),
    "shared order": lambda t: t["shared"].reverse(),
    "shared left out": lambda t: t["shared"].pop(),
    "edge moved": lambda t: t["shared"][0]["edges"].__setitem__(-1, t["shared"][0]["edges"][-1] + 0.5),
    "edge added": lambda t: t["shared"][0]["edges"].append(99),
    "category added": lambda t: t["shared"][1]["categories"].append("z"),
    "category order": lambda t: t["shared"][1]["categories"].reverse(),
    "encoding": lambda t: t["shared"][1].update(
        encoding={"one-hot": "ordinal", "ordinal": "one-hot"}[t["shared"][1]["encoding"]]
    ),
    "peer name": lambda t: rename(t["peers"], "shop", "store"),
    "peer left out": lambda t: t["peers"].pop("shop"),
    "feature name": lambda t: rename(
        t["peers"]["shop"]["features"], next(iter(t["peers"]["shop"]["features"])), "renamed"
    ),
    "feature kind": lambda t: t["peers"]["shop"]["features"].update(
        {name: {"kind": "categorical", "categories": [1]} for name in t["peers"]["shop"]["features"]}
    ),
    "feature added": lambda t: t["peers"]["shop"]["features"].update(more={"kind": "boolean"}),
    "centre": lambda t: next(iter(t["peers"]["bank"]["features"].values())).update(centre=51),
    "scale": lambda t: next(iter(t["peers"]["bank"]["features"].values())).update(scale=0.25),
    "centre from data": lambda t: t["peers"]["bank"]["features"].update(
        {next(iter(t["peers"]["bank"]["features"])): {"kind": "numeric"}}
    ),
    "private categories": lambda t: list(t["peers"]["bank"]["features"].values())[1]["categories"].reverse(),
    "column": lambda t: t["peers"]["bank"]["columns"].update({t["shared"][0]["name"]: "ours"}),
    "column mapped": lambda t: t["peers"]["shop"].update(columns={t["label"]["column"]: "outcome"}),
}


@pytest.mark.parametrize("change", CHANGES)
@given(tree=trees())
def test_every_change_of_meaning_changes_the_fingerprint(change, tree):
    before = Contract.model_validate(tree).fingerprint
    other = copy.deepcopy(tree)
    CHANGES[change](other)
    assert Contract.model_validate(other).fingerprint != before
