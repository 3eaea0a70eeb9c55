"""The paper's tables, where they are, and a small experiment of our own."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

from radocraft.contract import Contract
from radocraft.research.study._arena import Arena
from radocraft.research.study._generator import Kind

needs_data = pytest.mark.skipif(
    "RADOCRAFT_DATA" not in os.environ, reason="RADOCRAFT_DATA does not name the folder of the paper's tables"
)


def small_arena(rows: int = 800, new: int = 4000, seed: int = 0) -> Arena:
    """Two peers with two numbers each, independent inside signature and label; one shared feature, a neutral key."""
    rng = np.random.default_rng(seed)
    joined, test = (_drawn(count, rng) for count in (rows, new))
    names = {"a": ["a0", "a1"], "b": ["b0", "b1"]}
    order = {peer: pa.array(rng.permutation(rows)) for peer in names}
    tables = {peer: joined.select(["label", "region", "key", *own]).take(order[peer]) for peer, own in names.items()}

    def agree(kind: Kind) -> Contract:
        features = {
            peer: {f"{peer}_score": "score"} if kind == "score" else dict.fromkeys(own, kind)
            for peer, own in names.items()
        }
        tree = {
            "name": "small",
            "label": {"column": "label", "positive": "yes", "negative": "no"},
            "shared": [{"name": "region", "categories": ["north", "south", "west"]}],
            "peers": {peer: {"features": held} for peer, held in features.items()},
        }
        return Contract.model_validate(
            tree | ({"key": [{"name": "key", "categories": [*range(50)]}]} if kind == "score" else {})
        )

    return Arena(tables, joined, test, agree)


def _drawn(rows: int, rng: np.random.Generator) -> pa.Table:
    region, words = rng.integers(0, 3, rows), pa.array(["north", "south", "west"])
    positive = rng.random(rows) < np.array([0.2, 0.4, 0.6])[region]
    columns = {name: np.where(positive, 0.8, -0.2) + rng.normal(size=rows) for name in ("a0", "a1", "b0", "b1")}
    label = pa.array(["no", "yes"]).take(pa.array(positive.astype(np.int64)))
    return pa.table(
        {"label": label, "region": words.take(pa.array(region)), "key": rng.integers(0, 50, rows), **columns}
    )
