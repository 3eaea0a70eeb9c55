"""DRL straight from the tables against the product's way through tallies, the gate and blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.research.study.data import needs_data

from radocraft.demo import PeerTable
from radocraft.errors import StudyError
from radocraft.learning import RadoChoices, fit_drl
from radocraft.research.study._cell import Cell, folds_of, run_cell
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._methods import agree_contract, encoder, merged_blocks, score_drl
from radocraft.research.study._presets import as_the_authors
from radocraft.research.study._rados import StandardCodes, craft_rados


@needs_data
@pytest.mark.parametrize("setting", [("vertical", 0.0), ("duplicates", 0.2), ("random", 0.6)])
@pytest.mark.parametrize("choices", [{}, {"intercept": False, "encoding": "ordinal"}])
def test_rados_of_rows_are_those_of_blocks(setting, choices):
    cell = Cell("wine", 3, 2, "class-2", folds=3, setting=setting[0], share=setting[1], **choices)
    fold = next(folds_of(cell))
    blocks = merged_blocks(fold, agree_contract(fold))
    rados = craft_rados(fold.tables, encoder(fold, "all"), scaling="standard", intercept=cell.intercept)
    assert rados.matrix.shape[1] == len(blocks)
    assert rados.rows == pytest.approx(blocks.weights.sum())
    for scale in ("columns", "rows", "mean-block"):
        theta = rados.fit(RadoChoices(gamma_scale=scale), seed=0)["drl-identity"]
        fit = fit_drl(blocks, "identity", choices=RadoChoices(gamma_scale=scale))
        np.testing.assert_allclose(theta, fit.theta, rtol=1e-6, atol=1e-9)


def test_standard_codes_have_mean_0_and_deviation_1_where_they_are_known():
    codes = np.array([[0, 0], [1, 4], [2, 1], [3, 0]])
    encoded = StandardCodes.of(codes, np.array([4, 4]))(codes)
    np.testing.assert_allclose(encoded.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose((encoded[:, 0].std(), encoded[[0, 2, 3], 1].std()), 1.0)
    assert encoded[1, 1] == 0.0


def test_crafted_rados_by_hand():
    """Two peers, three rows, one block of two rows and one of one; the second peer lacks the latter."""
    first = PeerTable("a", ("x",), np.array([[0], [1], [0]]), np.array([1, -1, 1]), np.array([[1.0], [2.0], [4.0]]))
    second = PeerTable("b", ("u", "v"), np.array([[0], [0]]), np.array([1, 1]), np.array([[1.0, 3.0], [5.0, 7.0]]))
    rados = craft_rados([first, second], lambda codes: 10.0 * codes, scaling="none", intercept=True)
    columns = {tuple(column) for column in rados.matrix.T.tolist()}
    u = (1 * 1 + 2 * 0) / 3
    assert columns == {(2.0, 0.0, 5.0, 6.0, 10.0), (-u, -10.0 * u, -2.0, 0.0, 0.0)}
    assert rados.private.tolist() == [False, False, True, True, True]


@needs_data
def test_the_authors_reading_has_majority_peers_oracle_and_drl():
    cell = replace(as_the_authors(DOMAINS["page"], 3, 2, order=0), folds=4)
    found = {record["algorithm"]: record for record in run_cell(cell)}
    assert {*found} == {"majority", "peer", "oracle", "drl", "drl-identity"}
    assert found["majority"]["error"] == pytest.approx(560 / 5473, abs=1e-3)
    assert found["oracle"]["error"] > 2 * found["majority"]["error"], (
        "no model without a constant can say 'always text'"
    )


@needs_data
def test_codes_that_no_contract_knows_are_for_the_papers_algorithms_alone():
    fold = next(folds_of(as_the_authors(DOMAINS["wine"], 2, 1, order=0)))
    assert {scored.algorithm for scored in score_drl(fold, encoder(fold, "paper"), 0)} == {"drl", "drl-identity"}
    with pytest.raises(StudyError, match="no contract knows"):
        run_cell(replace(as_the_authors(DOMAINS["wine"], 2, 1, order=0), algorithms="all"))
