"""The report on a model of scores says what its file holds."""

import pytest
from tests.unit.pages.test_report import Reader
from tests.unit.scored import CONTRACT, scored_model

from radocraft import report
from radocraft.model import ScoreModel


@pytest.fixture(scope="module")
def model() -> ScoreModel:
    return scored_model()


def test_it_says_what_the_model_holds(model: ScoreModel) -> None:
    page = Reader(report(model))
    for weight in (*model.full.weights, model.full.signature):
        assert f"{abs(weight):.2f}" in page.text
    told = model.outlook
    assert told is not None
    for alone in (*told.alone.values(), *told.without.values()):
        assert f"{alone.log_loss.value:.3f}" in page.text
    assert told.error.words(".1%") in page.text
    assert told.sentence in page.text
    assert told.worth in page.text
    assert f"{told.base_rate:.1%}" in page.text
    for part in told.error.parts.values():
        assert f"± {part:.1%}" in page.text
    for origin in model.learned_from:
        assert origin.hash[:16] in page.text
        assert origin.guarantee in page.text
    assert f"{model.relation.correlation[0][1]:.2f}" in page.text
    assert "Measured on sums by groups of a key" in page.text
    assert "given the peer’s model" in page.text
    assert page.tags.count("figure") == 2


def test_without_a_key_the_relation_is_assumed() -> None:
    keyless = scored_model(contract=CONTRACT.replace('key = [{ name = "born", day_of_year = true }]', ""))
    page = Reader(report(keyless))
    assert "Assumed, because the contract has no key" in page.text


def test_of_few_rows_nothing_is_told(model: ScoreModel) -> None:
    page = Reader(report(model.model_copy(update={"outlook": None})))
    assert "Too few rows were seen" in page.text
    assert "to expect" not in page.text.replace("to say what to expect", "")


def test_it_asks_nobody_for_anything_and_shows_text_as_text(model: ScoreModel) -> None:
    evil = model.model_copy(update={"notes": ("<script>alert(1)</script>",)})
    page = Reader(report(evil))
    assert page.tags.count("script") == 1
    assert not [value for name, value in page.attributes if name in ("src", "href") and not value.startswith("#")]
