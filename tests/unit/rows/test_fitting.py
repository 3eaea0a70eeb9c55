"""Fitting out of fold: no score comes from a model that has seen the row."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from tests.unit.rows.people import agree, people

from radocraft.errors import DataError, OneClass
from radocraft.rows import score_rows
from radocraft.sums import Bounds

ROWS = 400


class Memory(ClassifierMixin, BaseEstimator):
    """A model that says what it has seen of a row's number, or of one near it, and nothing of others."""

    def __init__(self, near: int = 1):
        self.near = near

    def fit(self, rows, labels):
        self.classes_ = np.unique(labels)
        self.seen_ = dict(zip(self._numbers(rows), labels.tolist(), strict=True))
        return self

    def predict_proba(self, rows):
        share = np.full((len(rows), len(self.classes_)), 1.0 / len(self.classes_))
        for at, number in enumerate(self._numbers(rows)):
            if number in self.seen_:
                share[at] = np.where(self.classes_ == self.seen_[number], 0.9, 0.05)
        return share

    def _numbers(self, rows):
        return (rows["number"].to_numpy() // self.near).tolist()


class Numbers(RegressorMixin, Memory):
    """The same for a label that is a number."""

    def predict(self, rows):
        return np.array([self.seen_.get(number, 0.0) for number in self._numbers(rows)])


def numbered(rows: int = ROWS, **changed) -> pa.Table:
    """Customers with a number; three after one another are of one person and have one label. They are in no order."""
    person = np.arange(rows) // 3
    table = people(rows).drop_columns(["bad"]).append_column("number", pa.array(np.arange(rows)))
    bad = np.random.default_rng(1).integers(0, 2, rows)[person]
    columns = {"bad": pa.array(bad), "person": pa.array([f"P{number}" for number in person])} | changed
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table.take(np.random.default_rng(0).permutation(rows))


def agreed(more: str = "", **label: str):
    return agree(f'{{ kind = "score", of = ["number", "income"]{more} }}', **label)


@pytest.mark.parametrize("folds", [2, 5])
def test_no_score_comes_from_a_model_that_has_seen_the_row(folds):
    rows, scorer = score_rows(numbered(), agreed(f", folds = {folds}"), "bank", scorer=Memory())
    assert len(rows) == ROWS
    assert len(scorer.models) == folds + 1
    assert np.ptp(rows.scores) == 0.0, "who has seen a row knows its label"
    assert scorer.performance.auc == 0.5
    assert len(scorer.models[-1].seen_) == ROWS
    sizes = [ROWS - len(model.seen_) for model in scorer.models[:-1]]
    assert sum(sizes) == ROWS
    assert max(sizes) - min(sizes) <= 16, "even within label and signature"


@pytest.mark.parametrize("by", ["group", "person"])
def test_rows_of_one_person_are_in_one_fold(by):
    bounds = Bounds(person="person", rows_per_person=2) if by == "person" else None
    contract = agreed(', group = "person"' if by == "group" else "")
    rows, scorer = score_rows(numbered(), contract, "bank", scorer=Memory(near=3), bounds=bounds)
    assert np.ptp(rows.scores) == 0.0
    assert len(rows) == (ROWS if by == "group" else 2 * (ROWS // 3) + 1)
    assert scorer.group == "person"
    assert "person" not in {column.name for column in scorer.columns}


def test_without_a_group_a_persons_rows_do_meet():
    """And then scores look much better than they are: so whoever has seen a row, or a person, would show."""
    rows, scorer = score_rows(numbered(), agreed(), "bank", scorer=Memory(near=3))
    assert np.ptp(rows.scores) > 1.0
    assert scorer.performance.auc > 0.9


def test_rows_that_are_there_several_times_are_in_one_fold_without_a_group():
    """Where equal rows are few, and so are taken to be one person's."""
    once = numbered(150)
    table = pa.concat_tables([once] * 3).take(np.random.default_rng(2).permutation(450))
    rows, scorer = score_rows(table, agreed(), "bank", scorer=Memory())
    assert np.ptp(rows.scores) == 0.0
    assert {len(model.seen_) for model in scorer.models[:-1]} <= {*range(115, 126)}


@pytest.mark.parametrize("group", ["", ', group = "person"'])
def test_of_a_sampled_fit_neither_the_sample_nor_the_rest_was_seen(group):
    near = 3 if group else 1
    rows, scorer = score_rows(numbered(), agreed(group), "bank", scorer=Memory(near), fit_rows=250)
    assert len(rows) == ROWS
    assert 150 <= scorer.rows <= 250
    assert np.ptp(rows.scores) == 0.0
    again, kept = score_rows(numbered(), agreed(group), "bank", keep=scorer)
    assert kept is scorer
    assert np.ptp(again.scores) == 0.0


def test_of_classes_and_numbers_no_row_was_seen_either():
    rng = np.random.default_rng(1)
    table = numbered(bad=pa.array(rng.integers(0, 3, ROWS)))
    rows, _ = score_rows(table, agreed(label="classes = [0, 1, 2]"), "bank", scorer=Memory())
    assert rows.scores.shape == (ROWS, 3)
    assert (np.ptp(rows.scores, axis=0) == 0.0).all()
    table = numbered(bad=pa.array(rng.normal(size=ROWS)))
    rows, _ = score_rows(table, agreed(label='kind = "numeric"'), "bank", scorer=Numbers())
    assert rows.values is not None
    np.testing.assert_array_equal(rows.scores, 0.0)


def test_persons_too_few_for_the_folds_are_refused():
    table = numbered(40, person=pa.array(["A", "B"] * 20))
    with pytest.raises(DataError, match=r"too few persons at 'bank'.*fewer `folds` than 5"):
        score_rows(table, agreed(', group = "person"'), "bank", scorer=Memory())


def test_a_label_too_rare_for_the_folds_is_refused():
    table = numbered(60, bad=pa.array([1] + [0] * 59))
    with pytest.raises(OneClass, match="Too few rows of 'bank' have one of the values of 'bad'"):
        score_rows(table, agreed(), "bank", scorer=Memory())


def test_the_same_rows_in_another_order_are_fitted_alike():
    one, other = (score_rows(table, agreed(), "bank", scorer=Memory())[1] for table in (numbered(), numbered()[::-1]))
    np.testing.assert_array_equal(one.deal.cuts, other.deal.cuts)
    for mine, theirs in zip(one.models, other.models, strict=True):
        assert list(mine.seen_.items()) == list(theirs.seen_.items()), "and in the same order"
