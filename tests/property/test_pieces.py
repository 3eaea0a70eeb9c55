"""Learning walks over blocks in pieces: how large they are changes nothing."""

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration import test_classes, test_numbers
from tests.property.test_common_features import blocks_of, joined
from tests.property.worlds import worlds

from radocraft import Contract, learn
from radocraft.arrays import Floats
from radocraft.learning import _blocks as module
from radocraft.learning._blocks import Blocks
from radocraft.learning._drl import in_folds
from radocraft.learning._fit import Fit, Layout
from radocraft.learning._matching import fit_matching
from radocraft.learning._population import Population
from radocraft.learning._products import Products, coordinates

SIZES = st.integers(1, 9)


def added_up(blocks: Blocks, fit: Fit) -> Iterator[tuple[str, Floats, float]]:
    """Everything that is added up over blocks, or put together of their scores, and how large its terms are."""
    peers = range(len(blocks.cells))
    products = Products.of(blocks, Layout.of(blocks), [*((at,) for at in peers), tuple(peers)])
    yield "between", products.between, np.trace(products.between)
    yield "r", products.r, np.trace(products.between) + blocks.weights.sum()
    for held, inside in products.inside.items():
        yield f"inside {held}", inside, np.trace(inside)
    for at, fold in enumerate(in_folds(blocks, 0)):
        yield f"gram of fold {at}", fold.gram, np.trace(fold.gram)
        yield f"sum of fold {at}", fold.sum, np.trace(fold.gram) ** 0.5 * fold.count
    found = Population.of(blocks, fit)
    largest = np.abs(coordinates(blocks, fit.layout)).max() * np.abs(fit.theta).sum()
    yield "contributions", found.contributions, largest
    yield "covariance", found.covariance, np.trace(products.between)


def assert_the_same_in_pieces(blocks: Blocks, size: int) -> None:
    fit = fit_matching(blocks, 0.25, alpha=0.1)
    whole = list(added_up(blocks, fit))
    with mock.patch.object(module, "PIECE", size):
        in_pieces = list(added_up(blocks, fit))
    for (name, one, scale), (_, other, _) in zip(whole, in_pieces, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12 * scale, err_msg=name)


@given(world=worlds("G", missing=True, rows=(6, 60)), min_rows=st.integers(1, 4), size=SIZES)
def test_sums_over_pieces_are_sums_over_all_blocks(world, min_rows, size):
    assert_the_same_in_pieces(world.blocks(1, min_rows), size)


@given(seed=st.integers(0, 99), size=SIZES)
def test_also_where_columns_are_held_by_several_peers_and_blocks_unseen_by_some(seed, size):
    rng = np.random.default_rng(seed)
    codes, labels, columns = joined(40, seed)
    unseen = np.flatnonzero((codes[:, 0] == 1) & (labels == 1))
    seen = {peer: np.setdiff1d(np.arange(40), unseen if peer != "p2" else []) for peer in ("p0", "p1", "p2")}
    seen["p1"] = rng.permutation(seen["p1"])[:25]
    assert_the_same_in_pieces(blocks_of(seen, codes, labels, columns), size)


@given(world=worlds("G", rows=(6, 40)), data=st.data())
def test_some_blocks_have_the_numbers_they_have_among_all(world, data):
    blocks = world.blocks()
    chosen = np.array(data.draw(st.lists(st.integers(0, len(blocks) - 1), max_size=5)), dtype=np.int64)
    some, layout = blocks.pick(chosen), Layout.of(blocks)
    np.testing.assert_array_equal(coordinates(some, layout), coordinates(blocks, layout)[chosen])
    np.testing.assert_array_equal(some.targets, blocks.targets[chosen])
    np.testing.assert_array_equal(some.weights, blocks.weights[chosen])


@pytest.mark.parametrize(
    ("world", "contract"),
    [(test_numbers, test_numbers.BINS), (test_classes, test_classes.THREE)],
    ids=["number", "classes"],
)
def test_a_model_of_a_number_or_of_several_classes_is_the_same_in_pieces(world, contract):
    contract = Contract.model_validate(contract.model_dump(mode="json"))
    parts = world.parts_of(world.people(500), contract)
    whole = learn(parts, contract)
    with mock.patch.object(module, "PIECE", 2):
        in_pieces = learn(parts, contract)
    assert len(whole.blocks.labels) > 2
    for one, other in zip(whole.coefficients, in_pieces.coefficients, strict=True):
        np.testing.assert_allclose(other.standardised, one.standardised, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(in_pieces.blocks.shared, whole.blocks.shared, rtol=1e-9, atol=1e-12)
    assert in_pieces.estimate.error == pytest.approx(whole.estimate.error, rel=1e-9)
