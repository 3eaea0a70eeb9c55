"""A bank and an insurer with the same customers and no common id: made-up tables with a known truth.

Every customer has an age, a region and, hidden from both peers, a thriftiness
that a few of their columns reflect, so that columns of the two peers are
related inside blocks as they are in life. The label follows a logistic model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.errors import FileError
from radocraft.files import check_free, writing

CONTRACT = """\
name = "default within a year"

[label]
column = "defaulted"
positive = "yes"
negative = "no"

[[shared]]
name = "region"
categories = ["north", "east", "south", "west"]

[[shared]]
name = "age"
edges = [30, 45, 60]

[peers.bank.features]
income = "numeric"
balance = "numeric"
overdrafts = "numeric"
has_mortgage = "boolean"
job = { kind = "categorical", categories = ["clerk", "farmer", "nurse", "teacher"] }

[peers.insurer.features]
premium = "numeric"
claims = "numeric"
car_age = "numeric"
smoker = "boolean"
cover = { kind = "categorical", categories = ["basic", "full"] }

[peers.insurer.columns]
age = "age_at_signing"
"""

REGIONS = np.array(["north", "east", "south", "west"])
JOBS = np.array(["clerk", "farmer", "nurse", "teacher"])
COVERS = np.array(["basic", "full"])


def example_peers(rows: int = 1000, seed: int = 0) -> tuple[Contract, dict[str, pa.Table]]:
    """The contract of the example, and the table each peer holds, in an order of its own.

    Examples
    --------
    >>> contract, tables = example_peers(rows=100)
    >>> tables["insurer"].column_names
    ['defaulted', 'region', 'age_at_signing', 'premium', 'claims', 'car_age', 'smoker', 'cover']
    """
    contract = Contract.parse(CONTRACT)
    return contract, deal(contract, example_people(rows, seed), np.random.default_rng([seed, 1]))


def deal(contract: Contract, people: pa.Table, rng: np.random.Generator) -> dict[str, pa.Table]:
    """Give every peer its own columns of a joined table, the shared ones and the label, in an order of its own."""
    tables = {}
    for peer, entry in contract.peers.items():
        names = [contract.label.column, *(shared.name for shared in contract.shared), *entry.features]
        table = people.select(names).rename_columns([contract.column_of(peer, name) for name in names])
        tables[peer] = table.take(pa.array(rng.permutation(people.num_rows)))
    return tables


def write_example(folder: str | Path, rows: int = 10_000, *, replace: bool = True) -> list[Path]:
    """Write both peers' tables, the contract and new people to score to a folder; ``replace`` what is there or not."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder '{target}': {error.strerror}. Choose another place.") from error
    _, tables = example_peers(rows)
    paths = [target / name for name in ("contract.toml", "bank.csv", "insurer.parquet", "people.csv")]
    if not replace:
        for path in paths:
            check_free(path)
    with writing(paths[0]) as file:
        file.write(CONTRACT.encode())
    with writing(paths[1]) as file:
        pa.csv.write_csv(tables["bank"], file)
    with writing(paths[2]) as file:
        pq.write_table(tables["insurer"], file)
    with writing(paths[3]) as file:
        pa.csv.write_csv(example_people(1000, seed=1).drop_columns(["defaulted"]), file)
    return paths


def example_people(rows: int = 1000, seed: int = 0) -> pa.Table:
    """The joined table that nobody holds, under the contract's names."""
    rng = np.random.default_rng([seed, 0])
    age = rng.integers(18, 85, rows)
    region = rng.integers(0, 4, rows)
    thrift = rng.normal(size=rows)
    years = (age - 50) / 20
    income = 32_000 + 6_000 * years + 2_500 * region + 9_000 * rng.normal(size=rows)
    balance = 4_000 + 1_500 * years + 1_800 * thrift + 2_500 * rng.normal(size=rows)
    overdrafts = rng.poisson(np.exp(0.1 - 0.5 * thrift))
    mortgage = rng.random(rows) < 0.35
    job = rng.integers(0, 4, rows)
    premium = 700 + 60 * region + 90 * rng.normal(size=rows)
    claims = rng.poisson(np.exp(-0.4 - 0.3 * thrift + 0.3 * (region == 2)))
    car_age = np.clip(6 - 1.2 * thrift + 3 * rng.normal(size=rows), 0, None)
    smoker = rng.random(rows) < 0.25
    cover = rng.integers(0, 2, rows)
    columns = {
        "income": income.round(),
        "balance": balance.round(),
        "overdrafts": overdrafts,
        "has_mortgage": mortgage,
        "job": JOBS[job],
        "premium": premium.round(2),
        "claims": claims,
        "car_age": car_age.round(1),
        "smoker": smoker,
        "cover": COVERS[cover],
    }
    risk = true_log_odds(columns, age, region)
    defaulted = np.where(rng.random(rows) < 1 / (1 + np.exp(-risk)), "yes", "no")
    return pa.table({"defaulted": defaulted, "region": REGIONS[region], "age": age, **columns})


def true_log_odds(columns: dict[str, Any], age: Ints, region: Ints) -> Floats:
    """The truth: log-odds of a default, linear in both peers' columns."""
    money = -0.9 * (columns["income"] - 34_000) / 10_000 - 0.7 * (columns["balance"] - 4_000) / 3_500
    habits = 0.5 * columns["overdrafts"] + 0.7 * columns["claims"] + 0.13 * (columns["car_age"] - 6)
    flags = 0.6 * columns["has_mortgage"] + 0.9 * columns["smoker"] + 0.7 * (columns["cover"] == "basic")
    trades = 0.6 * (columns["job"] == "farmer") - 0.4 * (columns["job"] == "teacher")
    place = 0.4 * (region == 2) - 0.02 * (age - 50) + 0.5 * (columns["premium"] - 800) / 100
    out: Floats = -2.6 + money + habits + flags + trades + place
    return out
