"""Scores of partial views: what an absent peer adds, from the finest level that was seen with every label."""

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Policy, learn

CONTRACT = Contract.parse("""
name = "partial"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["a", "b"] }, { name = "age", edges = [30, 50] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
""")


def people(rows: int = 900) -> dict[str, np.ndarray]:
    """In region a the young have one label alone; in region b nobody is old."""
    rng = np.random.default_rng(0)
    region, age, y = rng.choice(["a", "b"], rows), rng.choice([20, 40, 60], rows), rng.integers(0, 2, rows)
    y[(region == "a") & (age == 20)] = 1
    age[(region == "b") & (age == 60)] = 40
    u, v = rng.normal(size=(2, rows)) + 2 * y + (age / 20)
    return {"y": y, "region": region, "age": age, "u": u, "v": v}


@pytest.fixture(scope="module")
def model() -> Model:
    columns = people()
    tables = {
        peer: pa.table({name: columns[name] for name in ("y", "region", "age", own)})
        for peer, own in (("one", "u"), ("two", "v"))
    }
    return learn([noisy_part(tables[peer], CONTRACT, peer, Policy.exact(1)) for peer in tables], CONTRACT)


def filled(model: Model, region: str | None, age: int | None) -> float:
    """The mean of what peer two adds over the rows of a region and an age, or of all: the average of these blocks."""
    columns = people()
    own = np.ones(len(columns["y"]), dtype=bool)
    if region is not None:
        own &= columns["region"] == region
    if age is not None:
        own &= columns["age"] == age
    (v,) = (c for c in model.coefficients if c.name == "v")
    return float(v.raw * (columns["v"][own].mean() - v.centre))


@pytest.mark.parametrize(
    ("region", "age", "level"),
    [
        ("a", 40, ("a", 40)),  # both labels there
        ("a", 20, ("a", None)),  # one label alone: of that label's mean the absent peer would tell the label
        ("b", 60, ("b", None)),  # nobody at all
        ("island", 40, (None, None)),  # a region that nobody has
    ],
)
def test_an_absent_peer_adds_its_mean_where_both_labels_were_seen(
    model: Model, region: str, age: int, level: tuple[str | None, int | None]
) -> None:
    row = {"region": [region], "age": [age], "u": [1.5]}
    partial, whole = model.predict(pa.table(row)), model.predict(pa.table({**row, "v": [0.0]}))
    (v,) = (c for c in model.coefficients if c.name == "v")
    added = partial.score[0] - (whole.score[0] - v.raw * (0.0 - v.centre))
    assert added == pytest.approx(filled(model, *level), rel=1e-9)
    assert partial.view == ("one",)


def test_one_label_alone_would_have_told_it(model: Model) -> None:
    assert abs(filled(model, "a", 20) - filled(model, "a", None)) > 0.1


def test_nothing_is_added_for_a_peer_that_is_there(model: Model) -> None:
    row = pa.table({"region": ["a", "a"], "age": [20, 20], "u": [1.0, 2.0], "v": [3.0, 3.0]})
    scores = model.predict(row).score
    (u,) = (c for c in model.coefficients if c.name == "u")
    assert scores[1] - scores[0] == pytest.approx(u.raw)


@pytest.mark.parametrize("gap", [np.nan, None])
def test_a_column_both_shared_and_private_may_lack_a_value(gap: float | None) -> None:
    """The code is that of who has none, and the value counts as the mean."""
    text = CONTRACT.model_dump(mode="json")
    text["peers"]["one"] |= {"features": {"years": {"kind": "numeric"}}, "columns": {"years": "age"}}
    contract, columns = Contract.model_validate(text), people()
    ages = [None if at % 9 == 0 else float(age) for at, age in enumerate(columns["age"])]
    table = pa.table({**{name: columns[name] for name in ("y", "region", "v")}, "age": pa.array(ages, pa.float64())})
    tables = {"one": table.drop_columns(["v"]), "two": table}
    twice = learn([noisy_part(tables[peer], contract, peer, Policy.exact(1)) for peer in tables], contract)
    row = {"region": ["a"], "age": pa.array([gap], pa.float64(), from_pandas=False), "v": [1.0]}
    by_name = {c.name: c for c in twice.coefficients}
    v = by_name["v"]
    expected = twice.intercept + by_name["region=a"].raw + by_name["age=missing"].raw + v.raw * (1.0 - v.centre)
    assert twice.predict(pa.table(row)).score[0] == pytest.approx(expected, rel=1e-9)
    known = twice.predict(pa.table({**row, "age": [40.0]})).score[0]
    years, middle = by_name["years"], by_name["age=[30, 50)"]
    assert known - expected == pytest.approx(
        middle.raw - by_name["age=missing"].raw + years.raw * (40.0 - years.centre), rel=1e-6
    )
