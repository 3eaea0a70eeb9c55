"""Folds: even, the same whatever the order of rows, and known for rows that come later."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radocraft.rows._folds import Deal, equal_rows_are_one, lots, lots_of_text, mixed, occurrences, strata_of


@st.composite
def dealt(draw):
    """Lots, strata, labels and a number of folds; some lots and strata occur often."""
    rows, folds, labels = draw(st.integers(1, 120)), draw(st.integers(2, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lot = mixed(rng.integers(0, draw(st.sampled_from([5, 2**40])), rows).astype(np.uint64))
    label = rng.integers(0, labels, rows)
    return lot, strata_of(rng.integers(0, 4, rows), label, labels), label, labels, folds


@given(dealt(), st.integers(0, 2**32 - 1))
def test_a_rows_fold_does_not_depend_on_the_order_of_rows(given_rows, seed):
    lot, strata, label, labels, folds = given_rows
    order = np.random.default_rng(seed).permutation(len(lot))
    fold = Deal.of(lot, strata, label, labels, folds).fold(lot, strata, label)
    other = Deal.of(lot[order], strata[order], label[order], labels, folds)
    np.testing.assert_array_equal(other.fold(lot, strata, label), fold)
    assert ((fold >= 0) & (fold < folds)).all()


@given(dealt())
def test_rows_of_one_stratum_with_one_lot_are_in_one_fold_also_when_they_come_later(given_rows):
    lot, strata, label, labels, folds = given_rows
    half = len(lot) // 2 + 1
    deal = Deal.of(lot[:half], strata[:half], label[:half], labels, folds)
    fold_of: dict[tuple[int, int], int] = {}
    for row in zip(lot.tolist(), strata.tolist(), deal.fold(lot, strata, label).tolist(), strict=True):
        assert fold_of.setdefault(row[:2], row[2]) == row[2]


@given(rows=st.integers(1, 200), folds=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_folds_are_even_within_every_stratum_with_enough_rows(rows, folds, seed):
    rng = np.random.default_rng(seed)
    lot, label = mixed(np.arange(rows, dtype=np.uint64)), rng.integers(0, 2, rows)
    strata = strata_of(rng.integers(0, 3, rows), label, 2)
    fold = Deal.of(lot, strata, label, 2, folds).fold(lot, strata, label)
    known, size = np.unique(strata, return_counts=True)
    for stratum in known[size >= 2 * folds]:
        assert np.ptp(np.bincount(fold[strata == stratum], minlength=folds)) <= 1
    for one in (0, 1):
        rest = (label == one) & np.isin(strata, known[size < 2 * folds])
        assert np.ptp(np.bincount(fold[rest], minlength=folds)) <= 1


@given(st.lists(st.integers(0, 4), max_size=30))
def test_occurrences_count_equal_numbers_before(numbers):
    expected = [numbers[:at].count(number) for at, number in enumerate(numbers)]
    assert occurrences(np.array(numbers, dtype=np.uint64)).tolist() == expected


def test_lots_are_of_what_rows_hold():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(500, 3))
    assert len(np.unique(lots(matrix, 0))) == 500
    assert not (lots(matrix, 0) == lots(matrix, 1)).any()
    assert not (lots(matrix, 0) == lots(matrix[:, ::-1], 0)).any()
    order = rng.permutation(500)
    np.testing.assert_array_equal(lots(matrix[order], 3), lots(matrix, 3)[order])


def test_whose_a_row_is_has_one_lot_however_text_is_held():
    plain = pa.array(["P1", None, "P2", "P1", ""])
    found = lots_of_text(plain, 7)
    assert found[0] == found[3] != found[2]
    assert found[1] == 0
    assert (found[[0, 2, 4]] != 0).all()
    np.testing.assert_array_equal(lots_of_text(plain.dictionary_encode(), 7), found)
    assert lots_of_text(plain, 8)[0] != found[0]


@pytest.mark.parametrize(
    ("columns", "are_numbers", "one"),
    [
        ([np.arange(300.0) // 2], [True], True),
        ([np.arange(600.0) % 200, np.arange(600.0) % 2], [True, True], True),
        ([np.arange(600.0) % 6, np.arange(600.0) % 4], [True, True], False),
        ([np.arange(600.0) % 120], [False], False),
    ],
    ids=["few are equal", "a number tells rows apart", "few values", "categories"],
)
def test_equal_rows_are_one_person_where_features_tell_people_apart(columns, are_numbers, one):
    matrix = np.column_stack(columns)
    assert equal_rows_are_one(matrix, are_numbers, lots(matrix, 0)) is one
