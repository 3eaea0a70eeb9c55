"""Splines of whole numbers: many sums of one number are a system that whole numbers solve once."""

import numpy as np
import pyarrow as pa
from scipy.optimize import Bounds as Between
from scipy.optimize import LinearConstraint, milp
from scipy.stats import rankdata
from tests.attacks.worlds import DEFAULT, EXACT, cell_of, passed, released, rms

from radocraft import Contract, craft
from radocraft.contract import units_of
from radocraft.contract._splines import spline_columns
from radocraft.gate import release
from radocraft.gate._account import auc_of
from radocraft.sums import GRID, Bounds

AGES = np.arange(25, 61)
KNOTS = (25.0, 33.0, 42.0, 51.0, 60.0)
WARDS = ["a", "b", "c", "d"]
ROWS = 14


def contract(knots: tuple[float, ...]) -> Contract:
    return Contract.parse(f"""
name = "risk"
label = {{ column = "bad", positive = 1, negative = 0 }}
shared = [{{ name = "ward", categories = {WARDS} }}]
peers.bank.features = {{ age = {{ kind = "spline", knots = {list(knots)} }} }}
""")


def people() -> pa.Table:
    """Eight cells of a few people each."""
    place = np.repeat(np.arange(8), ROWS)
    ages = np.random.default_rng(0).choice(AGES, len(place))
    return pa.table({"bad": place // 4, "ward": [WARDS[at % 4] for at in place], "age": ages})


def ages_of(table: pa.Table, ward: str, bad: int) -> np.ndarray:
    """How many of a cell have each age."""
    mine = (np.array(table["ward"].to_pylist()) == ward) & (table["bad"].to_numpy() == bad)
    return np.bincount(table["age"].to_numpy()[mine] - AGES[0], minlength=len(AGES))


def columns() -> np.ndarray:
    """What a row of each age adds to the raw sums."""
    return spline_columns(AGES.astype(np.float64), KNOTS).T


def solved(sums: np.ndarray, off: np.ndarray) -> np.ndarray | None:
    """Whole numbers of people of each age, as many as there are, with these sums."""
    system = np.vstack([columns(), np.ones(len(AGES))])
    low, high = np.append(sums - off, ROWS), np.append(sums + off, ROWS)
    found = milp(
        np.zeros(len(AGES)),
        constraints=LinearConstraint(system, low, high),
        integrality=np.ones(len(AGES)),
        bounds=Between(0, ROWS),
        options={"time_limit": 2.0},
    )
    return None if found.x is None else np.rint(found.x).astype(np.int64)


def cells_and_truth(cells, table):
    """Raw sums by cell, and who is there."""
    for code, ward in enumerate(WARDS):
        for label, bad in ((-1, 0), (1, 1)):
            at = cell_of(cells, np.array([code]), label)
            yield cells.scale * cells.sums[at] + cells.centre * ROWS, ages_of(table, ward, bad)


def test_every_age_comes_back_in_exact_mode():
    table = people()
    cells = passed(table, contract(KNOTS), EXACT).cells
    back = [solved(sums, np.full(len(sums), 1e-8)) for sums, _ in cells_and_truth(cells, table)]
    truth = [ages for _, ages in cells_and_truth(cells, table)]
    assert sum(found is not None and (found == ages).all() for found, ages in zip(back, truth, strict=True)) >= 6


def test_no_age_comes_back():
    """Neither by whole numbers nor by the best linear guess, which is as far off as the noise says: nearly blind."""
    table, agreed = people(), contract(KNOTS)
    tally = craft(table, agreed, "bank")
    before = ROWS / len(AGES) * (np.eye(len(AGES)) - 1.0 / len(AGES))
    steps = Bounds().of(agreed, "bank", *units_of(agreed, "bank", {}))
    summed = steps.bounded(spline_columns(AGES.astype(np.float64), KNOTS)).T / GRID
    hits, errors, sure = 0, [], []
    for turn, cells in enumerate(released(tally, agreed, DEFAULT, 20, "ages")):
        off = cells.levels.sums
        gain = before @ summed.T @ np.linalg.inv(summed @ before @ summed.T + off**2 * np.eye(len(summed)))
        sure.append(np.trace(before - gain @ summed @ before) / len(AGES))
        for raw, ages in cells_and_truth(cells, table):
            told = (raw - cells.centre * ROWS) / cells.scale
            guess = ROWS / len(AGES) + gain @ (told - summed.sum(axis=1) * ROWS / len(AGES))
            errors.append(guess - ages)
            if turn == 0:
                found = solved(raw, 2 * off * cells.scale)
                hits += found is not None and np.minimum(found, ages).sum() > ROWS / 2
    assert hits == 0
    assert rms(errors) > 0.9 * np.mean(sure) ** 0.5
    assert np.mean(sure) > 0.8 * np.trace(before) / len(AGES)


EIGHT = contract((25.0, 30.0, 36.0, 42.0, 48.0, 54.0, 60.0))


def eight(age: float, count: int, *key: object) -> tuple[np.ndarray, float, float]:
    """The eight sums of the first person's cell in so many releases, without all others there; noise and cost."""
    table = people()
    table = table.set_column(2, "age", pa.array(np.append(age, table["age"].to_numpy()[1:])))
    tally, others = craft(table, EIGHT, "bank"), craft(table.slice(1), EIGHT, "bank")
    mine = (others.codes[:, 0] == 0) & (others.labels == -1)
    known = others.sums[mine][0] / GRID
    every = released(tally, EIGHT, DEFAULT, count, "eight", age, *key)
    sums = [cells.sums[cell_of(cells, np.array([0]), -1)] - known for cells in every if len(cells.rows) >= 8]
    return np.array(sums), every[0].levels.sums, release(tally, EIGHT, DEFAULT).spend.rho


def test_one_number_in_eight_columns_is_no_clearer_than_a_row():
    """Known everybody else: exactly the age; by default two ages are told apart no better than the account says."""
    steps = Bounds().of(EIGHT, "bank", *units_of(EIGHT, "bank", {}))
    knots = EIGHT.peers["bank"].features["age"].knots
    rows = steps.bounded(spline_columns(AGES.astype(np.float64), knots)) / GRID
    assert rows.shape[1] == 8
    table = people()
    exact = passed(table, EIGHT, EXACT).cells
    at = cell_of(exact, np.array([0]), -1)
    others = passed(table.slice(1), EIGHT, EXACT).cells
    rest = others.scale * others.sums[cell_of(others, np.array([0]), -1)] + others.centre * (ROWS - 1)
    left = exact.scale * exact.sums[at] + exact.centre * ROWS - rest
    away = np.abs(spline_columns(AGES.astype(np.float64), knots) - left).sum(axis=1)
    assert AGES[np.argmin(away)] == table["age"][0].as_py()
    young, old = 25, 60
    found = {age: eight(age, 50) for age in (young, old)}
    told = [AGES[np.argmin(((sums[:, None] - rows) ** 2).sum(axis=2), axis=1)] for sums, _, _ in found.values()]
    assert rms(np.concatenate([told[0] - young, told[1] - old])) > AGES.std()
    moved = rows[-1] - rows[0]
    scores = [sums @ moved for sums, _, _ in found.values()]
    ranks, size = rankdata(np.concatenate(scores)), len(scores[0])
    auc = (ranks[size:].sum() - len(scores[1]) * (len(scores[1]) + 1) / 2) / (size * len(scores[1]))
    rho = 0.5 * (np.linalg.norm(moved) / found[young][1]) ** 2
    assert auc <= auc_of(rho) + 3 * np.sqrt(1 / (6 * min(size, len(scores[1]))))
    assert rho <= 4 * found[young][2]
