"""Bringing parts together: what is refused, and block means where a peer has seen nothing."""

import numpy as np
import pytest
from tests.property.worlds import World, agree

from radocraft.contract._contract import Contract
from radocraft.errors import ContractMismatch, LearnError
from radocraft.learning._blocks import merge
from radocraft.sums._cells import ROLLED


def world_of(contract: Contract, held: list[list[int]], seed: int = 0, rows: int = 40) -> World:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([np.arange(rows) % 2, np.arange(rows) // 2 % 2])
    labels = np.where(np.arange(rows) // 4 % 2, 1, -1)
    values = tuple(rng.normal(size=(rows, len(peer.features))) for peer in contract.peers.values())
    return World(contract, codes, labels, values, tuple(np.array(kept) for kept in held))


CONTRACT = agree([2, 1], [2, 2])
EVERYBODY = list(range(40))


def test_peers_stand_in_the_order_of_the_contract():
    parts = world_of(CONTRACT, [EVERYBODY, EVERYBODY]).parts()
    assert merge(parts[::-1], CONTRACT).peers == ("p0", "p1")


def test_no_parts_at_all():
    with pytest.raises(LearnError, match="no parts to learn from"):
        merge([], CONTRACT)


def test_two_parts_of_one_peer():
    parts = world_of(CONTRACT, [EVERYBODY, EVERYBODY]).parts()
    with pytest.raises(LearnError, match="two parts of 'p0'") as raised:
        merge([*parts, parts[0]], CONTRACT)
    assert raised.value.exit_code == 1


def test_a_part_of_another_contract():
    parts = world_of(CONTRACT, [EVERYBODY, EVERYBODY]).parts()
    with pytest.raises(ContractMismatch) as raised:
        merge(parts, agree([2, 1], [2, 3]))
    assert raised.value.exit_code == 3


def test_no_common_blocks():
    first = [row for row in EVERYBODY if row % 2 == 0]
    second = [row for row in EVERYBODY if row % 2 == 1]
    parts = world_of(CONTRACT, [first, second]).parts()
    with pytest.raises(LearnError, match=r"No block is known to two peers.*spelling of categories") as raised:
        merge(parts, CONTRACT)
    assert raised.value.exit_code == 1


def test_one_part_is_enough_to_merge():
    blocks = merge(world_of(CONTRACT, [EVERYBODY, EVERYBODY]).parts()[:1], CONTRACT)
    assert (blocks.peers, len(blocks)) == (("p0",), 8)


def test_weights_average_the_peers_rows_by_their_number_of_columns():
    some = [row for row in EVERYBODY if row < 16]
    blocks = merge(world_of(CONTRACT, [EVERYBODY, some]).parts(), CONTRACT)
    np.testing.assert_allclose(blocks.weights, (2 * blocks.rows[0] + 1 * blocks.rows[1]) / 3)
    assert blocks.rows.sum(axis=1).tolist() == [40, 16]


def test_a_peer_that_rolled_up_makes_the_others_coarser():
    blocks = world_of(CONTRACT, [EVERYBODY, EVERYBODY]).blocks(1, 8)
    assert blocks.codes.tolist() == [[0, ROLLED], [0, ROLLED], [1, ROLLED], [1, ROLLED]]
    np.testing.assert_array_equal(blocks.rows[0], blocks.rows[1])


def test_an_unseen_block_takes_the_mean_of_its_siblings_with_the_same_label():
    without = [row for row in EVERYBODY if not (row % 2 == 0 and row // 2 % 2 == 1 and row // 4 % 2 == 1)]
    world = world_of(CONTRACT, [EVERYBODY, without])
    blocks = merge(world.parts(), CONTRACT)
    unseen = np.flatnonzero(blocks.rows[1] == 0)
    assert blocks.codes[unseen].tolist() == [[0, 1]]
    siblings = [row for row in without if row % 2 == 0 and row // 4 % 2 == 1]
    expected = world.private(1)[siblings].mean(axis=0)
    np.testing.assert_allclose(blocks.means(1)[unseen[0]], expected, rtol=1e-12)
