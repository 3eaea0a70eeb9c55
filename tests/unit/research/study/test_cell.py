from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.research.study.data import needs_data

from radocraft.learning._completion import complete
from radocraft.research.study._cell import Cell, folds_of, run_cell, split_rows
from radocraft.research.study._domains import load_table
from radocraft.research.study._methods import agree_contract, design_matrix, merged_blocks, run_fold

pytestmark = needs_data
WINE = Cell("wine", 3, 2, "class-2", folds=3)


def by_name(records: list[dict]) -> dict[tuple, dict]:
    return {(record["algorithm"], record["caution"], record["peer"]): record for record in records}


def test_a_cell_has_every_algorithm_and_consistent_measures() -> None:
    records = by_name(run_cell(WINE))
    expected = {"majority", "peer", "oracle", "zip", "drl", "drl-identity", "matching"}
    assert {name for name, _, _ in records} == expected
    assert [peer for name, _, peer in records if name == "peer"] == [1, 2, 3]
    peers = [records["peer", None, at]["error"] for at in (1, 2, 3)]
    for record in records.values():
        assert record["error"] == pytest.approx(np.mean(record["fold_errors"]))
        assert record["best_peer"] == pytest.approx(min(peers))
        assert record["delta"] == pytest.approx(record["error"] - min(peers))
        assert record["oracle_gap"] == pytest.approx(record["error"] - records["oracle", None, None]["error"])
    assert records["oracle", None, None]["oracle_p"] == 1.0


def test_the_same_cell_gives_the_same_numbers() -> None:
    first, second = run_cell(WINE), run_cell(WINE)
    for a, b in zip(first, second, strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}


def test_noise_is_on_what_leaves_the_peers_alone_and_can_be_repeated() -> None:
    noisy = replace(WINE, noise=0.5)
    exact, first, second = by_name(run_cell(WINE)), by_name(run_cell(noisy)), by_name(run_cell(noisy))
    changed = {key[0] for key, record in first.items() if record["error"] != exact[key]["error"]}
    assert changed <= {"drl", "drl-identity", "matching"}
    assert "matching" in changed
    assert all(record["error"] == second[key]["error"] for key, record in first.items())
    assert first["matching", 0.25, None]["error"] < exact["matching", 0.25, None]["error"] + 0.1


def test_only_peers() -> None:
    records = run_cell(replace(WINE, algorithms="peers"))
    assert {record["algorithm"] for record in records} == {"majority", "peer", "oracle"}
    whole = by_name(run_cell(WINE))
    for record in records:
        assert record["error"] == whole[record["algorithm"], None, record["peer"]]["error"]


def test_singleton_blocks_make_matching_exact() -> None:
    """With every row in a block of its own, caution 0 is ridge on the truly joined rows."""
    cell = Cell("ionosphere", 2, 12, "good", bins=10, folds=3)
    fold = next(iter(folds_of(cell)))
    contract = agree_contract(fold)
    blocks = merged_blocks(fold, contract)
    assert (blocks.weights <= 2).mean() > 0.97
    design = design_matrix(blocks, fold.train)
    exact = design.T @ design
    difference = np.abs(complete(blocks).expected() - exact).max() / np.abs(exact).max()
    assert difference < 0.02


def test_the_oracle_sees_the_joined_rows() -> None:
    """Whole rows carry each peer's columns in the order in which the tables stand."""
    fold = next(iter(folds_of(WINE)))
    table = load_table("wine")
    for held, where in zip(fold.tables, fold.columns, strict=True):
        columns = [table.columns.index(name) for name in held.columns]
        assert sorted(map(tuple, held.values)) == sorted(map(tuple, fold.train.values[:, where]))
        assert {*map(tuple, fold.test.values[:, where])} <= {*map(tuple, table.features[:, columns])}


@pytest.mark.parametrize("scaling", ["standard", "min-max"])
def test_units_never_see_test_rows(scaling: str) -> None:
    cell = replace(WINE, scaling=scaling)
    fold = next(iter(folds_of(cell)))
    contract = agree_contract(fold)
    design = design_matrix(merged_blocks(fold, contract), fold.train)
    private = design[:, 1 + len(contract.shared_columns) :]
    if scaling == "standard":
        np.testing.assert_allclose(private.mean(axis=0), 0.0, atol=1e-10)
        np.testing.assert_allclose(private.std(axis=0), 1.0)
    else:
        np.testing.assert_allclose(private.min(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(private.max(axis=0), 1.0)


def test_missing_values_go_all_the_way() -> None:
    cell = Cell("mice", 2, 1, "genotype", folds=3)
    assert np.isnan(next(iter(folds_of(cell))).train.values).any()
    errors = {record["algorithm"]: record["error"] for record in run_cell(cell)}
    assert errors["oracle"] < 0.1
    assert errors["matching"] < 0.15
    filled = next(iter(folds_of(replace(cell, scaling="min-max"))))
    assert not np.isnan(filled.train.values).any()


def test_without_intercept_and_ordinal() -> None:
    cell = replace(WINE, intercept=False, encoding="ordinal", scaling="min-max")
    fold = next(iter(folds_of(cell)))
    contract = agree_contract(fold)
    assert not contract.intercept
    assert len(contract.shared_columns) == 2
    assert all(np.isfinite(scored.scores).all() for scored in run_fold(fold))


def test_grouped_folds_tear_no_group_apart() -> None:
    table = load_table("mice")
    cell = Cell("mice", 2, 1, "genotype", grouped=True, folds=4)
    for train, test in split_rows(table, cell):
        assert not {*table.groups[train].tolist()} & {*table.groups[test].tolist()}
        assert {*table.labels[test].tolist()} == {1, -1}
    torn = next(iter(split_rows(table, replace(cell, grouped=False))))
    assert {*table.groups[torn[0]].tolist()} & {*table.groups[torn[1]].tolist()}


@needs_data
def test_wrong_labels_at_one_peer_turn_that_peer_round_and_leave_the_other() -> None:
    clean = Cell("wine", peers=2, shared=2, binarisation="class-2", folds=3, algorithms="peers")
    wrong = replace(clean, corrupted="labels", corruption=1.0)
    before, after = (
        {record["peer"]: record["error"] for record in run_cell(cell) if record["algorithm"] == "peer"}
        for cell in (clean, wrong)
    )
    assert before[1] == after[1]
    assert after[2] > 1.0 - before[2] - 0.05
