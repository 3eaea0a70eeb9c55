"""A messy table under a contract that says how it is read is the clean one, whatever engine holds it."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engines.test_same_tally import ENGINES, hold
from tests.unit.rows.people import lines

from radocraft import Contract, craft
from radocraft.rows import open_source, score_rows
from radocraft.rows._columns import read_columns
from radocraft.rows._view import View

MARKS = ("NA", " - ", "")
AGREED = """
name = "cleaning"
label = { column = "bad", positive = true, negative = false }

[[shared]]
name = "region"
categories = ["North", "Süd"]

[[shared]]
name = "born"
date = "year"
edges = [1970, 1990]

[[shared]]
name = "opened"
date = "days"
at = 2025-01-01
edges = [1000, 4000]
"""
COLUMNS = """
[peers.bank.features]
balance = { kind = "numeric", centre = 0, scale = 1000 }
dollars = { kind = "log", centre = 0, scale = 5 }
since = { kind = "date", part = "month", centre = 6, scale = 3 }
married = "boolean"
job = { kind = "categorical", categories = ["Clerk", "farmer"] }
level = { kind = "categorical", categories = ["low", "high"] }
"""
DIRTY = """
[peers.bank]
missing = ["NA", "-", "", -999]

[peers.bank.columns]
bad = "Ausfall"
since = "opened"

[peers.bank.cleaning]
Ausfall = { fold = true, values = { ja = true, nein = false } }
region = { fold = true, values = { S = "süd" } }
opened = { format = "%d.%m.%Y" }
balance = { decimal = "," }
dollars = { decimal = "." }
married = { values = { J = true, N = false } }
job = { fold = true }
level = { values = { 1 = "low", 2 = "high" } }
"""
SPELLED = {"North": ("North", "NORTH", " north"), "Süd": ("süd", "S", "SÜD "), "Clerk": ("clerk", "CLERK")}


def spelled(value: Any, at: int) -> str:
    """As a person would write it, each time in another way."""
    ways = SPELLED.get(value, (str(value),))
    return MARKS[at % 3] if value is None else ways[at % len(ways)]


def euros(value: float | None, at: int) -> str:
    """1.234,5 or 1234,5."""
    text = f"{value:,.2f}" if at % 2 else f"{value:.2f}"
    return text.translate(str.maketrans(",.", ".,"))


def tables(rows: int = 240) -> tuple[pa.Table, pa.Table]:
    """The same customers, clean and as they came."""
    rng = np.random.default_rng(3)

    def gaps(values: Any) -> list[Any]:
        return [None if gone else value for value, gone in zip(values, rng.random(rows) < 0.1, strict=True)]

    def pick(*choices: Any) -> list[Any]:
        return [choices[at] for at in rng.integers(0, len(choices), rows)]

    days = [datetime.date(1955, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 25_000, rows)]
    clean = {
        "bad": pick(True, False),
        "region": gaps(pick("North", "Süd", "elsewhere")),
        "born": gaps(days),
        "opened": gaps(reversed(days)),
        "balance": gaps([round(float(x), 2) for x in rng.normal(0, 20_000, rows)]),
        "dollars": gaps([round(float(x), 2) for x in rng.normal(0, 20_000, rows)]),
        "married": gaps(pick(True, False)),
        "job": gaps(pick("Clerk", "farmer", "none of them")),
        "level": gaps(pick("low", "high")),
    }
    messy = {
        "Ausfall": [("ja", "JA ")[at % 2] if bad else ("nein", "Nein")[at % 2] for at, bad in enumerate(clean["bad"])],
        "region": list(map(spelled, clean["region"], range(rows))),
        "born": [
            spelled(day, at) if day is None else f"{day}{(' 12:30:00', '')[at % 2]}"
            for at, day in enumerate(clean["born"])
        ],
        "opened": [spelled(day, at) if day is None else f"{day:%d.%m.%Y}" for at, day in enumerate(clean["opened"])],
        "balance": [spelled(x, at) if x is None else euros(x, at) for at, x in enumerate(clean["balance"])],
        "dollars": [spelled(x, at) if x is None else f"{x:,}" for at, x in enumerate(clean["dollars"])],
        "married": [spelled(x if x is None else "NJ"[x], at) for at, x in enumerate(clean["married"])],
        "job": list(map(spelled, clean["job"], range(rows))),
        "level": [-999 if x is None else 1 + (x == "high") for x in clean["level"]],
    }
    clean["since"] = clean["opened"]
    return pa.table(clean), pa.table(messy)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_messy_table_has_the_tally_of_the_clean_one(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    clean, messy = tables()
    expected = craft(clean, Contract.parse(AGREED + COLUMNS), "bank")
    found = craft(hold(engine, messy, tmp_path, request), Contract.parse(AGREED + DIRTY + COLUMNS), "bank")
    assert len(expected.rows) > 60
    for name in ("codes", "labels", "rows", "sums", "present", "moments"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_scorers_and_views_find_the_clean_table_and_hand_columns_through_as_they_are(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    clean, messy = tables()
    source = hold(engine, messy, tmp_path, request)
    scores = '\n[peers.bank.features]\nbank_score = { kind = "score", model = "linear", folds = 2 }'
    dirty = Contract.parse(AGREED + DIRTY.replace('since = "opened"\n', "") + scores)
    lower = clean.drop_columns(["since"])
    for name in ("region", "job"):  # words reach a model folded
        lower = lower.set_column(lower.column_names.index(name), name, pc.utf8_lower(clean[name]))
    agreed = Contract.parse(AGREED.replace('"North", "Süd"', '"north", "süd"') + scores)
    expected, scorer = score_rows(lower, agreed, "bank")
    found, fitted = score_rows(source, dirty, "bank")
    assert {c.name: c.how for c in fitted.columns} == {c.name: c.how for c in scorer.columns}
    np.testing.assert_array_equal([line[:2] for line in lines(found)], [line[:2] for line in lines(expected)])
    again = fitted.score(source, keep=("region", "balance"))
    raw = read_columns(source, ["region", "balance"]).to_pydict()
    assert {name: sorted(again[name].to_pylist()) for name in raw} == {name: sorted(raw[name]) for name in raw}
    view = View.of(Contract.parse(AGREED + DIRTY + COLUMNS), ("bank",), source)
    plain = View.of(Contract.parse(AGREED + COLUMNS), ("bank",), open_source(clean))
    values = [np.vstack([each.values(batch) for batch in each.batches()]) for each in (view, plain)]
    one, other = (value[np.lexsort(np.nan_to_num(value).T)] for value in values)
    np.testing.assert_allclose(one, other, rtol=1e-14)  # the last bit of a logarithm is Java's own
