"""What a peer's own people are told of categories that nobody agreed on."""

import json

import pyarrow as pa
import pytest

import radocraft as rc
from radocraft.rows import craft

CONTRACT = """
name = "spelling"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["north", "south"] }]
[peers.bank.features]
job = { kind = "categorical", categories = ["clerk"] }
[peers.bank.columns]
region = "Region"
"""
TABLE = pa.table(
    {
        "y": [0, 1] * 100,
        "Region": ["NORTH", "south"] * 80 + ["abroad"] * 40,
        "job": ["clerk"] * 199 + ["smith"],
    }
)


def said(contract: str) -> list[str]:
    told: list[str] = []
    craft(TABLE, rc.Contract.parse(contract), "bank", say=told.append)
    return told


def test_rows_that_are_spelled_otherwise_are_counted_with_what_to_do_and_no_value_shown() -> None:
    (told,) = said(CONTRACT)
    assert told.startswith(
        "Region: 120 of 200 rows are spelled otherwise than agreed, 80 of them only in capitals or blanks; see `fold`"
    )
    assert not any(value in told for value in ("NORTH", "abroad"))
    (told,) = said(CONTRACT + "[peers.bank.cleaning]\nRegion = { fold = true }")
    assert told.startswith("Region: 40 of 200 rows are spelled otherwise than agreed; see `values`")


@pytest.mark.parametrize("feature", ['job = "boolean"', 'bank_score = { kind = "score", of = ["job"] }'])
def test_the_counts_stay_at_the_peer(feature: str) -> None:
    contract = rc.Contract.parse(CONTRACT.replace('job = { kind = "categorical", categories = ["clerk"] }', feature))
    told: list[str] = []
    table = TABLE
    if feature.startswith("job"):
        table = table.set_column(2, "job", pa.array(["yes", "no"] * 100))
    part = rc.share(table, contract, "bank", policy=rc.Policy.exact(10), say=told.append)
    assert any(note.startswith("Region: 120 of 200 rows") for note in told)
    assert "spelled otherwise" not in json.dumps(part.metadata)
