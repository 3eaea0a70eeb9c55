from __future__ import annotations

import numpy as np
import pytest

from radocraft.demo._baselines import PeerTable
from radocraft.errors import StudyError
from radocraft.research.study._linkage import link_rows, one_to_one


def test_each_row_is_linked_once_and_ties_are_drawn_by_lot() -> None:
    pairs = np.array([[a, b] for a in range(4) for b in range(4)])
    draws = [one_to_one(pairs, np.zeros(16), np.random.default_rng(seed)).tolist() for seed in range(9)]
    for draw in draws:
        assert sorted(first for first, _ in draw) == sorted(second for _, second in draw) == [0, 1, 2, 3]
    assert len({str(sorted(draw)) for draw in draws}) > 1


def test_the_heaviest_pair_comes_first() -> None:
    pairs, weights = np.array([[0, 0], [0, 1], [1, 0]]), np.array([0.0, 3.0, 3.0])
    assert sorted(one_to_one(pairs, weights, np.random.default_rng(0)).tolist()) == [[0, 1], [1, 0]]


def test_splink_links_inside_blocks() -> None:
    pytest.importorskip("splink", reason="pip install radocraft[linkage]")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (60, 2))
    labels = np.where(rng.random(60) < 0.5, 1, -1)
    order = rng.permutation(60)
    mark = codes @ [10, 1] * labels + 1000.0
    left = PeerTable("a", ("x",), codes, labels, mark[:, None])
    right = PeerTable("b", ("z",), codes[order], labels[order], mark[order][:, None])
    linked = link_rows([left, right])
    assert len(linked) == 60, "both peers hold the same rows, so every row finds a partner"
    assert np.array_equal(linked.values[:, 0], linked.values[:, 1])
    assert linked.columns == ("x", "z")


def test_three_peers_are_refused() -> None:
    table = PeerTable("a", ("x",), np.zeros((2, 1), dtype=np.int64), np.array([1, -1]), np.zeros((2, 1)))
    with pytest.raises(StudyError, match="two peers, not 3"):
        link_rows([table] * 3)
