"""The report says what the model file holds, whatever stands in it, and asks nobody for anything."""

import re
import shlex
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part
from tests.unit.pages.models import CONTRACT, LONG, learned, renamed, rows

from radocraft import example_peers, learn, recalibrate, report, share_counts
from radocraft.pages._numbers import signed


class Reader(HTMLParser):
    """All text, tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += [(key, value or "") for key, value in attributes]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.mark.parametrize("how", ["matching", "drl", "linked"])
def test_it_says_what_the_model_holds(how: str) -> None:
    model = learned(how)
    page = Reader(report(model))
    for coefficient in model.coefficients:
        assert coefficient.name in page.text
        assert signed(coefficient.raw) in page.text
    for origin in model.learned_from:
        assert origin.hash[:16] in page.text
        assert f"{origin.rows:,} rows" in page.text
        assert origin.gate is not None
        assert origin.gate.rolled_up > 0
        assert f"{origin.gate.rolled_up:,} agreed blocks, too small or empty" in page.text
    assert f"{model.estimate.error:.1%}" in page.text
    assert f"--method {model.method}" in page.text
    assert ("gives no bound" in page.text) == (model.certificate is None)
    assert ("truly linked rows" in page.text) == (model.validation is not None)


def test_after_the_second_round_it_speaks_of_what_was_counted() -> None:
    contract, tables = example_peers(rows=3000)
    model = learn([noisy_part(tables[peer], contract, peer) for peer in tables], contract)
    counted = recalibrate(model, [share_counts(tables[peer], model, peer) for peer in tables])
    assert counted.second_round is not None
    assert sum(one.share for one in counted.second_round.reliability) == pytest.approx(1.0, abs=0.001)
    before, now = (Reader(report(one)).text for one in (model, counted))
    assert "From counts of scores" in now
    assert "From counts of scores" not in before
    assert f"ROC, area {counted.second_round.auc:.3f}" in now
    assert f"ROC, area {model.estimate.auc:.3f}" in before
    assert "radocraft recalibrate model.json bank.scores.json insurer.scores.json" in now


def test_whom_the_model_speaks_of() -> None:
    model = learned()
    assert "saw the same kind of people" in report(model)
    seen = tuple(one.model_copy(update={"apart": 0.125}) for one in model.population)
    page = report(model.model_copy(update={"population": seen}))
    assert "The peers saw different people" in page
    assert page.count("12.5%") == len(seen)
    assert 'id="people"' not in report(model.model_copy(update={"population": ()}))


def test_several_classes() -> None:
    model = learned("classes")
    page = Reader(report(model))
    assert "One model of which back it is, of 3" in page.text
    for name in ("low", "middle", "high"):
        assert f"Towards “{name}”" in page.text
        assert f"pressure, “{name}”" in page.text  # a curve for each class
        assert f"Effect on {name}" in page.text
        assert f"Score of {name}" in page.text
    assert f"{model.estimate.error:.1%}" in page.text
    assert "ROC" not in page.text
    for coefficient in model.coefficients:
        assert all(signed(effect) in page.text for effect in coefficient.effect)


def test_a_number() -> None:
    model = learned("number")
    page = Reader(report(model))
    assert "One model of back, learned" in page.text
    assert "a root mean square error of" in page.text
    assert f"{model.estimate.r2:.3f}" in page.text
    assert "R² to expect" in page.text
    assert "AUC" not in page.text
    assert "Odds" not in page.text
    spread = 1000 + (rows()["pressure"].to_numpy() - 125) ** 2 / 10 + rows()["weight"].to_numpy()
    said = float(re.findall(r"always predicting its mean errs by ([\d.,]+)\.", page.text)[0])
    assert said == pytest.approx(spread.std(), rel=0.05)


def test_the_commands_can_be_pasted_whatever_a_peer_is_called() -> None:
    page = Reader(report(renamed(learned("classes"))))
    (command,) = re.findall(r"radocraft learn .*?-o model.json", page.text, flags=re.DOTALL)
    words = shlex.split(command)
    assert f"{LONG}.part.parquet" in words
    assert words[-2:] == ["-o", "model.json"]


def test_nothing_in_a_contract_becomes_markup() -> None:
    page = Reader(report(learned()))
    assert page.tags.count("script") == 1
    assert "b" in page.tags  # ours
    assert "<b>south</b>" in page.text
    assert "claims </script><script>alert(1)</script>" in page.text


def test_it_asks_nobody_for_anything() -> None:
    page = Reader(report(learned("linked")))
    links = [value for key, value in page.attributes if key in ("src", "href", "srcset", "action", "data")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", report(learned("linked")))
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:") in (
        page.attributes
    )


def test_links_lead_somewhere_and_ids_are_unique() -> None:
    page = Reader(report(learned()))
    ids = [value for key, value in page.attributes if key == "id"]
    assert len({*ids}) == len(ids)
    assert {value[1:] for key, value in page.attributes if key == "href"} <= {*ids}


def test_two_reports_of_one_model_are_the_same() -> None:
    assert report(learned()) == report(learned())


def test_a_model_of_before_reports_still_has_one() -> None:
    model = learned()
    old = model.model_copy(
        update={
            "learned_from": tuple(origin.model_copy(update={"gate": None}) for origin in model.learned_from),
            "estimate": model.estimate.model_copy(update={"reliability": ()}),
        }
    )
    page = Reader(report(old))
    assert "not said" in page.text
    assert "Reliability" not in page.text


def test_curves_are_those_the_model_scores_with() -> None:
    """The curve of a spline, from its numbers on the page, is what changing the column changes in the score."""
    model = learned()
    page = report(model)
    numbers = re.search(r"pressure, numbers.*?<tbody>(.*?)</tbody>", page, flags=re.DOTALL)
    assert numbers is not None
    cells = [text.replace("−", "-").replace(",", "") for text in re.findall(r">([^<]+)</td>", numbers[1])]
    points = [(float(at), float(adds)) for at, adds in zip(cells[::2], cells[1::2], strict=True)]
    table = {
        "age": [40.0] * len(points),
        "region": ["north"] * len(points),
        "pressure": [at for at, _ in points],
        "weight": [70.0] * len(points),
        "fever": [False] * len(points),
    }
    scores = model.predict(pa.table(table)).score
    drawn = [adds - points[0][1] for _, adds in points]
    assert [score - scores[0] for score in scores] == pytest.approx(drawn, abs=0.012)


def test_the_contract_of_these_tests_is_hostile() -> None:
    assert "<" in CONTRACT.name
