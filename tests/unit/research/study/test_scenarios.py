from __future__ import annotations

import numpy as np
import pytest

from radocraft.errors import StudyError
from radocraft.research.study._scenarios import (
    Corrupted,
    Scenario,
    agree_edges,
    code_shared,
    deal,
    one_owner_each,
    split_features,
)


@pytest.mark.parametrize(
    "settings",
    [
        {"peers": 1, "shared": 1},
        {"peers": 2, "shared": -1},
        {"peers": 2, "shared": 1, "bins": 1},
        {"peers": 2, "shared": 1, "setting": "duplicates", "share": 1.5},
        {"peers": 2, "shared": 1, "setting": "random", "share": 0.0},
        {"peers": 2, "shared": 1, "setting": "vertical", "share": 0.2},
        {"peers": 2, "shared": 1, "corrupted": "labels"},
        {"peers": 2, "shared": 1, "corruption": 0.1},
        {"peers": 2, "shared": 1, "corrupted": "signatures", "corruption": 1.5},
    ],
)
def test_impossible_scenarios_are_refused(settings: dict) -> None:
    with pytest.raises(StudyError):
        Scenario(**settings)


@pytest.mark.parametrize("corrupted", ["signatures", "labels"])
def test_corruption_is_at_the_last_peer_alone_and_of_the_share_asked(corrupted: Corrupted) -> None:
    rng = np.random.default_rng(0)
    codes, features = rng.integers(0, 10_000, (1000, 2)), rng.normal(size=(1000, 6))
    labels = np.where(rng.random(1000) < 0.4, 1, -1)
    clean, wrong = (Scenario(peers=2, shared=2, **more) for more in ({}, {"corrupted": corrupted, "corruption": 0.1}))
    split = split_features(6, clean)
    before, after = (
        deal(scenario, split, "abcdef", codes=codes, labels=labels, features=features) for scenario in (clean, wrong)
    )
    for name in ("codes", "labels", "values"):
        np.testing.assert_array_equal(getattr(before[0], name), getattr(after[0], name))
    np.testing.assert_array_equal(before[1].values, after[1].values)
    changed = {
        "signatures": (before[1].codes != after[1].codes).any(axis=1),
        "labels": before[1].labels != after[1].labels,
    }
    assert changed.pop(corrupted).sum() == 100
    assert not changed.popitem()[1].any()
    assert {*map(tuple, after[1].codes.tolist())} <= {*map(tuple, codes.tolist())}


def test_too_few_features_for_the_peers() -> None:
    with pytest.raises(StudyError, match="Take fewer peers"):
        split_features(5, Scenario(peers=4, shared=2))


def test_edges_are_quantiles_and_bins_are_closed_on_the_left() -> None:
    values = np.arange(1.0, 9.0)[:, None]
    edges = agree_edges(values, 4)
    assert edges == ((2.75, 4.5, 6.25),)
    assert code_shared(np.array([[2.0], [2.75], [4.5], [99.0], [np.nan]]), edges).ravel().tolist() == [0, 1, 2, 3, 4]


def test_a_mostly_constant_feature_still_gets_two_bins() -> None:
    values = np.array([[0.0]] * 9 + [[1.0]])
    assert agree_edges(values, 4) == ((1.0,),)
    assert code_shared(values, ((1.0,),)).ravel().tolist() == [0] * 9 + [1]


def test_constant_and_empty_features_get_one_edge() -> None:
    assert agree_edges(np.full((4, 1), 3.0), 4) == ((3.0,),)
    assert agree_edges(np.full((4, 1), np.nan), 4) == ((0.0,),)


def test_quantiles_ignore_missing_values() -> None:
    values = np.array([[1.0], [np.nan], [2.0], [3.0], [4.0]])
    assert agree_edges(values, 2) == ((2.5,),)


def test_one_owner_each_gives_every_peer_both_labels() -> None:
    labels = np.array([1] * 4 + [-1] * 40)
    owned = one_owner_each(labels, 4, np.random.default_rng(0))
    assert sorted(np.concatenate(owned).tolist()) == list(range(44))
    assert all({*labels[rows].tolist()} == {1, -1} for rows in owned)
