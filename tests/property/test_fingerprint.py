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
COLUMNS = st.text("abcdefgü é", min_size=1, max_size=5)
WAYS = st.sampled_from(
    [
        {"categories": ["a", 2, True]},
        {"edges": [0, 1.5, 9]},
        {"day_of_year": True},
        {"last_digits": 2},
        {"hash": 365, "secret": "0f" * 32},
    ]
)
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


@st.composite
def trees_of_scores(draw: st.DrawFn) -> dict[str, Any]:
    """Sound contracts of scores."""
    names = draw(st.lists(NAMES.filter(lambda name: "=" not in name), min_size=5, max_size=5, unique=True))
    of = draw(st.lists(COLUMNS.map(lambda name: f"the bank's {name}"), min_size=1, max_size=4, unique=True))
    return {
        "name": draw(NAMES),
        "label": {"column": names[0], "positive": 1, "negative": 0},
        "shared": [{"name": names[1], "edges": [1, 2]}],
        "key": [{"name": names[2], **copy.deepcopy(draw(WAYS))}],
        "peers": {
            "bank": {
                "features": {
                    names[3]: {
                        "kind": "score",
                        "of": of,
                        "model": draw(st.sampled_from(["boosting", "linear"])),
                        "folds": draw(st.integers(2, 19)),
                        "group": "whose is it",
                    }
                },
                "columns": {names[2]: "its own key"},
            },
            "shop": {"features": {names[4]: {"kind": "score", "fitted_elsewhere": True, "column": "old scores"}}},
        },
    }


def bank_score(tree: dict[str, Any]) -> dict[str, Any]:
    """What the bank's score is."""
    (score,) = tree["peers"]["bank"]["features"].values()
    return score


def shop_score(tree: dict[str, Any]) -> dict[str, Any]:
    """What the shop's score is."""
    (score,) = tree["peers"]["shop"]["features"].values()
    return score


@given(tree=trees_of_scores(), one=st.integers(0, 2**32), other=st.integers(0, 2**32))
def test_writing_does_not_change_the_fingerprint_of_scores(tree, one, other):
    second = copy.deepcopy(tree)
    Random(other).shuffle(bank_score(second)["of"])
    first, again = (Contract.parse(written(t, Random(seed))) for t, seed in ((tree, one), (second, other)))
    assert first == again
    assert first.fingerprint == again.fingerprint
    assert first.of_scores


@given(tree=trees_of_scores())
def test_a_contract_of_scores_is_the_same_after_a_round_trip(tree):
    contract = Contract.model_validate(tree)
    for again in (
        Contract.model_validate(contract.model_dump()),
        Contract.model_validate(json.loads(json.dumps(contract.model_dump(mode="json")))),
        Contract.model_validate_json(contract.model_dump_json()),
    ):
        assert again == contract
        assert again.fingerprint == contract.fingerprint
        assert again.key == contract.key
        assert [again.score_of(peer) for peer in again.peers] == [contract.score_of(peer) for peer in contract.peers]


CHANGES_OF_SCORES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "key left out": lambda t: (t.pop("key"), t["peers"]["bank"].pop("columns")),
    "key name": lambda t: (t["key"][0].update(name="another key"), t["peers"]["bank"].pop("columns")),
    "key column": lambda t: t["peers"]["bank"].update(columns={t["key"][0]["name"]: "elsewhere"}),
    "key way": lambda t: t.update(key=[{"name": t["key"][0]["name"], "last_digits": 3}]),
    "key hash": lambda t: t.update(key=[{"name": t["key"][0]["name"], "hash": 366, "secret": "0f" * 32}]),
    "key secret": lambda t: t.update(key=[{"name": t["key"][0]["name"], "hash": 365, "secret": "f0" * 32}]),
    "key edges": lambda t: t.update(key=[{"name": t["key"][0]["name"], "edges": [0, 1.5, 9.5]}]),
    "key categories": lambda t: t.update(key=[{"name": t["key"][0]["name"], "categories": ["a", True, 2]}]),
    "column more": lambda t: bank_score(t)["of"].append("one more"),
    "all columns": lambda t: bank_score(t).pop("of"),
    "model": lambda t: bank_score(t).update(model={"boosting": "linear", "linear": "boosting"}[bank_score(t)["model"]]),
    "folds": lambda t: bank_score(t).update(folds=bank_score(t)["folds"] + 1),
    "persons": lambda t: bank_score(t).update(group="who is it"),
    "no persons": lambda t: bank_score(t).pop("group"),
    "score name": lambda t: rename(
        t["peers"]["bank"]["features"], next(iter(t["peers"]["bank"]["features"])), "a new name"
    ),
    "column of scores": lambda t: shop_score(t).update(column="older scores"),
    "fitted here": lambda t: (shop_score(t).pop("fitted_elsewhere"), shop_score(t).pop("column")),
    "folds of calibration": lambda t: shop_score(t).update(folds=6),
    "persons elsewhere": lambda t: shop_score(t).update(group="who is it"),
}


@pytest.mark.parametrize("change", CHANGES_OF_SCORES)
@given(tree=trees_of_scores())
def test_every_change_of_scores_changes_the_fingerprint(change, tree):
    before = Contract.model_validate(tree).fingerprint
    other = copy.deepcopy(tree)
    CHANGES_OF_SCORES[change](other)
    assert Contract.model_validate(other).fingerprint != before
