"""Two releases subtracted: one row apart by whatever route, or of the same people at two peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attacks.worlds import DEFAULT, rms

from radocraft import Contract, Policy, craft, release, share
from radocraft.contract import units_of
from radocraft.gate import Noise
from radocraft.sums import GRID, ROLLED, Bounds, Cells, Tally

NAMES = [f"x{at}" for at in range(6)]
TEXT = f"""
name = "NAME"
label = {{ column = "bad", positive = 1, negative = 0 }}
shared = [{{ name = "town", categories = ["Bern", "Ulm"] }}]
peers.clinic.features = {{ {", ".join(f"{name} = {{ kind = 'numeric', centre = 50, scale = 10 }}" for name in NAMES)} }}
"""
CONTRACT = Contract.parse(TEXT.replace("NAME", "stay"))
NURSE = np.array([61.25, 44.5, 50.125, 57.0, 38.75, 52.5])
ROWS = 200
_number = count()


def table() -> pa.Table:
    """The last is the nurse, of Ulm."""
    rng = np.random.default_rng(0)
    values = np.vstack([rng.normal(50, 10, (ROWS - 1, 6)), NURSE])
    town = np.where(np.arange(ROWS) % 2, "Ulm", "Bern")
    own = dict(zip(NAMES, values.T, strict=True))
    return pa.table({"bad": np.arange(ROWS) // 2 % 2, "town": town, **own})


WITH = table()
WITHOUT = WITH.slice(0, ROWS - 1)
Route = Callable[[Path, Policy], tuple[Cells, Cells]]


def shared(rows: pa.Table, folder: Path, policy: Policy, contract: Contract = CONTRACT, **more: object) -> Cells:
    """What leaves, as a learner reads it, by the one road; the file of the table has a name of its own."""
    path = folder / f"{next(_number)}.parquet"
    pq.write_table(rows, path)
    return share(path, contract, "clinic", policy=policy, output=folder / "part", **more).cells(contract)


def twice(folder: Path, policy: Policy) -> tuple[Cells, Cells]:
    """Of the table, and of a copy of it without the row."""
    return shared(WITH, folder, policy), shared(WITHOUT, folder, policy)


def onto(folder: Path, policy: Policy) -> tuple[Cells, Cells]:
    """Of yesterday's rows, and of these and one more."""
    kept = folder / "tally"
    before = shared(WITHOUT, folder, policy, tally=kept)
    return shared(WITH.slice(ROWS - 1), folder, policy, onto=Tally.load(kept, CONTRACT)), before


def under_another_contract(folder: Path, policy: Policy) -> tuple[Cells, Cells]:
    return shared(WITH, folder, policy), shared(WITHOUT, folder, policy, Contract.parse(TEXT.replace("NAME", "other")))


def by_another_name(folder: Path, policy: Policy) -> tuple[Cells, Cells]:
    named = (policy.model_copy(update={"table": name}) for name in ("stays", "visits"))
    return shared(WITH, folder, next(named)), shared(WITHOUT, folder, next(named))


def with_the_ledger_gone(folder: Path, policy: Policy) -> tuple[Cells, Cells]:
    first = shared(WITH, folder, policy)
    for path in folder.glob("clinic.ledger*"):
        path.rename(folder / f"gone{next(_number)}")
    return first, shared(WITHOUT, folder, policy)


def under_another_policy(folder: Path, policy: Policy) -> tuple[Cells, Cells]:
    """One that differs in nothing that matters."""
    return shared(WITH, folder, policy), shared(WITHOUT, folder, policy.model_copy(update={"min_rows": 11}))


ROUTES = [twice, onto, under_another_contract, by_another_name, with_the_ledger_gone, under_another_policy]


def apart(pair: tuple[Cells, Cells]) -> Iterator[np.ndarray]:
    """What the nurse's cell in the first has more than in the second, as sums of deviations from 50."""
    for cells in pair:
        at = np.flatnonzero((cells.codes[:, 0] == 1) & (cells.labels == 1))
        rows = {False: ROWS // 4 - (cells is pair[1]), True: 0}[cells.levels.sums > 0]
        yield (cells.scale * cells.sums[at[0]] + (cells.centre - 50.0) * rows) / 10.0


def difference(pair: tuple[Cells, Cells]) -> np.ndarray:
    having, gone = apart(pair)
    return having - gone


@pytest.mark.parametrize("route", ROUTES)
def test_two_releases_one_row_apart_tell_of_it_in_exact_mode_alone(route, tmp_path):
    (tmp_path / "exact").mkdir()
    exact = difference(route(tmp_path / "exact", Policy.exact(10)))
    np.testing.assert_allclose(50.0 + 10.0 * exact, NURSE, rtol=1e-9)
    summed = Bounds().of(CONTRACT, "clinic", *units_of(CONTRACT, "clinic", {})).bounded(NURSE[None])[0] / GRID
    surprise = []
    for turn in range(3):
        folder = tmp_path / str(turn)
        folder.mkdir()
        pair = route(folder, DEFAULT)
        noise = np.hypot(pair[0].levels.sums, pair[1].levels.sums)
        surprise.append((difference(pair) - summed) / noise)
        assert noise > 1.0, "no clearer than a guess"
    assert 0.4 < rms(surprise) < 2.2  # 18 normal numbers


def test_asking_again_for_an_unchanged_table_gives_nothing_new(tmp_path):
    first = shared(WITH, tmp_path, DEFAULT)
    for _ in range(3):
        again = shared(WITH, tmp_path, DEFAULT)
        np.testing.assert_array_equal(first.sums, again.sums)
        np.testing.assert_array_equal(first.by_label, again.by_label)


TWO = Contract.parse("""
name = "cost"
label = { column = "cost", kind = "numeric", centre = 100, scale = 20 }
shared = [{ name = "town", categories = ["Bern", "Ulm", "Gais"] }, { name = "age", edges = [30, 50] }]
peers.clinic.features = { days = { kind = "numeric", centre = 0, scale = 1 } }
peers.pharmacy.features = { packs = { kind = "numeric", centre = 0, scale = 1 } }
""")
LEAST = {"clinic": Policy(10), "pharmacy": Policy(15)}
"""What one rolls up the other does not."""
YOUNG, MIDDLE = 7, 14


def same_people() -> tuple[pa.Table, float]:
    """Of Bern seven are young and fourteen in between; and what the seven cost, in deviations."""
    rng, groups = np.random.default_rng(0), [(YOUNG, MIDDLE, 60), (5, 60, 60), (11, 60, 60)]
    town = np.repeat(["Bern", "Ulm", "Gais"], [sum(group) for group in groups])
    age = np.repeat([20, 40, 60] * 3, np.ravel(groups))
    own = {name: rng.normal(size=len(town)) for name in ("days", "packs")}
    cost = rng.normal(100, 20, len(town))
    return pa.table({"cost": cost, "town": town, "age": age, **own}), float((cost[:YOUNG] - 100).sum()) / 20


def part_of_bern(cells: Cells, age: int) -> tuple[float, float] | None:
    """How many there are and what they cost, in the cell of an age or of any."""
    at = np.flatnonzero((cells.codes == [0, age]).all(axis=1))
    return (float(cells.rows[at[0]]), float(cells.sums[at[0], -1])) if len(at) else None


def test_two_peers_parts_of_the_same_people_do_not_subtract():
    """Those who are not old in Bern, at the one, less those in between, at the other: seven people."""
    people, truth = same_people()
    exact = {p: release(craft(people, TWO, p, bounds=None), TWO, Policy.exact(LEAST[p].min_rows)).cells for p in LEAST}
    all_young, middle = part_of_bern(exact["pharmacy"], ROLLED), part_of_bern(exact["clinic"], 1)
    assert np.subtract(all_young, middle) == pytest.approx([YOUNG, truth])
    tallies, off = {peer: craft(people, TWO, peer) for peer in LEAST}, []
    for at in range(40):
        cells = {p: release(tallies[p], TWO, LEAST[p], Noise.seeded("two", p, at)).cells for p in LEAST}
        all_young, middle = part_of_bern(cells["pharmacy"], ROLLED), part_of_bern(cells["clinic"], 1)
        if all_young is not None and middle is not None:
            noise = np.hypot(*(one.levels.sums for one in cells.values()))
            off.append((all_young[1] - middle[1] - truth) / noise)
    assert len(off) > 10
    assert rms(off) > 0.7
    assert noise > YOUNG**0.5, "clearer than what seven people usually cost"
