"""Linked rows: what they show of the unseen covariance, what they choose, and how they validate."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Part, Policy, learn
from radocraft.errors import LearnError, MissingColumn, UnknownLabel
from radocraft.learning._blocks import merge
from radocraft.learning._completion import complete
from radocraft.learning._linked import SHARES, cross_fitted, largest_share, seen
from radocraft.learning._linked_rows import read_linked
from radocraft.learning._matching import Ridge

CONTRACT = Contract.parse(
    """
name = "twins"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]
peers.one.features = { u = "numeric", k = "numeric" }
peers.two.features = { v = "numeric" }
"""
)


def people(rows: int, seed: int = 0) -> pa.Table:
    """Inside blocks u and v go against each other, which no sum of one peer alone can show."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    common = rng.normal(size=rows)
    u, v = (0.6 * y + sign * common + 0.4 * rng.normal(size=rows) for sign in (1, -1))
    return pa.table({"y": y, "s": rng.choice(["a", "b"], rows), "u": u, "k": rng.normal(size=rows) + y, "v": v})


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    table = people(4000)
    order = np.random.default_rng(1).permutation(4000)
    tables = {"one": table.drop_columns(["v"]), "two": table.select(["y", "s", "v"]).take(order)}
    return [noisy_part(t, CONTRACT, p, Policy.exact(10)) for p, t in tables.items()]


def squared_loss(model: Model, test: pa.Table) -> float:
    labels = np.where(test.column("y").to_numpy() == 1, 1, -1)
    return float(np.mean((labels - model.predict(test).score) ** 2))


def test_linked_rows_show_what_no_caution_can_guess(parts: list[Part]) -> None:
    test = people(20_000, seed=9)
    fixed = {caution: squared_loss(learn(parts, CONTRACT, caution=caution), test) for caution in (0.0, 0.25, 0.5, 1.0)}
    model = learn(parts, CONTRACT, linked=people(300, seed=5))
    assert squared_loss(model, test) < min(fixed.values())
    assert model.settings.keys() == {"covariance", "alpha"}


def test_validation_is_a_real_error(parts: list[Part]) -> None:
    model = learn(parts, CONTRACT, linked=people(2000, seed=5))
    test = people(20_000, seed=9)
    labels = test.column("y").to_numpy() == 1
    true = float(np.mean(model.predict(test).positive != labels))
    assert model.validation is not None
    assert model.validation.rows == 2000
    assert model.validation.error == pytest.approx(true, abs=3 * np.sqrt(true * (1 - true) / 2000))
    assert model.validation.loss == min(candidate.loss for candidate in model.validation.compared)


def test_a_share_of_the_covariance_is_judged_by_rows_that_did_not_make_it(parts: list[Part]) -> None:
    """Rows come in five turns; what others of a row's own turn are like says nothing of its score."""
    blocks = merge(parts, CONTRACT)
    linked, problem = read_linked(people(100, seed=5), blocks), Ridge(complete(blocks), 0.01)
    changed = linked.design.copy()
    changed[5::5, -1] *= -3.0  # all of the first turn but its first row
    before, after = (cross_fitted(problem, blocks, rows) for rows in (linked, replace(linked, design=changed)))
    assert [share for share, _ in before] == [*SHARES]
    for (_, old), (_, new) in zip(before, after, strict=True):
        assert new[0] == old[0]
        assert (new[1:5] != old[1:5]).all(), "of the other turns it says much"


def test_covariance_is_that_of_the_joined_table(parts: list[Part]) -> None:
    """With all rows linked, E + V + C is the joined table's second moment, up to rounding."""
    table = people(4000)
    blocks = merge(parts, CONTRACT)
    linked = read_linked(table, blocks)
    known = complete(blocks)
    with_all = seen(known, blocks, linked, 1.0)
    np.testing.assert_allclose(with_all.expected(), linked.design.T @ linked.design, rtol=1e-8, atol=1e-6)


def test_share_keeps_the_moments_positive(parts: list[Part]) -> None:
    blocks = merge(parts, CONTRACT)
    known = complete(blocks)
    few = read_linked(people(25, seed=3), blocks)
    result = seen(known, blocks, few, 1.0)
    assert np.linalg.eigvalsh(result.expected()).min() > -1e-8 * known.total
    assert 0 < largest_share(known, 50 * (result.cross if result.cross is not None else 0)) < 1


def test_what_linked_rows_must_have(parts: list[Part]) -> None:
    rows = people(100)
    with pytest.raises(MissingColumn, match="'two'"):
        learn(parts, CONTRACT, linked=rows.drop_columns(["v"]))
    with pytest.raises(MissingColumn, match="label"):
        learn(parts, CONTRACT, linked=rows.drop_columns(["y"]))
    with pytest.raises(UnknownLabel):
        learn(parts, CONTRACT, linked=rows.set_column(0, "y", pa.array([7] * 100)))
    with pytest.raises(LearnError, match="at least 20"):
        learn(parts, CONTRACT, linked=rows.slice(0, 10))
    with pytest.raises(LearnError, match="either"):
        learn(parts, CONTRACT, linked=rows, caution=0.5)


def test_rows_outside_all_blocks_are_left_out_of_the_covariance(parts: list[Part]) -> None:
    blocks = merge(parts, CONTRACT)
    rows = people(50)
    elsewhere = rows.set_column(1, "s", pa.array(["c"] * 50))
    assert (read_linked(elsewhere, blocks).block == -1).all()
    assert (read_linked(rows, blocks).block >= 0).all()
