"""Sums that are numbers of rows in disguise, or one person's value.

A column that holds a few codes as numbers has few sums that a cell can have: whoever knows one to the last digit
knows how many rows have each code. A sum to which one row contributes is that row.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from tests.attacks.worlds import DEFAULT, EXACT, cell_of, passed, released, rms

from radocraft import Contract, craft
from radocraft.contract import draft_contract, units_of
from radocraft.gate import Noise
from radocraft.rows import profile
from radocraft.sums import GRID, Bounds

ICD = np.array([250.01, 401.9, 428.31, 493.87])
OFTEN = np.array([0.4, 0.3, 0.2, 0.1])
WARDS = [f"w{at}" for at in range(8)]
CLINIC = Contract.parse(f"""
name = "stay"
label = {{ column = "long", positive = 1, negative = 0 }}
shared = [{{ name = "ward", categories = {WARDS} }}]
peers.clinic.features = {{ icd = "numeric" }}
""")


def patients(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(0)
    place = np.arange(rows) % 16
    return pa.table(
        {
            "long": place // 8,
            "ward": [WARDS[at] for at in place % 8],
            "icd": rng.choice(ICD, rows, p=OFTEN),
        }
    )


def diagnoses(table: pa.Table, ward: str, long: int) -> np.ndarray:
    """How many patients of a ward have each."""
    mine = np.array(table["ward"].to_pylist()) == ward
    return (table["icd"].to_numpy()[mine & (table["long"].to_numpy() == long)][:, None] == ICD).sum(axis=0)


def compositions(rows: int) -> np.ndarray:
    """All ways in which so many rows can have the four codes."""
    first, second, third = np.indices((rows + 1,) * 3).reshape(3, -1)
    kept = first + second + third <= rows
    return np.column_stack([first, second, third, rows - first - second - third])[kept]


def likeliest(rows: int, total: float, off: float) -> np.ndarray:
    """How many rows have each code, as the sum tells, and before that how often each occurs (which all know)."""
    found = compositions(rows)
    steps = np.cumsum(np.log(np.maximum(np.arange(rows + 1), 1.0)))
    guess = found @ np.log(OFTEN) - steps[found].sum(axis=1)
    return found[np.argmax(guess - 0.5 * ((found @ ICD - total) / off) ** 2)]


def from_cells(cells, table, off):
    """The attacker's answer for every cell, and the truth; he even knows how many rows a cell has."""
    for code, ward in enumerate(WARDS):
        for label, long in ((-1, 0), (1, 1)):
            truth = diagnoses(table, ward, long)
            at, rows = cell_of(cells, np.array([code]), label), int(truth.sum())
            total = cells.scale[0] * cells.sums[at, 0] + cells.centre[0] * rows
            yield likeliest(rows, total, off), truth


def test_a_diagnosis_stored_as_a_number_is_counted_in_exact_mode():
    table = patients()
    cells = passed(table, CLINIC, EXACT, peer="clinic").cells
    assert sum((found == truth).all() for found, truth in from_cells(cells, table, 0.005)) == 16


def test_a_diagnosis_stored_as_a_number_is_not_counted():
    table = patients()
    tally = craft(table, CLINIC, "clinic", noise=Noise.seeded("icd"))
    hits, errors, sure = 0, [], []
    for cells in released(tally, CLINIC, DEFAULT, 20, "icd"):
        assert len(cells.rows) >= 16
        off = cells.scale[0] * cells.levels.sums
        for found, truth in from_cells(cells, table, off):
            hits += (found == truth).all()
            errors.append(found - truth)
            sure.append(variance(int(truth.sum()), off))
    assert rms(errors) > 0.9 * np.mean(sure) ** 0.5
    assert hits / 320 < 0.1


def variance(rows: int, off: float) -> float:
    """What remains unknown of a count by what all know, and a sum that is off by so much."""
    before = rows * (np.diag(OFTEN) - np.outer(OFTEN, OFTEN))
    told = before @ ICD
    return float(np.trace(before - np.outer(told, told) / (ICD @ told + off**2)) / 4)


def test_a_drafted_contract_takes_the_column_for_a_number():
    """As above, so that nothing need be known of a column for it to be safe."""
    told = {"clinic": profile(patients()), "shop": profile(patients().drop_columns(["icd"]))}
    drafted = draft_contract(told, name="stay", label="long", positive="1", negative="0", columns=True)
    assert 'icd = "numeric"' in drafted


VALUES = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
peers.bank.features = { gain = { kind = "numeric", centre = 0.4, scale = 0.8 } }
""")


def three_values(often: tuple[int, ...]) -> pa.Table:
    gain = np.random.default_rng(0).permutation(np.repeat([0.0, 1.0, 2.0], often))
    return pa.table({"bad": np.arange(len(gain)) % 2, "gain": gain})


def solve(cells, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many rows have each of three values, from their number, sum and sum of squares; and how sure that is."""
    system = np.linalg.inv(np.vander(values, 3, increasing=True).T)
    known = np.array([cells.total, cells.sums.sum(), cells.moments[0, 0]])
    levels = np.array([cells.levels.rows, cells.levels.sums, cells.levels.moments]) * len(cells.rows) ** 0.5
    return system @ known, np.sqrt(system**2 @ levels**2)


@pytest.mark.parametrize("often", [(400, 195, 5), (301, 298, 1), (594, 3, 3)])
def test_of_three_values_a_rare_one_is_counted_in_exact_mode_alone(often):
    table = three_values(often)
    cells = passed(table, VALUES, EXACT).cells
    found, _ = solve(cells, (np.arange(3.0) - cells.centre[0]) / cells.scale[0])
    np.testing.assert_allclose(found, often, atol=1e-6)
    tally = craft(table, VALUES, "bank")
    summed = Bounds().of(VALUES, "bank", *units_of(VALUES, "bank", {})).bounded(np.arange(3.0)[:, None])[:, 0] / GRID
    solved = [solve(cells, summed) for cells in released(tally, VALUES, DEFAULT, 60, "three", often)]
    off = np.array([found for found, _ in solved]) - often
    assert (off.std(axis=0) > 0.75 * np.mean([sure for _, sure in solved], axis=0)).all()
    assert off.std(axis=0)[2] > often[2], "the noise tells a handful of rows from none"


BANK = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["a", "b", "c"] }]
peers.bank.features = { income = "numeric", mortgage = "numeric" }
""")


def borrowers(mortgage: float = 214_350.0, rows: int = 900) -> pa.Table:
    """Half of them have a mortgage; in region c nobody, but for the last."""
    rng = np.random.default_rng(0)
    region = np.array(["a", "b", "c"])[np.arange(rows) % 3]
    owed = np.where(rng.random(rows) < 0.5, rng.lognormal(12.0, 0.5, rows).round(), 0.0)
    owed[region == "c"] = 0.0
    owed[-1] = mortgage
    return pa.table(
        {"bad": np.arange(rows) // 3 % 2, "region": region, "income": rng.normal(50, 9, rows), "mortgage": owed}
    )


def owed_in_c(cells, rows: int = 150) -> float:
    """The sum of the last one's cell, where everybody else owes nothing."""
    at = cell_of(cells, np.array([2]), 1)
    return float(cells.scale[1] * cells.sums[at, 1] + cells.centre[1] * rows)


def test_a_column_that_is_mostly_0_gives_a_mortgage_away_in_exact_mode():
    table = borrowers()
    assert table["bad"][-1].as_py() == 1
    assert owed_in_c(passed(table, BANK, EXACT).cells) == pytest.approx(214_350.0, abs=0.5)


def test_a_column_that_is_mostly_0_gives_no_mortgage_away():
    tally = craft(borrowers(), BANK, "bank", noise=Noise.seeded("mortgage"))
    every = released(tally, BANK, DEFAULT, 60, "mortgage")
    others = borrowers()["mortgage"].to_numpy()
    noise = every[0].scale[1] * every[0].levels.sums
    errors = [owed_in_c(cells) - 214_350.0 for cells in every]
    assert rms(errors) > 0.8 * noise
    assert noise > others[others > 0].std(), "whoever knows what mortgages are guesses better"


@pytest.mark.parametrize("scale", [1e6, 1e9, 1e15])
def test_however_large_one_contribution_is_the_sum_is_the_same(scale):
    """Exact: the one is all of the sum. By default it counts as a row of four deviations does."""
    huge, large = (borrowers(size) for size in (scale * 1e3, scale))
    exact = [owed_in_c(passed(table, BANK, EXACT).cells) for table in (huge, large)]
    assert exact == pytest.approx([scale * 1e3, scale], rel=1e-6)
    units = {"income": (50.0, 9.0), "mortgage": (90_000.0, 120_000.0)}
    digests = {craft(table, BANK, "bank", constants=units).digest() for table in (huge, large)}
    assert len(digests) == 1
    for one, other in pairwise([craft(table, BANK, "bank", noise=Noise.seeded("one")) for table in (huge, large)]):
        assert one.constants == other.constants
