"""Is anybody there at all: in a block, in a category, with a value that nobody else has? 0 or 1 person."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr
from tests.attacks.worlds import DEFAULT, EXACT, passed, without

from radocraft import Contract, Part, craft
from radocraft.gate import Noise
from radocraft.gate import _release as gate
from radocraft.gate import _signatures as signatures
from radocraft.sums import Tally

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "town", categories = ["Bern", "Ulm", "Gais"] }]

[peers.bank.features]
income = { kind = "numeric", centre = 0, scale = 1 }
late = "boolean"
job = { kind = "categorical", categories = ["clerk", "pilot"] }
""")
TRIALS = 400


def people(rows: int = 300) -> pa.Table:
    """Only the last is from Gais, is a pilot, and was ever late."""
    rng = np.random.default_rng(0)
    table = {
        "bad": np.arange(rows) % 2,
        "town": rng.choice(["Bern", "Ulm"], rows).astype(object),
        "income": rng.normal(size=rows),
        "late": np.zeros(rows, dtype=bool),
        "job": np.full(rows, "clerk", dtype=object),
    }
    table["town"][-1], table["late"][-1], table["job"][-1], table["income"][-1] = "Gais", True, "pilot", 0.0
    return pa.table({name: values.tolist() for name, values in table.items()})


WITH = people()
TABLES = {True: WITH, False: without(WITH, WITH.num_rows - 1)}


def told(table: pa.Table) -> dict[str, object]:
    """What the file says, beside and in its sums."""
    released = passed(table, CONTRACT, EXACT)
    metadata, cells = Part.of(released).metadata, released.cells
    at = cells.columns.index("job=pilot")
    said = {"notes": metadata["notes"], "rolled up": metadata["policy"]["rolled_up"], "rows": metadata["rows"]}
    return {**said, "pilots": float(cells.moments[at, at]), "sum": float(cells.sums[:, at].sum())}


def test_exact_mode_tells_in_many_ways():
    there, gone = told(TABLES[True]), told(TABLES[False])
    assert all(there[name] != gone[name] for name in there)
    assert (there["pilots"], gone["pilots"]) == (1.0, 0.0)


@pytest.fixture(scope="module")
def leaving() -> dict[bool, list[tuple[object, np.ndarray]]]:
    """Hundreds of releases with the one and without: what is said in words and structure, and in numbers."""
    tallies = {there: craft(table, CONTRACT, "bank") for there, table in TABLES.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "with_shared", lambda cells, *rest: cells)  # no more than what the cells say
        return {there: [seen(tally, (there, at)) for at in range(TRIALS)] for there, tally in tallies.items()}


def seen(tally: Tally, key: object) -> tuple[object, np.ndarray]:
    released = gate.release.__wrapped__(tally, CONTRACT, DEFAULT, Noise.seeded(key))
    cells = released.cells
    words = (released.notes, released.rolled_up, cells.codes.tobytes(), cells.labels.tobytes())
    mine = cells.labels == 1
    pilots, late = cells.columns.index("job=pilot"), cells.columns.index("late")
    numbers = [
        cells.sums[mine, pilots].sum(),
        cells.sums[mine, late].sum(),
        cells.by_label[1, pilots, pilots],
        cells.by_label[1, pilots, late],
        cells.rows[mine].sum(),
        cells.rows[(cells.codes[:, 0] == 2) & mine].sum(),
        released.spend.rho,
    ]
    return words, np.array(numbers, dtype=np.float64)


def allowed(rho: float) -> float:
    """The most by which anybody can do better than guess: Phi(mu / 2) - Phi(-mu / 2)."""
    return float(2.0 * ndtr(np.sqrt(rho / 2.0)) - 1.0)


THREE = 3 * np.sqrt(0.5 / (TRIALS / 2))
"""Standard errors of an advantage that is found on half of the trials."""


def test_neither_notes_nor_structure_tell(leaving):
    """What half of the releases show of how often each is seen, tried on the other half."""
    early = {there: [words for words, _ in every[: TRIALS // 2]] for there, every in leaving.items()}
    more = {words: early[True].count(words) - early[False].count(words) for words in early[True] + early[False]}
    yes = {
        there: np.mean([more.get(words, 0) > 0 for words, _ in every[TRIALS // 2 :]])
        for there, every in leaving.items()
    }
    assert len(more) > 1
    assert yes[True] - yes[False] <= allowed(leaving[True][0][1][-1]) + THREE


def test_nor_do_numbers(leaving):
    """The best line through all numbers that one person moves."""
    numbers = {there: np.array([one[:-1] for _, one in every]) for there, every in leaving.items()}
    early = {there: some[: TRIALS // 2] for there, some in numbers.items()}
    moved = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    weights = np.linalg.solve(np.cov(early[False].T) + 1e-9 * np.eye(6), moved)
    middle = sum(some.mean(axis=0) for some in early.values()) @ weights / 2
    yes = {there: np.mean(some[TRIALS // 2 :] @ weights > middle) for there, some in numbers.items()}
    assert yes[True] - yes[False] <= allowed(leaving[True][0][1][-1]) + THREE
    assert allowed(leaving[True][0][1][-1]) < 0.9, "a bound that allows all says nothing"


@pytest.mark.parametrize(("rows", "least", "most"), [(1, 0, 2), (30, 400, 400)])
def test_a_signature_that_nobody_listed_passes_by_chance_alone(rows, least, most, monkeypatch):
    """Of one person, no more often than delta says (here in 10,000); of many, always."""
    monkeypatch.setattr(signatures, "MOST", 2)
    tally = craft(pa.concat_tables([WITH.slice(0, 299), *[WITH.slice(299)] * rows]), CONTRACT, "bank")
    agreed, passing = signatures.Signatures.agreed(tally, CONTRACT), 0
    assert agreed.open_set
    for at in range(400):
        counted = signatures.count_open(agreed, tally, 1.0, Noise.seeded("open", at), per_unit=1, delta=1e-4)
        passing += (counted.codes[:, 0] == 2).any()
    assert least <= passing <= most
