"""What is said of columns before anything is summed: quartiles and categories of a profile, units, knots."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr
from tests.attacks.tape import Recording, Replaying, Tape

from radocraft import Contract, Policy, craft
from radocraft.gate import Noise, epsilon_of, estimate_units
from radocraft.parts import BINS
from radocraft.peer._counting import Counts
from radocraft.rows import profile
from radocraft.sums import CLIP_GROUP, GRID

BONUS = 731_250.0


def staff(rows: int = 60, boss: bool = True) -> pa.Table:
    """One alone has a bonus, and a title; some do not say what they earn."""
    rng = np.random.default_rng(0)
    bonus, title = [None] * rows, ["clerk"] * rows
    if boss:
        bonus[-1], title[-1] = BONUS, "chairman"
    return pa.table({"bonus": pa.array(bonus, pa.float64()), "title": title, "income": rng.lognormal(10, 0.3, rows)})


def near(values: tuple[float, ...] | None) -> bool:
    """Whether one of them is the bonus, as rounded."""
    return any(abs(value - BONUS) <= 0.05 * BONUS for value in values or ())


def test_an_outline_of_a_public_table_tells_what_a_single_row_says():
    told = profile(staff(), outline=True, policy=Policy.exact(1)).by_name
    assert told["bonus"].distinct == 1
    assert told["bonus"].quartiles is None  # fewer than 20 rows have one
    assert "chairman" in told["title"].categories


def test_an_outline_tells_no_single_value():
    hits = {
        boss: [
            profile(staff(boss=boss).select(["bonus", "title"]), outline=True, noise=Noise.seeded(boss, at)).by_name
            for at in range(12)
        ]
        for boss in (True, False)
    }
    found = {boss: np.mean([near(told["bonus"].quartiles) for told in every]) for boss, every in hits.items()}
    assert found[True] <= found[False] + 3 * np.sqrt(2 * 0.1 / 12)
    assert not any("chairman" in (told["title"].categories or ()) for told in hits[True])
    assert all("clerk" in (told["title"].categories or ()) for told in hits[True])


@pytest.mark.parametrize("policy", [Policy(), Policy(unit="person", person="who", rows_per_person=2)])
def test_an_outline_costs_what_it_says(policy, monkeypatch):
    """As `test_side_doors` has it for parts."""
    rows = staff(300)
    rows = rows.append_column("who", pa.array(np.arange(300) // 2))
    tape, spends, out = Tape(), [], []
    monkeypatch.setattr(
        "radocraft.rows._profile.epsilon_of", lambda rho, delta: spends.append(rho) or epsilon_of(rho, delta)
    )
    fewer = policy.rows_per_person
    for table, noise in ((rows, Recording(tape, "outline")), (rows.slice(fewer), Replaying(tape, fewer))):
        out.append(profile(table, outline=True, policy=policy, noise=noise))
    assert out[0] == out[1]
    assert 0 < tape.spent <= spends[0]


def test_knots_of_exact_sums_tell_who_is_there():
    contract = Contract.parse("""
    name = "pay"
    label = { column = "bad", positive = 1, negative = 0 }
    peers.firm.features = { income = { kind = "spline", knots = 5 } }
    """)
    rows = staff(100).append_column("bad", pa.array(np.arange(100) % 2))
    rich = rows.set_column(2, "income", pa.array(np.append(rows["income"].to_numpy()[1:], 5e6)))
    exact = [craft(table, contract, "firm", bounds=None).constants["income"] for table in (rich, rich.slice(0, 99))]
    assert exact[0] != exact[1]


@pytest.mark.parametrize("knots", [0, 5])
def test_units_tell_no_better_than_they_cost(knots):
    """The attacker looks at the last knot (or the scale), as half of all trials show it, and is tried on the rest."""
    incomes = {True: np.append(np.random.default_rng(0).lognormal(10, 0.3, 99), 5e6)}
    incomes[False] = incomes[True][:-1]
    said, trials = {True: [], False: []}, 300
    for there, values in incomes.items():
        for at in range(trials):

            def count(edges, values=values):
                return {"income": np.histogram(values, edges["income"])[0]}

            found, spend = estimate_units({"income": knots}, count, len(values), Noise.seeded("units", there, at))
            said[there].append((found["income"], spend.rho))
    early = {there: [units for units, _ in every[: trials // 2]] for there, every in said.items()}
    more = {units: early[True].count(units) - early[False].count(units) for units in early[True] + early[False]}
    far = {there: np.mean([units[-1] > 1e6 for units in every]) for there, every in early.items()}

    def yes(units):
        return more.get(units, 0) > 0 if far[True] <= far[False] else units[-1] > 1e6

    late = {there: np.mean([yes(units) for units, _ in every[trials // 2 :]]) for there, every in said.items()}
    rho = max(cost for every in said.values() for _, cost in every)
    allowed = 2.0 * float(ndtr((rho / 2) ** 0.5)) - 1.0
    assert allowed < 0.9
    assert late[True] - late[False] <= allowed + 3 * np.sqrt(0.5 / (trials / 2))


def test_the_second_round_costs_what_it_says_whatever_the_model_claims():
    """A learner who wants less noise may put any number of rows into the model that it sends."""
    blocks = SimpleNamespace(labels=[-1, 1], weights=[1e-9, 1e-9])
    model = SimpleNamespace(identity="sent", blocks=blocks)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 300, (2, BINS))
    groups = np.rint(rng.normal(size=(2, 64)) * 20 * GRID)
    fewer, smaller = rows.copy(), groups.copy()
    fewer[1, 7] -= 1
    smaller[1, 5] -= CLIP_GROUP * GRID
    tape = Tape()
    first, other = (
        Counts(counts, tuple(sums)).released(model, "bank", Policy(), noise)
        for counts, sums, noise in ((rows, groups, Recording(tape, "scores")), (fewer, smaller, Replaying(tape)))
    )
    assert first == other
    assert 0 < tape.spent <= first.rho * (1 + 1e-9)
    assert first.noise == pytest.approx(0.5 * (rows.sum() / rows.size) ** 0.5, rel=0.01)
