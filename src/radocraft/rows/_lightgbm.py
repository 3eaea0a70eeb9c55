"""LightGBM's boosters as text, which is checked before LightGBM reads it.

A booster's own file is text: a header, and the trees as lists of numbers. LightGBM follows these numbers without
looking where they lead. So of each line the numbers are counted and compared here, and what
LightGBM gets is written anew from those that are sound. No line of it can name a file or run anything.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.errors import Tampered

_INTEGER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(inf|nan|[0-9]+\.?[0-9]*(e[+-]?[0-9]{1,4})?)", re.ASCII)
_NAME = re.compile(r"[^\x00-\x20=]+")
_INNER = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
_WHOLE = {"split_feature", "decision_type", "left_child", "right_child", "cat_boundaries", "cat_threshold"}
_UNCHECKED = "predict_disable_shape_check"


@dataclass(frozen=True)
class BoosterText:
    """What a file holds in a booster's place."""

    text: str
    categories: str

    @classmethod
    def of(cls, booster: Any) -> BoosterText:
        """The text of a fitted booster; what cannot be looked at raises ValueError."""
        return cls(sound(booster.model_to_string()), json.dumps(booster.pandas_categorical))

    def booster(self) -> Any:
        """The booster again."""
        import lightgbm  # noqa: PLC0415

        categories = json.loads(self.categories)
        try:
            return lightgbm.Booster(model_str=f"{sound(self.text)}\npandas_categorical:{json.dumps(categories)}\n")
        except lightgbm.basic.LightGBMError as error:
            raise ValueError("LightGBM cannot read it") from error


def is_booster(part: Any) -> bool:
    """Whether it is a booster of LightGBM, asked without importing it."""
    return type(part).__module__ == "lightgbm.basic" and type(part).__name__ == "Booster"


def with_texts(models: list[Any], parts: Iterable[Any]) -> list[Any]:
    """The same models, but texts in place of boosters; ``parts`` are all they are made of."""
    texts = {id(part): BoosterText.of(part) for part in parts if is_booster(part)}
    return copy.deepcopy(models, texts) if texts else models


def with_boosters(parts: Sequence[Any]) -> None:
    """Put boosters in the place of texts, in whatever holds one."""
    for part in parts:
        attributes = getattr(part, "__dict__", {})
        for name, value in [*attributes.items()]:
            if isinstance(value, BoosterText):
                attributes[name] = _restored(value)
        if type(part).__module__ == "lightgbm.sklearn" and _UNCHECKED in _words(attributes):
            raise Tampered("A model in this scorer's file is not to look at how wide rows are. Fit a scorer anew.")


def _restored(booster: BoosterText) -> Any:
    try:
        return booster.booster()
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise Tampered(
            "A tree in this scorer's file leads nowhere, as if somebody had changed it. Fit one anew."
        ) from (error)


def _words(part: Any) -> str:
    """All text in a model's settings."""
    if isinstance(part, dict):
        return " ".join(_words(each) for each in (*part, *part.values()))
    if isinstance(part, list | tuple | set):
        return " ".join(map(_words, part))
    return _words(part.tolist()) if isinstance(part, np.ndarray) else part if isinstance(part, str) else ""


def sound(text: str) -> str:
    """The same header and trees, written anew; ValueError if a number in them leads nowhere."""
    try:
        return _rewritten(text)
    except KeyError as error:
        raise ValueError(f"its text lacks {error.args[0]}") from error


def _rewritten(text: str) -> str:
    header, *trees = _sections(text)
    classes, width = _integer(header, "num_class"), _integer(header, "max_feature_idx") + 1
    objective = _words_of(header, "objective").split(" ")
    per_class = [int(word.partition(":")[2]) for word in objective if word.startswith("num_class:")]
    if (
        classes < 1
        or width < 1
        or not trees
        or _integer(header, "num_tree_per_iteration") != classes
        or len(trees) % classes
    ):
        raise ValueError("its header contradicts itself")
    if per_class != ([classes] if objective[0].startswith("multiclass") else []) or (not per_class and classes > 1):
        raise ValueError("its header contradicts its objective")
    lines = ["tree", f"version={_words_of(header, 'version', 1)}"]
    lines += [f"{name}={classes}" for name in ("num_class", "num_tree_per_iteration")]
    lines += ["label_index=0", f"max_feature_idx={width - 1}"]
    lines += [f"objective={' '.join(objective)}", *_bare(header)]
    lines += [f"{name}={_words_of(header, name, width)}" for name in ("feature_names", "feature_infos")]
    for number, tree in enumerate(trees):
        lines += ["", f"Tree={number}", *_tree(tree, width), ""]
    return "\n".join([*lines, "", "end of trees", "", "parameters:", "", "end of parameters", ""])


def _sections(text: str) -> list[dict[str, str]]:
    """The header and each tree, by name; no name is there twice."""
    sections: list[dict[str, str]] = [{}]
    for line in text.partition("\nend of trees\n")[0].split("\n"):
        name, _, content = line.partition("=")
        if name == "Tree":
            sections.append({})
        elif name in sections[-1]:
            raise ValueError("a line is there twice")
        elif name:
            sections[-1][name] = content
    return sections


def _tree(tree: dict[str, str], width: int) -> list[str]:
    leaves, sets = _integer(tree, "num_leaves"), _integer(tree, "num_cat")
    if leaves < 1 or sets < 0 or tree["is_linear"] != "0":
        raise ValueError("its leaves are linear models" if tree["is_linear"] == "1" else "a tree has no leaves")
    counts = dict.fromkeys(_INNER, leaves - 1) | {"leaf_value": leaves}
    if sets and leaves > 1:
        counts["cat_boundaries"] = sets + 1
        counts["cat_threshold"] = len(tree["cat_threshold"].split())
    written = {name: tree[name].split() for name in counts}
    for name, count in counts.items():
        form = _INTEGER if name in _WHOLE else _NUMBER
        if len(written[name]) != count or not all(form.fullmatch(word) for word in written[name]):
            raise ValueError("a tree has another number of nodes than it says")
    if leaves > 1:
        _check_ways({name: np.array(written[name], dtype=float) for name in counts}, leaves, sets, width)
    lines = [
        f"num_leaves={leaves}",
        f"num_cat={sets}",
        *(f"{name}={' '.join(values)}" for name, values in written.items()),
    ]
    return [*lines, "is_linear=0", f"shrinkage={_number(tree, 'shrinkage')}"]


def _check_ways(numbers: dict[str, Floats], leaves: int, sets: int, width: int) -> None:
    """Children stand below their parents, columns are there, and so are sets of categories."""
    here, column, kind = np.arange(leaves - 1), numbers["split_feature"], numbers["decision_type"]
    for side in ("left_child", "right_child"):
        child: Ints = numbers[side].astype(np.int64)
        if not np.where(child < 0, ~child < leaves, (child > here) & (child < leaves - 1)).all():
            raise ValueError("a tree leads nowhere")
    if not ((column >= 0) & (column < width) & (kind >= 0) & (kind < 16)).all():
        raise ValueError("a tree asks for a column that is not there")
    chosen = numbers["threshold"][kind.astype(np.int64) % 2 == 1]
    if not ((chosen >= 0) & (chosen < sets) & (chosen == np.floor(chosen))).all():
        raise ValueError("a tree asks for categories that are not there")
    if sets:
        bounds, threshold = numbers["cat_boundaries"], numbers["cat_threshold"]
        if bounds[0] != 0 or bounds[-1] != len(threshold) or (np.diff(bounds) < 0).any() or (threshold < 0).any():
            raise ValueError("a tree's categories are not there")


def _bare(header: dict[str, str]) -> list[str]:
    return ["average_output"] if "average_output" in header else []


def _integer(section: dict[str, str], name: str) -> int:
    if not _INTEGER.fullmatch(section[name]):
        raise ValueError(f"{name} is no whole number")
    return int(section[name])


def _number(section: dict[str, str], name: str) -> str:
    if not _NUMBER.fullmatch(section[name]):
        raise ValueError(f"{name} is no number")
    return section[name]


def _words_of(section: dict[str, str], name: str, count: int | None = None) -> str:
    words = section[name].split(" ")
    if (count is not None and len(words) != count) or not all(_NAME.fullmatch(word) for word in words):
        raise ValueError(f"{name} is not what it should be")
    return section[name]
