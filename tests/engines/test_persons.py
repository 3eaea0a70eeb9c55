"""Differential privacy per person: whatever engine holds the rows, it uses at most so many of each person."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from radocraft.policy.private import noisy_blocks
from radocraft.policy.rules import Privacy
from radocraft.privacy.bounded import COARSE, Bounded, craft_bounded
from tests.engines.test_same_tally import hold

from radocraft import Contract
from radocraft.contract._columns import summed_columns
from radocraft.gate._account import Spend
from radocraft.sums._bounds import GRID

CONTRACT = Contract.parse("""
name = "visits"
label = { column = "ill", positive = 1, negative = 0 }
shared = [{ name = "ward", categories = ["a", "b"] }]

[peers.clinic.features]
days = { kind = "numeric", centre = 4, scale = 2 }
dose = { kind = "numeric", centre = 0, scale = 1 }
""")
MOST = 2
NORM = 1.5


def rules(most: int = MOST) -> Privacy:
    return Privacy(
        epsilon=1, lifetime_epsilon=1, row_norm=NORM, unit="person", person="patient no", rows_per_person=most
    )


def visits(longest: int) -> pa.Table:
    """Patients with one to five visits, all visits of a patient alike; the last one came ``longest`` times."""
    count = np.append(np.arange(60) % 5 + 1, longest)
    patient = np.repeat(np.arange(len(count)), count)
    rng = np.random.default_rng(0)
    days, dose = rng.normal(5, 3, len(count)), rng.normal(size=len(count))
    shuffled = rng.permutation(len(patient))
    days[-1] = dose[-1] = 40.0
    return pa.table(
        {
            "patient no": pa.array([f"P{at}" for at in patient[shuffled]]),
            "ill": pa.array((patient % 2)[shuffled]),
            "ward": pa.array(np.array(["a", "b"])[patient // 2 % 2][shuffled]),
            "days": pa.array(days[patient][shuffled]),
            "dose": pa.array(dose[patient][shuffled]),
        }
    )


def by_hand(rows: pa.Table) -> Bounded:
    """The same with no engine: the first rows of each patient."""
    seen: dict[str, int] = {}
    kept = []
    for row in rows.to_pylist():
        seen[row["patient no"]] = seen.get(row["patient no"], 0) + 1
        if seen[row["patient no"]] <= MOST:
            kept.append(row)
    return Bounded.of_rows(
        "clinic",
        summed_columns(CONTRACT, "clinic"),
        codes=np.array([[["a", "b"].index(row["ward"])] for row in kept]),
        labels=np.array([1 if row["ill"] else -1 for row in kept]),
        values=np.array([[(row["days"] - 4) / 2, row["dose"]] for row in kept]),
        norm=NORM,
    )


def crafted(engine: str, rows: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Bounded:
    place = folder / str(rows.num_rows)
    place.mkdir()
    return craft_bounded(hold(engine, rows, place, request), CONTRACT, "clinic", rules())


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_no_engine_uses_more_rows_of_a_person_than_agreed(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found, more = (crafted(engine, visits(longest), tmp_path, request) for longest in (MOST, 200))
    for name in ("codes", "labels", "rows", "sums", "moments"):
        np.testing.assert_array_equal(getattr(found, name), getattr(by_hand(visits(MOST)), name), err_msg=name)
        np.testing.assert_array_equal(getattr(more, name), getattr(found, name), err_msg=name)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_taking_a_person_away_moves_the_sums_by_no_more_than_the_noise_is_made_for(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows, spend = visits(200), Spend(rules())
    gone = rows.filter(pa.compute.not_equal(rows.column("patient no"), f"P{60}"))
    having, without = (crafted(engine, side, tmp_path, request) for side in (rows, gone))
    np.testing.assert_array_equal(having.codes, without.codes)
    moved = np.column_stack([(having.rows - without.rows) * (GRID // 2), having.sums - without.sums])
    assert 0 < np.linalg.norm(moved) <= spend.sums_sensitivity
    upper = np.zeros((2, 2))
    upper[np.triu_indices(2)] = having.moments - without.moments
    assert 0 < np.linalg.norm(upper) <= spend.moments_sensitivity == MOST * COARSE**2
    assert len(noisy_blocks(having, CONTRACT, rules(), spend)[1]) == 2 * 4  # every agreed signature, with either label
