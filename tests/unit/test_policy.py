"""The gate: what leaves, what is rolled up, what is kept back."""

import numpy as np
import pyarrow as pa
import pytest
from tests.property.worlds import agree

import radocraft as rc
from radocraft.errors import ContractMismatch, OneClass, PolicyError, PolicyRefusal
from radocraft.gate._policy import Policy
from radocraft.gate._release import release
from radocraft.sums._cells import ROLLED
from radocraft.sums._tally import Tally


def tally_of(sizes: dict[tuple[int, ...], int], contract, missing: dict[tuple[int, ...], int] | None = None) -> Tally:
    """So many rows for each (codes..., label); of them so many without a value."""
    keys = np.repeat(np.array(list(sizes), dtype=np.int64), list(sizes.values()), axis=0)
    values = np.arange(float(len(keys)))[:, None]
    for key, count in (missing or {}).items():
        values[np.flatnonzero((keys == key).all(axis=1))[:count]] = np.nan
    return Tally.of_rows(contract, "p0", ("x0_0",), codes=keys[:, :-1], labels=keys[:, -1], values=values)


def shown(released) -> dict[tuple[int, ...], int]:
    cells = released.cells
    keys = np.column_stack([cells.codes, cells.labels]).tolist()
    return {tuple(key): int(rows) for key, rows in zip(keys, cells.rows, strict=True)}


A = ROLLED


@pytest.mark.parametrize(
    ("sizes", "min_rows", "expected"),
    [
        ({(0, 0, 1): 5, (0, 1, 1): 5, (0, 0, -1): 5}, 5, {(0, 0, 1): 5, (0, 1, 1): 5, (0, 0, -1): 5}),
        # Too few rows to tell three hidden codes apart: on to the label alone.
        ({(0, 0, 1): 5, (0, 1, 1): 2, (0, 2, 1): 3, (0, 0, -1): 5}, 5, {(0, 0, 1): 5, (A, A, 1): 5, (0, 0, -1): 5}),
        ({(0, 0, 1): 2, (0, 1, 1): 2, (1, 0, 1): 1, (0, 0, -1): 5}, 5, {(A, A, 1): 5, (0, 0, -1): 5}),
        # One row is left over at the top: the smallest cell joins it, but none that lies inside another.
        ({(0, 0, 1): 9, (1, 0, 1): 6, (2, 0, 1): 1, (0, 0, -1): 5}, 5, {(0, 0, 1): 9, (A, A, 1): 7, (0, 0, -1): 5}),
        (
            {(0, 0, 1): 5, (0, 1, 1): 3, (0, 2, 1): 4, (1, 0, 1): 1, (0, 0, -1): 5},
            5,
            {(0, 0, 1): 5, (A, A, 1): 8, (0, 0, -1): 5},
        ),
    ],
)
def test_small_blocks_join_their_siblings(sizes, min_rows, expected):
    contract = agree([1], [3, 3])
    released = release(tally_of(sizes, contract), contract, Policy(min_rows=min_rows))
    assert shown(released) == expected
    rolled = {key: rows for key, rows in expected.items() if ROLLED in key[:-1]}
    assert released.rows_rolled_up == sum(rolled.values())
    assert released.blocks_rolled_up == len(sizes) - len([key for key in expected if ROLLED not in key[:-1]])


def test_ten_rows_are_the_fewest_unless_a_peer_says_otherwise():
    contract = agree([1], [2])
    sizes = {(0, 1): 10, (1, 1): 9, (0, -1): 10, (1, -1): 10}
    assert shown(release(tally_of(sizes, contract), contract)) == {(A, 1): 19, (0, -1): 10, (1, -1): 10}


def test_a_sum_of_few_present_values_does_not_leave_either():
    contract = agree([1], [2])
    sizes = {(0, 1): 6, (1, 1): 6, (0, -1): 6}
    released = release(tally_of(sizes, contract, {(0, 1): 3}), contract, Policy(min_rows=5))
    assert shown(released) == {(A, 1): 12, (0, -1): 6}
    kept = release(tally_of(sizes, contract, {(0, 1): 6}), contract, Policy(min_rows=5))
    assert shown(kept) == sizes


def test_a_column_with_few_values_in_all_is_kept_back():
    contract = agree([1], [2])
    tally = tally_of({(0, 1): 6, (0, -1): 6}, contract, {(0, 1): 4})
    with pytest.raises(PolicyRefusal, match="too few present") as raised:
        release(tally, contract, Policy(min_rows=5))
    assert raised.value.exit_code == 4


def test_a_rare_label_is_kept_back_without_telling_how_rare():
    contract = agree([1], [2])
    with pytest.raises(PolicyRefusal, match="fewer than 10 rows with label '1'") as raised:
        release(tally_of({(0, 1): 7, (0, -1): 30}, contract), contract)
    assert "7" not in str(raised.value)
    assert raised.value.exit_code == 4


@pytest.mark.parametrize("label", [1, -1])
def test_one_class_is_no_release(label):
    contract = agree([1], [2])
    with pytest.raises(OneClass, match="Only one value of the label 'label' occurs at 'p0'") as raised:
        release(tally_of({(0, label): 30}, contract), contract)
    assert raised.value.exit_code == 1


def test_a_tally_of_another_contract_is_refused():
    tally = tally_of({(0, 1): 30, (0, -1): 30}, agree([1], [2]))
    with pytest.raises(ContractMismatch, match="another contract") as raised:
        release(tally, agree([1], [3]))
    assert raised.value.exit_code == 3


@pytest.mark.parametrize("min_rows", [0, -1])
def test_min_rows_is_at_least_1(min_rows):
    with pytest.raises(PolicyError, match="min_rows"):
        Policy(min_rows=min_rows)


def test_a_constant_column_is_noted():
    contract = agree([2], [1], fixed=False)
    labels = np.where(np.arange(40) % 2, 1, -1)
    values = np.column_stack([np.full(40, 1e8 + 0.1), np.arange(40.0)])
    tally = Tally.of_rows(
        contract, "p0", ("x0_0", "x0_1"), codes=np.zeros((40, 1), dtype=np.int64), labels=labels, values=values
    )
    released = release(tally, contract)
    assert released.notes == ("'x0_0' is constant: it carries nothing",)
    assert released.cells.scale[0] == 1.0
    np.testing.assert_allclose(released.cells.sums[:, 0], 0.0, atol=1e-6)


def test_a_column_without_a_value_is_noted():
    contract, tables = rc.example_peers(rows=2_000)
    table = tables["bank"]
    lost = table.column_names.index("balance")
    empty = table.set_column(lost, "balance", pa.nulls(len(table), pa.float64()))
    assert (
        "'balance' has no value in any row: it carries nothing"
        in release(rc.craft(empty, contract, "bank"), contract).notes
    )


def test_a_limit_above_every_label_is_refused_with_categories_too():
    """All categories end up as one, which is still too small of a label: there is nothing left to merge it with."""
    contract, tables = rc.example_peers(rows=300)
    with pytest.raises(PolicyRefusal, match="not even their total may leave"):
        release(rc.craft(tables["bank"], contract, "bank"), contract, Policy(250))
