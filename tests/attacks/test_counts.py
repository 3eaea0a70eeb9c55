"""Sums that are numbers of rows: a truth value, a category, a number with two values, one that is mostly 0.

Whoever knows that a column is 0 or 1 reads a cell's sum as a count, and solves
for further groups of blocks with what the moments say of shared codes.
"""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from tests.property.worlds import finest_cell

from radocraft import Contract, Part, Policy, craft, release
from radocraft.sums._cells import Cells, standardise
from radocraft.sums._tally import Tally

TEXT = """
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["a", "b", "c"] }, { name = "age", edges = [30, 40, 50] }]

[peers.bank.features]
flag = { kind = "numeric", centre = 0, scale = 1 }
gain = { kind = "numeric", centre = 0, scale = 1 }
job = { kind = "categorical", categories = ["clerk", "pilot"] }
member = "boolean"
"""
CONTRACT = Contract.parse(TEXT)
LEAST = 5
NONE = Policy(mode="none", gives_away_single_rows=True)


def table(seed: int, rows: int = 600) -> pa.Table:
    rng = np.random.default_rng(seed)
    region = rng.choice(["a", "b", "c"], rows, p=[0.55, 0.3, 0.15])
    rare = rng.random(rows) < np.where(region == "a", 0.4, 0.12)
    return pa.table(
        {
            "bad": rng.integers(0, 2, rows),
            "region": region,
            "age": rng.choice([25, 35, 45, 55], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "flag": np.where(rare, 7.0, 2.0),
            "gain": np.where(rng.random(rows) < 0.25, rng.normal(50, 9, rows), 0.0),
            "job": rng.choice(["clerk", "pilot"], rows, p=[0.7, 0.3]),
            "member": rng.random(rows) < 0.3,
        }
    )


def counted(tally: Tally) -> dict[str, np.ndarray]:
    """Per block, what the attacker is after: rows by flag, job and membership, and rows that gained."""
    cells = standardise(tally, CONTRACT)
    told = as_counts(cells, cells.rows, cells.sums)
    return told | {"gained": tally.others[:, tally.columns.index("gain")]}


def as_counts(cells: Cells, rows: np.ndarray, sums: np.ndarray) -> dict[str, np.ndarray]:
    of = dict(zip(cells.columns, sums.T, strict=True))
    flagged, members = (of["flag"] - 2.0 * rows) / 5.0, (of["member"] + rows) / 2.0
    pairs = {"flag": flagged, "no flag": rows - flagged, "member": members, "no member": rows - members}
    return pairs | {"pilot": of["job=pilot"], "clerk": of["job=clerk"]}


def small(count: np.ndarray, least: int) -> np.ndarray:
    return (count > 0.5) & (count < least - 0.5)


def released(seed: int, policy: Policy) -> tuple[Cells, Tally]:
    tally = craft(table(seed), CONTRACT, "bank")
    return Part.seal(release(tally, CONTRACT, policy)).cells(CONTRACT), tally


def cells_with_few(cells: Cells) -> int:
    return sum(int(small(count, LEAST).sum()) for count in as_counts(cells, cells.rows, cells.sums).values())


def recovered(cells: Cells, tally: Tally) -> int:
    """Small counts of blocks and of pairs of blocks that come out right from sums of cells and of shared codes."""
    exact, truth = standardise(tally, CONTRACT), counted(tally)
    member = np.eye(len(cells.rows))[:, finest_cell(cells, exact.codes, exact.labels)]
    system = np.vstack([member, CONTRACT.encode_shared(exact.codes).T])
    width = len(cells.columns)
    told = np.vstack([cells.sums, cells.moments[width:-1, :width]])
    solved = as_counts(exact, exact.rows, np.linalg.lstsq(system, told, rcond=None)[0])
    _, values, right = np.linalg.svd(system, full_matrices=False)
    basis = right[values > 1e-9 * values.max()]
    hits = 0
    for size in (1, 2):
        for union in map(list, combinations(range(len(exact.rows)), size)):
            wanted = np.bincount(union, minlength=len(exact.rows)).astype(float)
            if np.linalg.norm(wanted - basis.T @ (basis @ wanted)) > 1e-8:
                continue
            counts = [(truth[name][union].sum(), solved[name][union].sum()) for name in solved]
            hits += sum(small(true, LEAST) and abs(true - found) < 1e-6 for true, found in counts)
    return hits


@pytest.mark.parametrize("seed", range(3))
def test_without_a_limit_the_few_rows_of_a_cell_that_have_a_value_are_counted(seed):
    cells, tally = released(seed, NONE)
    assert cells_with_few(cells) > 10
    assert recovered(cells, tally) > 10


@pytest.mark.parametrize("seed", range(6))
def test_no_sum_tells_of_few_rows_nor_does_any_that_follows(seed):
    cells, tally = released(seed, Policy())
    assert cells_with_few(cells) == 0
    assert recovered(cells, tally) == 0
    own = finest_cell(cells, tally.codes, tally.labels)
    gained = np.bincount(own, tally.others[:, tally.columns.index("gain")])
    assert not small(gained, 10).any(), "a sum of a column that is mostly 0 stands on few rows"


def test_the_limit_on_counts_is_the_policys():
    cells, _ = released(0, Policy(min_count=10))
    assert not any(small(count, 10).any() for count in as_counts(cells, cells.rows, cells.sums).values())
    assert len(cells.rows) < len(released(0, Policy())[0].rows)


@pytest.mark.parametrize("usual", [0.0, 3.5])
@pytest.mark.parametrize("others", [1, 4, 9])
def test_a_column_with_one_value_but_for_a_handful_of_rows_tells_nothing_of_them(usual, others):
    rows = table(0).to_pydict()
    rows["gain"] = [usual] * 600
    rows["gain"][:others] = [usual + 100.0 + at for at in range(others)]
    tally = craft(pa.table(rows), CONTRACT, "bank")
    at = tally.columns.index("gain")
    bare = Part.seal(release(tally, CONTRACT, NONE)).cells(CONTRACT)
    safe = release(tally, CONTRACT)
    assert bare.sums[:, at].sum() - 600 * usual >= 100
    assert any("'gain'" in note and "constant" in note for note in safe.notes)
    cells = Part.seal(safe).cells(CONTRACT)
    np.testing.assert_allclose(cells.sums[:, at], cells.rows * usual)
    expected = usual * cells.moments[-1] - cells.moments[at]
    np.testing.assert_allclose(expected, 0.0, atol=1e-6)


def with_three_values(values: tuple[float, ...], rows: tuple[int, ...], seed: int = 0) -> pa.Table:
    """The table with so many rows that gained each of three values."""
    gain = np.random.default_rng(seed).permutation(np.repeat(values, rows))
    people = table(seed, len(gain))
    return people.set_column(people.column_names.index("gain"), "gain", pa.array(gain))


def counts_of_three(cells: Cells, values: tuple[float, ...]) -> np.ndarray:
    """How many rows have each, from the number of rows, the sum and the sum of squares."""
    at = cells.columns.index("gain")
    told = [cells.total, cells.moments[at, -1], cells.moments[at, at]]
    return np.linalg.solve(np.vander(values, 3, increasing=True).T, told)


VALUES = [(0.0, 1.0, 2.0), (1.0, 3.5, 2.0), (-1.0, 1.0, 0.0)]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("rows", [(400, 195, 5), (400, 191, 9), (301, 298, 1), (4, 298, 298), (585, 8, 7), (594, 3, 3)])
def test_of_three_values_a_rare_one_is_not_counted(values, rows):
    people = with_three_values(values, rows)
    tally = craft(people, CONTRACT, "bank")
    bare, safe = release(tally, CONTRACT, NONE), release(tally, CONTRACT)
    np.testing.assert_allclose(counts_of_three(bare.cells, values), rows, atol=1e-6)
    found = counts_of_three(safe.cells, values)
    assert not any(small(np.array(true), 10) and abs(true - told) < 0.5 for true, told in zip(rows, found, strict=True))
    assert any("'gain' has two values but for a few rows" in note for note in safe.notes)
    assert not small(found, 10).any()


@pytest.mark.parametrize("values", VALUES)
def test_three_values_that_enough_rows_have_stay_exact(values):
    rows = (350, 230, 20)
    safe = release(craft(with_three_values(values, rows), CONTRACT, "bank"), CONTRACT)
    np.testing.assert_allclose(counts_of_three(safe.cells, values), rows, atol=1e-6)
    assert not safe.notes


def test_a_third_value_that_no_sample_shows_is_found():
    gain = np.r_[np.tile([0.0, 1.0], 6000), [2.0] * 4]
    people = table(0, len(gain))
    people = people.set_column(people.column_names.index("gain"), "gain", pa.array(gain))
    tally = craft(people, CONTRACT, "bank")
    at = tally.columns.index("gain")
    assert (tally.usual[at], tally.next[at]) in ((0.0, 1.0), (1.0, 0.0))
    assert tally.third[at] == pytest.approx(2.0)
    assert counts_of_three(release(tally, CONTRACT, NONE).cells, (0.0, 1.0, 2.0))[2] == pytest.approx(4.0)
    assert counts_of_three(release(tally, CONTRACT).cells, (0.0, 1.0, 2.0))[2] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("cut", [30, 200, 420, 596])
def test_pieces_that_show_other_values_know_the_three_of_the_whole(cut):
    """In order of their values: a piece has one or two of them, and another usual one."""
    values, rows = (0.0, 1.0, 2.0), (400, 195, 5)
    people = with_three_values(values, rows).sort_by("gain")
    for one, other in ((people.slice(0, cut), people.slice(cut)), (people.slice(cut), people.slice(0, cut))):
        first = craft(one, CONTRACT, "bank")
        for tally in (first + craft(other, CONTRACT, "bank"), craft(other, CONTRACT, "bank", onto=first)):
            at = tally.columns.index("gain")
            others, following = tally.others.sum(axis=0)[at], tally.next_rows[at]
            assert sorted([tally.total - others, following, others - following]) == sorted(rows)
            found = counts_of_three(release(tally, CONTRACT).cells, values)
            assert not small(found, 10).any()


def test_few_missing_values_are_not_counted():
    rows = table(0).to_pydict()
    rows["gain"][:3] = [None] * 3
    tally = craft(pa.table(rows), CONTRACT, "bank")
    assert "present:gain" in Part.seal(release(tally, CONTRACT, NONE)).table.column_names
    assert "present:gain" not in Part.seal(release(tally, CONTRACT)).table.column_names


def test_tallies_of_pieces_know_the_usual_value_of_the_whole():
    """One piece is mostly 2, the other mostly 7: still a column of two values."""
    rows = table(1).sort_by("flag")
    whole = craft(rows, CONTRACT, "bank")
    pieces = [craft(rows.slice(low, 300), CONTRACT, "bank") for low in (0, 300)]
    both = pieces[0] + pieces[1]
    assert pieces[0].usual[0] == 2.0
    assert (both.second[0], both.usual[0]) in ((2.0, 7.0), (7.0, 2.0))
    parts = [release(one, CONTRACT).cells for one in (whole, both)]
    np.testing.assert_allclose(parts[0].sums, parts[1].sums, atol=1e-9)


def test_a_column_of_two_values_keeps_its_units_whichever_is_usual():
    rows = table(2)
    free = Contract.parse(TEXT.replace('{ kind = "numeric", centre = 0, scale = 1 }', '"numeric"'))
    for swapped in (rows, rows.set_column(3, "flag", pa.array(9.0 - rows.column("flag").to_numpy()))):
        cells = release(craft(swapped, free, "bank"), free).cells
        assert (cells.scale > 0).all()
