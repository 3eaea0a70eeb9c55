"""A model file may come from anybody: numbers that do not fit one another are refused where it is read."""

import json

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Policy, learn
from radocraft.errors import FileError

CONTRACT = Contract.parse("""
name = "bent"
label = { column = "y", positive = 1, negative = 0 }
peers.one.features = { u = "numeric", bend = { kind = "spline", knots = 4 } }
peers.two.features = { v = "numeric" }
""")


@pytest.fixture(scope="module")
def kept() -> str:
    """A model's file."""
    columns = dict(zip(("u", "bend", "v"), np.random.default_rng(0).normal(size=(3, 600)), strict=True))
    table = pa.table({"y": np.arange(600) % 2, **columns})
    return learn(
        [noisy_part(table, CONTRACT, peer, Policy.exact()) for peer in CONTRACT.peers], CONTRACT
    ).model_dump_json()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("effects", "one"), 1e200),
        (("coefficients", 0, "raw"), -1e308),
        (("coefficients", 0, "scale"), 0.0),
        (("constants", "one", "bend"), [4.0, 3.0, 2.0, 1.0]),
        (("constants", "one", "bend"), [0.0, 0.0, 1.0]),
        (("constants", "one", "bend"), [1.0, 2.0, 3.0, 4.0, 5.0]),
        (("constants", "one", "u"), [0.0]),
        (("constants", "one", "u"), [0.0, 0.0]),
        (("constants", "one", "v"), [0.0, 1.0]),
        (("constants", "three"), {}),
        (("blocks", "weights", 0), -1.0),
        (("blocks", "weights"), [0.0, 0.0]),
    ],
)
def test_numbers_that_do_not_fit_are_refused(kept: str, path: tuple[str, ...], value: object, tmp_path) -> None:  # type: ignore[no-untyped-def]
    tree = json.loads(kept)
    (tmp_path / "model.json").write_text(json.dumps(tree))
    assert Model.load(tmp_path / "model.json").peers == ("one", "two")
    *steps, last = path
    place = tree
    for step in steps:
        place = place[step]
    place[last] = value
    (tmp_path / "model.json").write_text(json.dumps(tree))
    with pytest.raises(FileError, match="not a model"):
        Model.load(tmp_path / "model.json")
