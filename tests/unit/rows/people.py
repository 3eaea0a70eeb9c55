"""A peer's customers, for tests of scores: numbers, a date, a truth value, a category, gaps, and a key."""

import datetime

import numpy as np
import pyarrow as pa

from radocraft import Contract
from radocraft.rows import ScoredRows

SECRET = b"shared among the peers, not with the learner"


def agree(score: str = '"score"', key: str = "", label: str = "positive = 1, negative = 0") -> Contract:
    """A contract of scores; ``score`` is the bank's."""
    return Contract.parse(f"""
name = "loans"
label = {{ column = "bad", {label} }}
shared = [{{ name = "age", edges = [30, 45, 60] }}]
{key}
[peers.bank.features]
risk = {score}
[peers.shop.features]
habit = "score"
""")


def people(rows: int = 600, seed: int = 0) -> pa.Table:
    """Customers of whom income, job and since tell something of ``bad``."""
    rng = np.random.default_rng(seed)
    bad = rng.integers(0, 2, rows)
    first = datetime.date(2020, 1, 1)
    job = np.where(rng.random(rows) < 0.2 + 0.4 * bad, "clerk", rng.choice(["farmer", "it's"], rows))
    return pa.table(
        {
            "bad": bad,
            "age": rng.integers(18, 80, rows),
            "income": pa.array(np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows) + bad)),
            "job": pa.array(np.where(rng.random(rows) < 0.1, None, job), pa.string()),
            "since": pa.array([first + datetime.timedelta(days=int(day)) for day in rng.integers(0, 900, rows)]),
            "member": pa.array([None if at % 9 == 0 else bool(rng.random() < 0.5) for at in range(rows)]),
            "born": pa.array([first + datetime.timedelta(days=int(day)) for day in rng.integers(0, 366, rows)]),
        }
    )


def lines(rows: ScoredRows) -> list[tuple[float, ...]]:
    """The scored rows in an order that depends on nothing but what they hold."""
    columns = [rows.signatures, rows.labels, *np.atleast_2d(rows.scores.T)]
    columns += [] if rows.values is None else [rows.values]
    columns += [] if rows.keys is None else [rows.keys]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))
