"""A model over scores: its file, its formula by formula, what it gains."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit
from tests.unit.scored import scored_model

from radocraft.errors import FileError
from radocraft.model import ScoreModel

SCORES = np.array([[2.0, -1.0], [0.5, 0.25], [-3.0, 9.0], [0.0, 0.0]])
PLACES = [0, 1, 2, 0]


@pytest.fixture(scope="module")
def model() -> ScoreModel:
    return scored_model(2000)


def rows(**columns: object) -> pa.Table:
    return pa.table({"bank_score": SCORES[:, 0], "shop_score": SCORES[:, 1], "signature": PLACES, **columns})


def test_log_odds_are_the_formula_word_for_word(model: ScoreModel) -> None:
    """Scores are cut at 6 on both sides, as the peers' are."""
    scores, full = model.predict(rows()), model.full
    by_hand = [
        full.intercept
        + full.weights[0] * min(bank, 6.0)
        + full.weights[1] * min(shop, 6.0)
        + full.signature * model.signatures[place]
        for (bank, shop), place in zip(SCORES.tolist(), PLACES, strict=True)
    ]
    np.testing.assert_allclose(scores.score, by_hand, rtol=1e-12)
    np.testing.assert_allclose(scores.probability, expit(by_hand), rtol=1e-12)
    assert scores.positive.tolist() == [value > 0 for value in by_hand]
    assert scores.view == ("bank", "shop")


@pytest.mark.parametrize(("kept", "peers"), [(["bank_score"], ("bank",)), (["shop_score"], ("shop",)), ([], ())])
def test_rows_without_a_peers_score_have_a_formula_of_their_own(
    model: ScoreModel, kept: list[str], peers: tuple[str, ...]
) -> None:
    scores, head = model.predict(rows().select([*kept, "signature"])), model.head_of(peers)
    places = [model.peers.index(peer) for peer in peers]
    own = np.clip(SCORES[:, places], -6, 6) @ np.array(head.weights).reshape(-1)
    signature = np.array(model.signatures)[PLACES]
    np.testing.assert_allclose(scores.score, head.intercept + own + head.signature * signature, rtol=1e-12)
    assert scores.view == peers


def test_a_missing_score_in_one_row_is_that_rows_alone(model: ScoreModel) -> None:
    gone = rows().set_column(1, "shop_score", pa.array([-1.0, None, 9.0, 0.0]))
    mixed, whole, alone = model.predict(gone), model.predict(rows()), model.predict(rows().drop_columns(["shop_score"]))
    expected = np.where([True, False, True, True], whole.score, alone.score)
    np.testing.assert_array_equal(mixed.score, expected)
    assert mixed.view == ("bank", "shop")


def test_the_file_is_the_model(model: ScoreModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again = ScoreModel.load(tmp_path / "model.json")
    assert again == model
    np.testing.assert_array_equal(again.predict(rows()).score, model.predict(rows()).score)
    tree = json.loads((tmp_path / "model.json").read_text())
    assert {"heads", "signatures", "relation", "outlook"} <= tree.keys()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tree: tree["heads"].append(tree["heads"][0]), "two formulas for the same peers"),
        (lambda tree: tree["heads"][-1]["weights"].pop(), "a formula is malformed"),
        (lambda tree: tree["heads"].pop(), "its formulas are not of its peers"),
        (lambda tree: tree["signatures"].pop(), "the log-odds of a signature are missing"),
        (lambda tree: tree["relation"]["error"].pop(), "its relation is malformed"),
        (lambda tree: tree["outlook"]["alone"].pop("bank"), "its outlook is of others"),
        (lambda tree: tree["outlook"].update(best_peer="club"), "its gain is over another peer"),
        (lambda tree: tree.update(signatures=[1e999] * 4), "not finite"),
        (lambda tree: tree.update(head="guessed"), "'fitted', 'average' or 'best peer'"),
    ],
)
def test_files_that_no_model_has_are_refused(model: ScoreModel, tmp_path: Path, change, words: str) -> None:  # type: ignore[no-untyped-def]
    model.save(tmp_path / "model.json")
    tree = json.loads((tmp_path / "model.json").read_text())
    change(tree)
    (tmp_path / "model.json").write_text(json.dumps(tree))
    with pytest.raises(FileError, match="not a model") as raised:
        ScoreModel.load(tmp_path / "model.json")
    assert words in str(raised.value.__cause__)


def test_a_model_of_few_rows_has_no_outlook(model: ScoreModel, tmp_path: Path) -> None:
    model.model_copy(update={"outlook": None}).save(tmp_path / "model.json")
    assert ScoreModel.load(tmp_path / "model.json").outlook is None
