"""Moments of two private columns: sums over the rows in which neither has its usual value.

Whoever knows that a column is mostly 0 reads its moment with a category as the
category's sum, with a truth value as the sum of one side, and with another such
column as a sum over the rows both fill; and subtracts from the column's total.
"""

from collections.abc import Iterator
from itertools import chain, combinations
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from radocraft.policy import gate

from radocraft import Contract, Part, Policy, craft, release
from radocraft.sums._cells import Cells

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "age", edges = [40] }]

[peers.bank.features]
flag = { kind = "numeric", centre = 0, scale = 1 }
gain = { kind = "numeric", centre = 0, scale = 1 }
loss = { kind = "numeric", centre = 1, scale = 2 }
job = { kind = "categorical", categories = ["clerk", "nurse", "pilot"] }
member = "boolean"
""")
USUAL = {"gain": 0.0, "loss": 3.5}
LIMIT = 10
NONE = Policy(mode="none", gives_away_single_rows=True)


def table(seed: int, rows: int, filled: float, missing: float = 0.0) -> pa.Table:
    """Gains and losses of a share of the rows, most of all of clerks who are no members and have a flag."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "nurse", "pilot", "vet"], rows, p=[0.4, 0.3, 0.2, 0.1])
    member, flag = rng.random(rows) < 0.4, np.where(rng.random(rows) < 0.3, 7.0, 2.0)
    likely = filled * np.where(job == "clerk", 1.0, 0.4) * np.where(member, 0.2, 1.0) * np.where(flag > 2, 2.0, 0.1)
    columns = {"bad": rng.integers(0, 2, rows), "age": rng.choice([25, 45], rows), "job": job}
    for name, usual in USUAL.items():
        values = np.where(rng.random(rows) < likely, rng.normal(50, 9, rows), usual)
        columns[name] = pa.array(values, mask=rng.random(rows) < missing)
    return pa.table({**columns, "member": member, "flag": flag})


def told(cells: Cells, one: str, other: str) -> float:
    """The sum over all rows of two columns' product, values counted from the usual one (0 of a truth value)."""
    base = {**USUAL, "flag": 2.0, "member": 0.0}
    left, right = cells.columns.index(one), cells.columns.index(other)
    shift = (cells.centre - [base.get(name, 0.0) for name in cells.columns]) / cells.scale
    total, rows = cells.moments[:, -1], cells.total
    product = cells.moments[left, right] + shift[left] * total[right] + shift[right] * total[left]
    return float((product + rows * shift[left] * shift[right]) * cells.scale[left] * cells.scale[right])


def total(cells: Cells, one: str) -> float:
    at = cells.columns.index(one)
    return float(cells.moments[at, -1] * cells.scale[at] + cells.total * (cells.centre[at] - USUAL[one]))


def guesses(rows: pa.Table, cells: Cells) -> Iterator[tuple[str, int, float, float]]:
    """What is asked, how many rows are behind it, the truth, and what the attacker makes of the part."""
    of = {name: rows.column(name).to_numpy(zero_copy_only=False) for name in rows.column_names}
    away = {name: of[name] - usual for name, usual in USUAL.items()}
    jobs = {"clerk": "clerk", "nurse": "nurse", "pilot": "pilot", "unseen": "vet"}
    for name, values in away.items():
        for some in chain.from_iterable(combinations(jobs, size) for size in (1, 2, 3)):
            inside = np.isin(of["job"], [jobs[one] for one in some])
            found = sum(told(cells, name, f"job={one}") for one in some)
            yield f"{name} of {some}", int((inside & (values != 0)).sum()), values[inside].sum(), found
        for side, inside, unit in (("member", of["member"].astype(bool), 1.0), ("flag", of["flag"] > 2, 5.0)):
            found = told(cells, name, side) / unit
            yield f"{name} if {side}", int((inside & (values != 0)).sum()), values[inside].sum(), found
            rest = total(cells, name) - found
            yield f"{name} if not {side}", int((~inside & (values != 0)).sum()), values[~inside].sum(), rest
    product = away["gain"] * away["loss"]
    yield "gain * loss", int((product != 0).sum()), product.sum(), told(cells, "gain", "loss")


def recovered(rows: pa.Table, policy: Policy | None) -> list[str]:
    """Which sums over a few rows the attacker has right."""
    cells = Part.seal(release(craft(rows, CONTRACT, "bank"), CONTRACT, policy)).cells(CONTRACT)
    few = [one for one in guesses(rows, cells) if 0 < one[1] < LIMIT]
    return [name for name, _, truth, found in few if abs(truth - found) < 1e-6 * max(abs(truth), 1.0)]


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_over_a_few_rows_that_two_columns_fill_is_not_told(seed):
    rows = table(seed, 400, filled=0.25)
    assert len(recovered(rows, NONE)) >= 5
    with mock.patch.object(gate, "without_small_pairs", lambda tally, *_: tally):
        assert recovered(rows, Policy()), "a gate that only rolls up tells it"
    assert not recovered(rows, Policy())


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(150, 500), filled=st.floats(0.08, 0.5))
@settings(max_examples=60, deadline=None)
def test_nor_does_it_follow_by_subtraction_in_any_table(seed, rows, filled):
    assert not recovered(table(seed, rows, filled), Policy())


def test_what_stands_on_enough_rows_is_exact():
    rows = table(0, 4000, filled=0.6)
    cells = release(craft(rows, CONTRACT, "bank"), CONTRACT).cells
    for name, behind, truth, found in guesses(rows, cells):
        assert behind >= LIMIT
        assert found == pytest.approx(truth, rel=1e-9), name


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_hidden_sums_keep_their_total_and_are_what_unrelated_columns_would_have(seed):
    rows = table(seed, 400, filled=0.25)
    bare, safe = (release(craft(rows, CONTRACT, "bank"), CONTRACT, policy).cells for policy in (NONE, Policy()))
    for name in USUAL:
        names = [column for column in safe.columns if column.startswith("job=")]
        assert sum(told(safe, name, one) for one in names) == pytest.approx(total(bare, name))
    expected = total(bare, "gain") * total(bare, "loss") / bare.total
    both = (rows.column("gain").to_numpy() != 0) & (rows.column("loss").to_numpy() != 3.5)
    assert 0 < both.sum() < LIMIT
    assert told(safe, "gain", "loss") == pytest.approx(expected)


def test_a_table_crafted_in_pieces_tells_no_more():
    rows = table(1, 400, filled=0.25)
    first = craft(rows.slice(0, 150), CONTRACT, "bank")
    pieces = (craft(rows.slice(150), CONTRACT, "bank", onto=first), first + craft(rows.slice(150), CONTRACT, "bank"))
    whole = release(craft(rows, CONTRACT, "bank"), CONTRACT).cells
    for tally in pieces:
        np.testing.assert_allclose(release(tally, CONTRACT).cells.moments, whole.moments, rtol=1e-9, atol=1e-6)


def test_what_is_missing_does_not_bring_it_back():
    """An entry that is hidden says no more than the columns' totals do, whichever rows miss a value."""
    rows = table(1, 400, filled=0.25, missing=0.02)
    cells = release(craft(rows, CONTRACT, "bank"), CONTRACT).cells
    one, other = cells.columns.index("gain"), cells.columns.index("loss")
    totals = cells.moments[:, -1]
    assert cells.moments[one, other] == pytest.approx(totals[one] * totals[other] / cells.total)
