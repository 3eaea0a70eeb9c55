"""Noise that protects persons: whatever engine holds the rows, it uses so many of each person, the same ones."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.engines.test_same_tally import hold

from radocraft import Contract, Policy, Tally, craft
from radocraft.gate._levels import Terms
from radocraft.rows import craft_rows
from radocraft.sums import GRID

CONTRACT = Contract.parse("""
name = "visits"
label = { column = "ill", positive = 1, negative = 0 }
shared = [{ name = "ward", categories = ["a", "b"] }]

[peers.clinic.features]
days = { kind = "numeric", centre = 4, scale = 2 }
dose = { kind = "numeric", centre = 0, scale = 1 }
""")
MOST = 2
POLICY = Policy(unit="person", person="patient no", rows_per_person=MOST)
ENGINES = ["duckdb", "postgres", "spark"]


def visits(longest: int, *, alike: bool = True) -> pa.Table:
    """Patients with one to five visits; the last one came ``longest`` times. All visits of a patient alike, or none."""
    count = np.append(np.arange(60) % 5 + 1, longest)
    patient = np.repeat(np.arange(len(count)), count)
    rng = np.random.default_rng(0)
    days, dose = rng.normal(5, 3, len(count)), rng.normal(size=len(count))
    days[-1] = dose[-1] = 40.0
    days, dose, ill, ward = days[patient], dose[patient], patient % 2, patient // 2 % 2
    if not alike:
        days, dose = days + rng.normal(size=len(patient)), np.where(rng.random(len(patient)) < 0.2, np.nan, dose)
        ill, ward = rng.integers(0, 2, len(patient)), rng.integers(0, 3, len(patient))
    shuffled = rng.permutation(len(patient))
    return pa.table(
        {
            "patient no": pa.array([f"P{at}" for at in patient[shuffled]]),
            "ill": pa.array(ill[shuffled]),
            "ward": pa.array(np.array(["a", "b", "c"])[ward][shuffled]),
            "days": pa.array(days[shuffled]),
            "dose": pa.array(dose[shuffled], from_pandas=True),
        }
    )


def by_hand(rows: pa.Table) -> Tally:
    """The same with no engine: the first rows of each patient, who must be all alike."""
    seen: dict[str, int] = {}
    kept = []
    for row in rows.to_pylist():
        seen[row["patient no"]] = seen.get(row["patient no"], 0) + 1
        if seen[row["patient no"]] <= MOST:
            kept.append(row)
    return craft_rows(
        CONTRACT,
        "clinic",
        ("days", "dose"),
        codes=np.array([[["a", "b"].index(row["ward"])] for row in kept]),
        labels=np.array([1 if row["ill"] else -1 for row in kept]),
        values=np.array([[row["days"], row["dose"]] for row in kept]),
        bounds=POLICY.bounds,
    )


def crafted(engine: str, rows: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Tally:
    place = folder / f"{engine} {rows.num_rows}"
    place.mkdir()
    return craft(hold(engine, rows, place, request), CONTRACT, "clinic", bounds=POLICY.bounds)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_engine_uses_more_rows_of_a_person_than_agreed(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found, more = (crafted(engine, visits(longest), tmp_path, request) for longest in (MOST, 200))
    assert found.digest() == by_hand(visits(MOST)).digest()
    assert more.digest() == found.digest()


@pytest.mark.parametrize("engine", ENGINES)
def test_which_rows_of_a_person_count_depends_on_nothing_but_what_is_in_them(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Neither on the engine nor on the order in which the rows come."""
    rows = visits(200, alike=False)
    turned = rows.take(np.arange(rows.num_rows)[::-1])
    (tmp_path / "turned").mkdir()
    first = crafted("arrow", rows, tmp_path, request)
    for found in (crafted(engine, rows, tmp_path, request), crafted(engine, turned, tmp_path / "turned", request)):
        assert found.digest() == first.digest()
    assert first.total == sum(min(visited % 5 + 1, MOST) for visited in range(60)) + MOST


@pytest.mark.parametrize("engine", ENGINES)
def test_taking_a_person_away_moves_the_sums_by_no_more_than_the_noise_is_made_for(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows = visits(200)
    gone = rows.filter(pc.not_equal(rows.column("patient no"), f"P{60}"))
    having, without = (crafted(engine, side, tmp_path, request) for side in (rows, gone))
    np.testing.assert_array_equal(having.codes, without.codes)
    terms = Terms(having.total, 8, 2, POLICY.bounds.norm(CONTRACT, "clinic"), POLICY.bound, 2, per_unit=MOST)
    weight = terms.weight(POLICY.noise, len(having.rows))
    moved = np.column_stack([(having.rows - without.rows) * weight, (having.sums - without.sums) / GRID])
    spent, sd = terms.sums(POLICY.noise, len(having.rows)).rho, terms.sd_sums(POLICY.noise, len(having.rows))
    assert 0.9 * spent < 0.5 * (np.linalg.norm(moved) / sd) ** 2 <= spent
    upper = (having.moments - without.moments)[:, *np.triu_indices(2)] / GRID**2
    spent, sd = terms.moments(POLICY.noise).rho, terms.sd_moments(POLICY.noise)
    assert 0.3 * spent < 0.5 * (np.linalg.norm(upper) / sd) ** 2 <= spent
