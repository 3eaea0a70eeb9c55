"""How a table is dealt to peers: what must hold for every table and scenario."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from radocraft.demo._baselines import PeerTable, zip_rows
from radocraft.research.study._scenarios import Scenario, agree_edges, code_shared, deal, split_features


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Scenario]:
    peers, shared = draw(st.integers(2, 5)), draw(st.integers(0, 3))
    setting = draw(st.sampled_from(["vertical", "duplicates", "one-peer", "random"]))
    share = 0.0 if setting == "vertical" else draw(st.sampled_from([0.2, 0.5, 1.0]))
    scenario = Scenario(peers, shared, draw(st.integers(2, 5)), setting, share, seed=draw(st.integers(0, 9)))
    rows, width = draw(st.integers(10, 40)), peers + shared + draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    features = rng.permutation(rows * width).reshape(rows, width).astype(float)
    labels = np.where(rng.permutation(rows) < rows // 2, 1, -1)
    return features, labels, scenario


def dealt(features: np.ndarray, labels: np.ndarray, scenario: Scenario) -> tuple[tuple[PeerTable, ...], np.ndarray]:
    split = split_features(features.shape[1], scenario)
    shared = features[:, split.shared]
    codes = code_shared(shared, agree_edges(shared, scenario.bins))
    names = [f"f{at:02d}" for at in range(features.shape[1])]
    return deal(scenario, split, names, codes=codes, labels=labels, features=features), codes


def row_of(table: PeerTable, features: np.ndarray) -> np.ndarray:
    """Which row of the original a peer's row is; every value of the original is unique."""
    column = int(table.columns[0][1:])
    return np.array([int(np.flatnonzero(features[:, column] == value)[0]) for value in table.values[:, 0]], dtype=int)


@given(tables())
def test_every_feature_is_shared_or_at_exactly_one_peer(case: tuple[np.ndarray, np.ndarray, Scenario]) -> None:
    features, _, scenario = case
    split = split_features(features.shape[1], scenario)
    everything = Counter([*split.shared.tolist(), *(at for private in split.private for at in private.tolist())])
    assert everything == Counter(range(features.shape[1]))
    assert len(split.shared) == scenario.shared
    widths = [len(private) for private in split.private]
    assert max(widths) - min(widths) <= 1


@given(tables())
def test_a_peers_row_is_a_row_of_the_table_with_its_code_and_label(
    case: tuple[np.ndarray, np.ndarray, Scenario],
) -> None:
    features, labels, scenario = case
    given_out, codes = dealt(features, labels, scenario)
    for table in given_out:
        at = row_of(table, features)
        held = [int(name[1:]) for name in table.columns]
        assert np.array_equal(table.values, features[np.ix_(at, held)])
        assert np.array_equal(table.codes, codes[at])
        assert np.array_equal(table.labels, labels[at])
        assert list(table.columns) == sorted(table.columns)


@given(tables())
def test_who_sees_which_row(case: tuple[np.ndarray, np.ndarray, Scenario]) -> None:
    features, labels, scenario = case
    seen = [Counter(row_of(table, features).tolist()) for table in dealt(features, labels, scenario)[0]]
    rows = len(labels)
    times = sum(seen, Counter())
    if scenario.setting == "vertical":
        assert all(peer == Counter(range(rows)) for peer in seen)
    if scenario.setting == "duplicates":
        assert all(set(peer) == set(range(rows)) for peer in seen)
        assert sum(times.values()) == scenario.peers * (rows + round(scenario.share * rows))
    if scenario.setting == "one-peer":
        assert set(times) == set(range(rows))
        assert all(max(peer.values()) == 1 for peer in seen)
        assert max(times.values()) <= 2
    if scenario.setting == "random":
        assert all(max(peer.values(), default=1) == 1 for peer in seen)


def test_no_row_id_survives() -> None:
    """Two peers' rows stand in unrelated orders: knowing one order tells nothing about the other."""
    rows = 400
    rng = np.random.default_rng(3)
    features = rng.permutation(rows * 4).reshape(rows, 4).astype(float)
    labels = np.where(np.arange(rows) % 2 == 0, 1, -1)
    given_out, _ = dealt(features, labels, Scenario(peers=2, shared=1))
    first, second = (row_of(table, features) for table in given_out)
    assert np.mean(first == second) < 0.02
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2
    assert abs(np.corrcoef(first, np.arange(rows))[0, 1]) < 0.2
    assert {field for field in vars(given_out[0])} == {"name", "columns", "codes", "labels", "values"}


@given(tables())
def test_zip_pairs_only_inside_blocks_and_uses_every_row(case: tuple[np.ndarray, np.ndarray, Scenario]) -> None:
    features, labels, scenario = case
    given_out, codes = dealt(features, labels, scenario)
    zipped = zip_rows(given_out)
    start = 0
    for table in given_out:
        own = zipped.values[:, start : start + len(table.columns)]
        start += len(table.columns)
        known = ~np.isnan(own[:, 0])
        at = row_of(PeerTable("", table.columns, codes, labels, own[known]), features)
        assert np.array_equal(zipped.codes[known], codes[at])
        assert np.array_equal(zipped.labels[known], labels[at])
        assert set(at.tolist()) == set(row_of(table, features).tolist())
    if scenario.setting == "vertical":
        assert len(zipped) == len(labels)
        assert not np.isnan(zipped.values).any()


@given(tables(), st.integers(0, 3))
def test_the_same_seed_deals_the_same_and_another_fold_another(
    case: tuple[np.ndarray, np.ndarray, Scenario], fold: int
) -> None:
    features, labels, scenario = case
    split = split_features(features.shape[1], scenario)
    names = [f"f{at:02d}" for at in range(features.shape[1])]
    codes = np.zeros((len(labels), scenario.shared), dtype=np.int64)
    once, again = (
        deal(scenario, split, names, codes=codes, labels=labels, features=features, fold=fold) for _ in range(2)
    )
    for a, b in zip(once, again, strict=True):
        assert np.array_equal(a.values, b.values)
