"""The theorems of the paper, by enumeration on small samples."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.worlds import World, agree, random_values, ridge, tiny_worlds, worlds

from radocraft import Contract, Policy, share
from radocraft.arrays import Floats, Ints
from radocraft.errors import OneClass
from radocraft.learning._blocks import merge, merge_cells
from radocraft.learning._drl import Rados, block_rados, fit_drl, weighted
from radocraft.learning._fit import Layout
from radocraft.learning._losses import m_loss, square_loss
from radocraft.sums._cells import standardise

SEEDS = st.integers(0, 2**32 - 1)


def all_sums(edges: Floats) -> Floats:
    """The sum of every subset of the rows of ``edges``."""
    choices = np.array(list(itertools.product([0.0, 1.0], repeat=len(edges))))
    return choices @ edges


def spd(rng: np.random.Generator, size: int) -> Floats:
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.1 * np.eye(size)


def sample(seed: int, rows: int, columns: int) -> tuple[Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(rows, columns)),
        rng.choice([-1.0, 1.0], size=rows),
        rng.normal(size=columns),
        spd(rng, columns),
    )


@given(seed=SEEDS, rows=st.integers(1, 10), columns=st.integers(1, 5))
def test_theorem_1_square_loss_is_an_increasing_function_of_the_m_loss_over_all_rados(seed, rows, columns):
    examples, labels, theta, gamma = sample(seed, rows, columns)
    rados = all_sums(labels[:, None] * examples)
    over_rados = 1.0 + 4.0 / rows * m_loss(rados, theta, gamma, rows)
    assert over_rados == pytest.approx(square_loss(examples, labels, theta, gamma), rel=1e-10)


@given(seed=SEEDS, rows=st.integers(1, 8), columns=st.integers(1, 5))
def test_theorem_1_fails_with_the_half_that_the_paper_prints_before_the_variance(seed, rows, columns):
    examples, labels, theta, gamma = sample(seed, rows, columns)
    rados = all_sums(labels[:, None] * examples)
    half_variance = np.var(rados @ theta) / 2.0
    printed = 1.0 + 4.0 / rows * (m_loss(rados, theta, gamma, rows) - half_variance)
    gap = square_loss(examples, labels, theta, gamma) - printed
    assert gap == pytest.approx(np.mean((examples @ theta) ** 2) / 2.0, rel=1e-8)
    assert gap > 0


@given(world=tiny_worlds(most=3000), order=SEEDS, min_rows=st.integers(1, 3))
@settings(max_examples=30)
def test_theorem_2_block_rados_and_their_sums_are_rados_of_the_joined_sample(world: World, order, min_rows):
    rados = block_rados(world.blocks(min_rows))
    rng = np.random.default_rng(order)
    shuffled = World(
        world.contract, world.codes, world.labels, world.values, tuple(rng.permutation(rows) for rows in world.held)
    )
    np.testing.assert_allclose(block_rados(shuffled.blocks(min_rows)), rados, atol=1e-9)
    joined_rados = all_sums(world.labels[:, None] * world.joined())
    for total in all_sums(rados.T):
        assert np.abs(joined_rados - total).max(axis=1).min() < 1e-9


def theorem_3_sample() -> tuple[World, Floats]:
    rng = np.random.default_rng(20)
    contract = agree([2, 1, 3], [2], encoding="ordinal", intercept=False)
    codes = np.repeat([0, 0, 1, 1], [3, 4, 5, 4])[:, None]
    labels = np.repeat([-1, 1, -1, 1], [3, 4, 5, 4])
    values = random_values(rng, contract, codes, labels)
    world = World(contract, codes, labels, values, tuple(np.arange(len(labels)) for _ in values))
    return world, rng.uniform(0.3, 1.0, size=len(labels))


def drawn_rados(world: World, seen: list[Ints]) -> dict[tuple[int, int], Floats]:
    """Algorithm 1 on what each peer happened to see."""
    cells = tuple(standardise(world.tally(at, rows), world.contract) for at, rows in enumerate(seen))
    blocks = merge_cells(cells, world.contract)
    keys = zip(blocks.codes[:, 0].tolist(), blocks.labels.tolist(), strict=True)
    return dict(zip(keys, block_rados(blocks).T, strict=True))


def test_theorem_3_the_mean_rado_tends_to_the_rado_of_the_expected_sample():
    world, eta = theorem_3_sample()
    examples = world.joined()
    rng = np.random.default_rng(3)
    keys = [(code, label) for code in (0, 1) for label in (-1, 1)]
    draws = {key: [] for key in keys}
    for _ in range(700):
        seen = [np.flatnonzero(rng.random(len(eta)) < eta) for _ in world.values]
        rados = drawn_rados(world, seen)
        for key in keys:
            draws[key].append(rados.get(key, np.zeros(examples.shape[1])))
    for key in keys:
        inside = (world.codes[:, 0] == key[0]) & (world.labels == key[1])
        edges = world.labels[inside, None] * examples[inside]
        mean = np.mean(draws[key], axis=0)
        error = np.std(draws[key], axis=0, ddof=1) / np.sqrt(len(draws[key]))
        assert (np.abs(mean - eta[inside] @ edges) < 4.0 * error).all()
        assert (np.abs(mean - edges.sum(axis=0)) > 4.0 * error).any(), "the sample without weights must be told apart"


@given(world=tiny_worlds(), seed=SEEDS, gamma=st.sampled_from([0.01, 1.0, 100.0]), min_rows=st.integers(1, 2))
def test_theorem_4_the_closed_form_minimises_the_m_loss_over_all_sums_of_block_rados(world, seed, gamma, min_rows):
    blocks = world.blocks(min_rows)
    rados, penalty = block_rados(blocks), weighted(Layout.of(blocks).private_mask, gamma)
    sums, size = all_sums(rados.T), rados.shape[1]
    theta = Rados.of(rados).minimiser(penalty)
    pull = 2.0 * np.cov(sums.T, ddof=0).reshape(len(theta), len(theta)) @ theta + size / 2.0 * penalty @ theta
    push = sums.mean(axis=0)
    assert np.abs(pull - push).max() <= 1e-9 * (1.0 + np.abs(push).max())
    least = m_loss(sums, theta, penalty, size)
    rng = np.random.default_rng(seed)
    for reach in (1e-2, 1.0):
        for step in rng.normal(size=(10, len(theta))):
            assert m_loss(sums, theta + reach * step, penalty, size) > least


@given(seed=SEEDS, rows=st.integers(2, 12), widths=st.lists(st.integers(1, 3), min_size=2, max_size=3))
def test_with_singleton_blocks_drl_is_ridge_on_the_joined_sample(seed, rows, widths):
    rng = np.random.default_rng(seed)
    contract = agree(widths, [rows], fixed=False)
    codes = np.arange(rows)[:, None]
    labels = np.where(np.arange(rows) % 2, 1, -1)
    world = World(
        contract,
        codes,
        labels,
        random_values(rng, contract, codes, labels),
        tuple(rng.permutation(rows) for _ in widths),
    )
    fit = fit_drl(world.blocks(), "identity")
    examples = world.joined()
    np.testing.assert_allclose(fit.theta, ridge(examples, labels, np.ones(examples.shape[1])), rtol=1e-7, atol=1e-9)


@given(world=worlds(rows=(6, 30)), gamma=st.sampled_from([0.01, 1.0, 100.0]))
def test_drl_solves_its_normal_equation_whatever_the_blocks(world, gamma):
    blocks = world.blocks()
    rados, penalty = block_rados(blocks), weighted(Layout.of(blocks).private_mask, gamma)
    theta = Rados.of(rados).minimiser(penalty)
    left, right = (rados @ rados.T + len(blocks) * penalty) @ theta, rados.sum(axis=1)
    np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-8 * (1.0 + np.abs(right).max()))


TOY = """
name = "Table 1"
intercept = false
label = { column = "c", positive = 1, negative = -1 }
shared = [{ name = "x3", categories = [-1, 1], encoding = "ordinal" }]
peers.one.features = { x1 = { kind = "numeric", centre = 0, scale = 1 } }
peers.two.features = { x2 = { kind = "numeric", centre = 0, scale = 1 } }
"""


def error_of(theta: Floats, examples: Floats, labels: Floats) -> float:
    return float(np.mean(np.sign(examples @ theta) != labels))


def test_toy_table_1_two_resolutions_two_errors_one_rado():
    positive, theta = np.array([1.0, 1.0]), np.ones(3)
    first = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
    second = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]])
    assert error_of(theta, first, positive) == 0.0
    assert error_of(theta, second, positive) == 0.5
    np.testing.assert_array_equal(first.sum(axis=0), [0.0, 0.0, 2.0])
    np.testing.assert_array_equal(second.sum(axis=0), [0.0, 0.0, 2.0])

    # The table itself has one class and may not be released; a third person, of the other class, lets it.
    contract = Contract.parse(TOY)
    tables = {"one": {"x1": [1.0, -1.0, 5.0]}, "two": {"x2": [-1.0, 1.0, 7.0]}}
    parts = []
    for peer, private in tables.items():
        table = pa.table({**private, "x3": [1, 1, -1], "c": [1, 1, -1]})
        with pytest.raises(OneClass):
            share(table.slice(0, 2), contract, peer, policy=Policy.exact())
        parts.append(share(table, contract, peer, policy=Policy.exact()))
    blocks = merge(parts, contract)
    toy = (blocks.labels == 1).argmax()
    x3, x1, x2 = block_rados(blocks)[:, toy]
    assert (x1, x2, x3) == (0.0, 0.0, 2.0)
