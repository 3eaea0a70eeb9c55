"""What notebooks and data frames are given of the library's values."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.unit.pages.models import learned

import radocraft as rc
from radocraft.arrays import Tabular
from radocraft.errors import RadocraftError


@pytest.fixture(scope="module")
def values() -> dict[str, Tabular]:
    contract, tables = rc.example_peers(rows=2000)
    part = rc.share(tables["bank"], contract, "bank")
    model = rc.learn([part, rc.share(tables["insurer"], contract, "insurer")], contract)
    spelled = contract.model_dump(mode="json")
    for peer, held in spelled["peers"].items():
        held["features"] = {f"{peer}_score": {"kind": "score", "model": "linear"}}
    of_scores = rc.Contract.model_validate(spelled)
    scores = rc.learn([rc.share(tables[peer], of_scores, peer) for peer in tables], of_scores)
    scored = model.predict(tables["bank"])
    return {
        "contract": contract,
        "part": part,
        "model": model,
        "explanation": rc.explain(model),
        "scores": scored,
        "score model": scores,
        "several classes": learned("classes"),
    }


NAMES = ["contract", "part", "model", "explanation", "scores", "score model", "several classes"]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_one_line_a_small_page_and_a_table(values: dict[str, Tabular], name: str) -> None:
    value = values[name]
    assert "\n" not in repr(value)
    assert len(repr(value)) < 200
    assert str(value) == repr(value)
    page = value._repr_html_()
    assert len(page) < 20_000
    assert re.findall(r"<(?!/?(?:div|p|b|table|thead|tbody|tr|th|td)\b)", page) == []
    table = value.to_arrow()
    frame, polars = value.to_pandas(), value.to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert [*frame.columns] == polars.columns == table.column_names
    assert len(frame) == polars.height == table.num_rows > 0


def test_the_tables_hold_what_the_values_say(values: dict[str, Tabular]) -> None:
    scores, model = values["scores"], values["model"]
    frame = scores.to_pandas()
    np.testing.assert_array_equal(frame["probability"], scores.probability)
    assert (frame["chosen"] == (frame["probability"] > 0.5)).all()
    effects = model.to_pandas()["effect"].abs()
    assert effects.is_monotonic_decreasing
    assert rc.explain(model).sentence.split(" (")[0] in model._repr_html_()
    assert f"{model.base_rate:.1%}" in model._repr_html_()
    assert values["part"].to_arrow() is values["part"].table


def test_names_from_elsewhere_cannot_write_into_a_page() -> None:
    class Odd(Tabular):
        def to_arrow(self) -> pa.Table:
            return pa.table({"<b>name</b>": ["<script>alert(1)</script>"]})

        def in_one_line(self) -> str:
            return "<i>odd</i>"

    page = Odd()._repr_html_()
    assert "<script" not in page
    assert "<i>" not in page
    assert "<b>name" not in page


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c, t: rc.craft(c, t, "bank"), r"Table was given. Call it as craft\(data, contract, peer\)"),
        (lambda c, t: rc.share(c, t, "bank"), r"Call it as share\(table, contract, peer\)"),
        (lambda c, t: rc.share(t, "bank", c), "where a str was given"),
        (lambda c, t: rc.learn(c, [t, t]), r"Call it as learn\(parts, contract\)"),
        (lambda c, t: rc.learn("bank.part.parquet", c), "Give a list with one part"),
        (lambda c, t: rc.release(rc.craft(t, c, "bank"), rc.Policy()), "Call it as release"),
        (lambda c, t: rc.predict(t, c), r"Call it as predict\(model, data\)"),
    ],
)
def test_arguments_in_another_order_are_told_so(call, words) -> None:
    contract, tables = rc.example_peers(rows=200)
    with pytest.raises(RadocraftError, match=words):
        call(contract, tables["bank"])
