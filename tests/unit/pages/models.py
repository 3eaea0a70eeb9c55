"""Models to report on: three peers, splines, a product, rolled-up blocks, and names that look like markup."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from radocraft import Contract, Model, Part, Policy, learn, share
from radocraft.arrays import Floats

kinds = np.array(["low", "middle", "high"])
LONG = "Second National Pharmacy & Sons"
Values = Callable[[Floats, Floats], Any]
CONTRACT = Contract.parse("""
name = "back <within> 30 days & more"
label = { column = "back", positive = true, negative = false }
shared = [
  { name = "age", edges = [30, 50, 70], encoding = "ordinal" },
  { name = "region", categories = ["north", "east", "<b>south</b>", "isles"] },
]
[peers.clinic.features]
pressure = { kind = "spline", knots = 4 }
weight = { kind = "spline", knots = [50, 65, 80, 110] }
fever = "boolean"
both = { kind = "interact", of = ["fever", "age"] }
[peers.pharmacy.features]
doses = "numeric"
drug = { kind = "categorical", categories = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] }
[peers.insurer.features]
"claims </script><script>alert(1)</script>" = "numeric"
""")


def rows(count: int = 2000) -> pa.Table:
    rng = np.random.default_rng(0)
    pressure, claims, fever = rng.normal(125, 15, count), rng.gamma(2, 5000, count), rng.random(count) < 0.2
    age = rng.uniform(18, 95, count)
    score = ((pressure - 125) / 15) ** 2 - 1 + (age - 50) / 30 + fever + (claims - 10_000) / 9000
    return pa.table(
        {
            "back": score + rng.normal(size=count) > 0.3,
            "age": age,
            "region": rng.choice(["north", "east", "<b>south</b>", "isles"], count, p=[0.5, 0.3, 0.19, 0.01]),
            "pressure": pressure,
            "weight": rng.normal(75, 12, count),
            "fever": fever,
            "doses": 0.01 * rng.poisson(3, count),
            "drug": rng.choice([*"abcdefghijk"], count),
            "claims </script><script>alert(1)</script>": claims,
        }
    )


@cache
def parts() -> list[Part]:
    table, rng = rows(), np.random.default_rng(1)
    shuffled = {peer: table.take(rng.permutation(len(table))) for peer in CONTRACT.peers}
    return [exact(own, CONTRACT, peer) for peer, own in shuffled.items()]


def exact(table: pa.Table, contract: Contract, peer: str) -> Part:
    """A part without noise, so that every run gives the same report."""
    return share(table, contract, peer, policy=Policy.exact(10))


def of_label(label: str, values: Values) -> Model:
    """A model of another label, with a spline, from the same columns."""
    text = f"""
name = "other labels"
label = {{ column = "back", {label} }}
shared = [{{ name = "region", categories = ["north", "east", "<b>south</b>", "isles"] }}]
peers.clinic.features = {{ pressure = {{ kind = "spline", knots = 4 }}, fever = "boolean" }}
peers.pharmacy.features = {{ doses = "numeric", weight = "numeric" }}
"""
    contract, table = Contract.parse(text), rows()
    table = table.set_column(0, "back", values(table.column("pressure").to_numpy(), table.column("weight").to_numpy()))
    return learn([exact(table, contract, peer) for peer in contract.peers], contract)


@cache
def learned(how: str = "matching") -> Model:
    """By matching, by drl, or with linked rows; of classes, or of a number."""
    if how == "classes":
        return of_label(
            'classes = ["low", "middle", "high"]', lambda p, w: pa.array(kinds[np.digitize(p + w, [190, 210])])
        )
    if how == "number":
        return of_label('kind = "numeric"', lambda p, w: pa.array(1000 + (p - 125) ** 2 / 10 + w))
    if how == "drl":
        return learn(parts(), CONTRACT, method="drl")
    if how == "linked":
        return learn(parts(), CONTRACT, linked=rows().slice(0, 300))
    return learn(parts(), CONTRACT, caution=1.0)


def renamed(model: Model) -> Model:
    """The same with a peer of a long name."""
    return Model.model_validate_json(model.model_dump_json().replace("pharmacy", LONG))
