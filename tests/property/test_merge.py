"""Merging: the finest common coarsening, against union-find over every signature."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.property.worlds import agree, finest_cell, worlds

from radocraft.arrays import Ints
from radocraft.contract._columns import moment_labels
from radocraft.errors import LearnError
from radocraft.learning._blocks import merge_cells
from radocraft.sums._cells import ROLLED, Cells


def cells_of(peer: str, contract, codes: Ints, labels: Ints, rng: np.random.Generator) -> Cells:
    """Cells with these codes, and some numbers in them."""
    width = len(contract.peers[peer].features)
    size = width + len(contract.shared_columns) + 1
    rows = rng.integers(1, 5, size=len(labels))
    return Cells(
        peer,
        tuple(contract.peers[peer].features),
        np.zeros(width),
        np.ones(width),
        codes=codes,
        labels=labels,
        rows=rows,
        sums=rng.normal(size=(len(labels), width)),
        present=np.repeat(rows[:, None], width, axis=1),
        shared=csr_array(rng.normal(size=(len(labels), len(contract.shared_columns)))),
        by_label=np.array([np.eye(size)] * len(moment_labels(contract, peer))),
    )


@st.composite
def released(draw: st.DrawFn):
    """For each of two or three peers any set of cells: prefixes of signatures, with a label."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=0, max_size=3))
    contract = agree([1] * draw(st.integers(2, 3)), sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prefixes = [
        (*head, *[ROLLED] * (len(sizes) - level))
        for level in range(len(sizes) + 1)
        for head in itertools.product(*(range(size) for size in sizes[:level]))
    ]
    keys = [(*prefix, label) for prefix in prefixes for label in (-1, 1)]
    peers = []
    for peer in contract.peers:
        chosen = np.array(draw(st.lists(st.sampled_from(keys), min_size=1, max_size=12, unique=True)), dtype=np.int64)
        peers.append(cells_of(peer, contract, chosen[:, :-1], chosen[:, -1], rng))
    return contract, tuple(peers), sizes


def groups_by_hand(cells: tuple[Cells, ...], sizes: list[int]) -> list[set[tuple[int, int]]]:
    """Cells (peer, number) that some signature ties together, a code that nobody shows included."""
    parent = {(peer, at): (peer, at) for peer, held in enumerate(cells) for at in range(len(held.rows))}

    def root(cell: tuple[int, int]) -> tuple[int, int]:
        while parent[cell] != cell:
            cell = parent[cell]
        return cell

    for *signature, label in itertools.product(*(range(size + 1) for size in sizes), (-1, 1)):
        codes, labels = np.array([signature], dtype=np.int64).reshape(1, -1), np.array([label])
        found = [(peer, int(finest_cell(held, codes, labels)[0])) for peer, held in enumerate(cells)]
        tied = [cell for cell in found if cell[1] >= 0]
        for one, other in itertools.pairwise(tied):
            parent[root(one)] = root(other)
    groups: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for cell in parent:
        groups.setdefault(root(cell), set()).add(cell)
    return list(groups.values())


@given(released())
@settings(max_examples=80)
def test_blocks_are_what_signatures_tie_together(drawn):
    contract, cells, sizes = drawn
    expected = groups_by_hand(cells, sizes)
    shared_by_two = any(len({peer for peer, _ in group}) > 1 for group in expected)
    if not shared_by_two:
        with pytest.raises(LearnError, match="No block is known to two peers"):
            merge_cells(cells, contract)
        return
    blocks = merge_cells(cells, contract)
    groups: dict[int, set[tuple[int, int]]] = {}
    for peer, gather in enumerate(blocks.gathers):
        for block, at in zip(*gather.nonzero(), strict=True):
            groups.setdefault(block, set()).add((peer, at))
    assert {frozenset(group) for group in groups.values()} == {frozenset(group) for group in expected}
    for block, group in groups.items():
        codes = np.array([cells[peer].codes[at] for peer, at in group])
        same = np.logical_and.accumulate((codes == codes[0]).all(axis=0) & (codes[0] != ROLLED))
        np.testing.assert_array_equal(blocks.codes[block], np.where(same, codes[0], ROLLED))
        assert {int(cells[peer].labels[at]) for peer, at in group} == {int(blocks.labels[block])}
        for peer, held in enumerate(cells):
            mine = [at for owner, at in group if owner == peer]
            assert blocks.rows[peer, block] == held.rows[mine].sum()
            np.testing.assert_allclose(blocks.sums(peer)[block], held.sums[mine].sum(axis=0), atol=1e-12)
            np.testing.assert_allclose(blocks.shared_sums(peer)[block], held.shared[mine].sum(axis=0), atol=1e-12)


@given(world=worlds("VP", missing=False, rows=(8, 60)), min_rows=st.integers(1, 6))
def test_peers_who_see_the_same_people_roll_up_alike_and_nothing_coarsens(world, min_rows):
    blocks = world.gated(min_rows)
    np.testing.assert_array_equal(blocks.rows - blocks.rows[0], 0)
    assert len(blocks) == len(blocks.cells[0].rows)


@given(world=worlds("VP", missing=True, rows=(8, 60)), wanted=st.lists(st.integers(1, 6), min_size=3, max_size=3))
def test_peers_who_see_the_same_people_agree_on_every_block_however_they_rolled_up(world, wanted):
    parts = [world.parts(min_rows)[at].cells(world.contract) for at, min_rows in enumerate(wanted[: len(world.held)])]
    blocks = merge_cells(tuple(parts), world.contract)
    np.testing.assert_array_equal(blocks.rows - blocks.rows[0], 0)
    known = np.concatenate(
        [
            np.repeat(blocks.codes[:, [at]] != ROLLED, len(shared.encoded), axis=1)
            for at, shared in enumerate(world.contract.shared)
        ]
        or [np.zeros((len(blocks), 0), bool)],
        axis=1,
    )
    for at in range(len(parts)):
        same = np.where(known, blocks.shared_sums(0), blocks.shared_sums(at))
        np.testing.assert_allclose(blocks.shared_sums(at), same, atol=1e-9)
        means = np.where(known, blocks.shared_sums(at) / blocks.rows[at][:, None], blocks.shared_means)
        np.testing.assert_allclose(blocks.shared_means, means, atol=1e-9)


def mean_by_hand(blocks, at: int, block: int) -> np.ndarray:
    """The peer's own mean, else that of the longest prefix of codes it has rows for, with the label if it can."""
    rows, sums = blocks.rows[at], blocks.sums(at)
    if rows[block]:
        return sums[block] / rows[block]
    depth = blocks.codes.shape[1]
    keys = [(level, True) for level in reversed(range(depth))] + [(0, False)]
    for level, with_label in keys:
        near = (blocks.codes[:, :level] == blocks.codes[block, :level]).all(axis=1)
        if with_label:
            near &= blocks.labels == blocks.labels[block]
        if rows[near].sum():
            return sums[near].sum(axis=0) / rows[near].sum()
    raise AssertionError("a peer has rows somewhere")


@given(released())
def test_a_block_unseen_by_a_peer_takes_its_mean_at_the_finest_coarser_level(drawn):
    contract, cells, _ = drawn
    try:
        blocks = merge_cells(cells, contract)
    except LearnError:
        return
    for at in range(len(cells)):
        by_hand = [mean_by_hand(blocks, at, block) for block in range(len(blocks))]
        np.testing.assert_allclose(blocks.means(at), by_hand, atol=1e-12)
