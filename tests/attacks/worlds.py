"""Tables and contracts to attack, and what an attacker gets to see of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from radocraft import Contract, Part, Policy, craft, release
from radocraft.gate._noise import Noise
from radocraft.gate._release import Release
from radocraft.sums._cells import ROLLED, Cells
from radocraft.sums._tally import Tally

EXACT = Policy.exact(10)
DEFAULT = Policy()

RICH = """
name = "risk"
label = LABEL
shared = [
  { name = "region", categories = ["north", "south"] },
  { name = "age", edges = [30, 50] },
  { name = "size", edges = [1, 2], encoding = "ordinal" },
]
[peers.bank.features]
income = "numeric"
score = { kind = "numeric", centre = 3, scale = 2 }
owner = "boolean"
job = { kind = "categorical", categories = ["clerk", "nurse", "pilot"] }
curve = { kind = "spline", knots = 4 }
bend = { kind = "spline", knots = [0, 1, 3] }
both = { kind = "interact", of = ["score", "region"] }
"""
LABELS = {
    "two values": '{ column = "bad", positive = "yes", negative = "no" }',
    "classes": '{ column = "bad", classes = ["yes", "no", "so"] }',
    "a number": '{ column = "loss", kind = "numeric" }',
    "bins": '{ column = "loss", kind = "numeric", edges = [0.0], centre = 0, scale = 1 }',
}


def rich_contract(label: str = "two values") -> Contract:
    """With a column of every kind."""
    return Contract.parse(RICH.replace("LABEL", LABELS[label]))


def rich_table(rows: int = 400, seed: int = 0, label: str = "two values") -> pa.Table:
    """A bank's customers; the first row is an outlier in everything, and alone with its job and its size."""
    rng = np.random.default_rng(seed)
    words = ["yes", "no", "so"] if label == "classes" else ["yes", "no"]
    size = rng.choice([0.5, 1.5], rows)
    job = rng.choice(["clerk", "nurse"], rows, p=[0.9, 0.1]).astype(object)
    income = rng.lognormal(10.0, 0.5, rows)
    curve, loss = rng.normal(size=rows), rng.normal(size=rows)
    job[0], size[0], income[0], curve[0], loss[0] = "pilot", 9.0, 1e7, 40.0, 500.0
    gone = rng.random(rows) < 0.1
    return pa.table(
        {
            "who": np.arange(rows) // 3,
            "bad": rng.choice(words, rows),
            "loss": loss,
            "region": rng.choice(["north", "south"], rows, p=[0.7, 0.3]),
            "age": rng.integers(18, 80, rows),
            "size": size,
            "income": income,
            "score": pa.array(np.where(np.arange(rows) == 0, -90.0, rng.normal(3, 2, rows)), mask=gone),
            "owner": rng.random(rows) < 0.4,
            "job": job.tolist(),
            "curve": curve,
            "bend": rng.normal(1, 1, rows),
        }
    )


def without(table: pa.Table, *rows: int) -> pa.Table:
    """The table with some rows taken out."""
    return table.take([at for at in range(table.num_rows) if at not in rows])


def passed(
    table: pa.Table, contract: Contract, policy: Policy, noise: Noise | None = None, peer: str = "bank"
) -> Release:
    """What the gate lets through of a table."""
    tally = craft(table, contract, peer, bounds=policy.bounds, noise=noise)
    return release(tally, contract, policy, noise)


def seen(tally: Tally, contract: Contract, policy: Policy, noise: Noise | None = None) -> Cells:
    """What a learner reads in the part of a tally."""
    return Part.of(release(tally, contract, policy, noise)).cells(contract)


def released(tally: Tally, contract: Contract, policy: Policy, count: int, *key: object) -> list[Cells]:
    """What leaves in so many releases of one table."""
    return [release(tally, contract, policy, Noise.seeded(*key, at)).cells for at in range(count)]


def cell_of(cells: Cells, codes: np.ndarray, label: int) -> int:
    """The finest cell that a signature is in."""
    around = ((cells.codes == codes) | (cells.codes == ROLLED)).all(axis=1) & (cells.labels == label)
    return int(np.argmax(np.where(around, (cells.codes != ROLLED).sum(axis=1), -1)))


def rms(errors: object) -> float:
    """The root of the mean of the squares."""
    return float(np.sqrt(np.mean(np.square(np.asarray(errors, dtype=np.float64)))))
