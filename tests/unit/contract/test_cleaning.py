"""What the contract may say of a peer's table, and what it means."""

import pytest

from radocraft.contract import Contract, describe_contract
from radocraft.errors import ContractError

CLEAN = """
name = "risk"
label = { column = "bad", positive = "yes", negative = "no" }
shared = [{ name = "region", categories = ["North", "south"] }]
[peers.bank.features]
income = "numeric"
"""


def said(*lines: str) -> Contract:
    return Contract.parse("\n".join([CLEAN, *lines]))


def test_cleaning_is_part_of_the_fingerprint_where_it_says_anything():
    plain = said()
    assert said("[peers.bank]", "missing = []", "[peers.bank.cleaning]", "x = { fold = false }") == plain
    marked = said("[peers.bank]", 'missing = ["NA", "-"]')
    assert marked.fingerprint != plain.fingerprint
    assert said("[peers.bank]", 'missing = ["-", "NA", "-"]').fingerprint == marked.fingerprint
    assert said("[peers.bank.cleaning]", "region = { fold = true }").fingerprint != plain.fingerprint
    assert Contract.model_validate(marked.model_dump(mode="json")) == marked


def test_agreed_values_are_folded_where_the_column_is():
    contract = said("[peers.bank.columns]", 'region = "Gebiet"', "[peers.bank.cleaning]", "Gebiet = { fold = true }")
    assert contract.as_read("bank", "region", ("North", 3)) == ("north", 3)
    assert contract.as_read("bank", "bad", ("Yes",)) == ("Yes",)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("{ decimal = ',', format = '%d.%m.%Y' }", "take `decimal` or `format` out"),
        ("{ decimal = ',', values = { a = 'b' } }", "take `decimal` or `values` out"),
        ("{ decimal = ';' }", "',' or '.'"),
        ("{ format = '%d.%m' }", 'such as "%d.%m.%Y"'),
        ("{ format = '%d.%m/%Y' }", 'such as "%d.%m.%Y"'),
        ("{ format = '' }", 'such as "%d.%m.%Y"'),
        ("{ fold = true, values = { Ja = true, ja = false } }", "two of `values` are the same word"),
        ("{ missing = 'NA' }", "must be a list"),
        ("{ clean = true }", "there is no such entry"),
    ],
)
def test_rules_that_make_no_sense_are_named_with_their_line(rule, problem):
    with pytest.raises(ContractError, match="line 9") as refused:
        said("[peers.bank.cleaning]", f"region = {rule}")
    assert problem in str(refused.value)


def test_values_told_apart_by_capitals_are_not_folded():
    text = CLEAN.replace('"North", "south"', '"North", "north"')
    with pytest.raises(ContractError, match=r"peers.bank.cleaning.region .*equal that are different in the contract"):
        Contract.parse(text + "[peers.bank.cleaning]\nregion = { fold = true }")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("seen = { kind = 'date', part = 'days' }", "needs the day"),
        ("seen = { kind = 'date', at = 2025-01-01 }", "`at` is for"),
        ("seen = { kind = 'date', part = 'week' }", "'year', 'month' or 'days'"),
        ("seen = { kind = 'log', centre = 3 }", "both `centre` and `scale`"),
    ],
)
def test_dates_and_logarithms_say_what_they_are_of(entry, problem):
    with pytest.raises(ContractError) as refused:
        said(entry)
    assert problem in str(refused.value)


def test_words_say_how_a_table_is_read():
    words = describe_contract(
        said(
            'opened = { kind = "date", part = "days", at = 2025-01-01 }',
            'paid = "log"',
            "[peers.bank]",
            'missing = ["NA", ""]',
            "[peers.bank.cleaning]",
            "region = { fold = true, values = { n = 'North' } }",
            "income = { decimal = ',' }",
            "opened = { format = '%d.%m.%Y' }",
        )
    )
    for line in (
        "how bank's table is read:",
        "- every column: blanks, NA mean nothing is known",
        "- region: capitals and spaces around make no difference; n is North",
        "- income: numbers with a decimal comma",
        "- opened: dates written as %d.%m.%Y",
        "- opened: of a date, the days up to 2025-01-01",
        "- paid: the logarithm of a number",
    ):
        assert line in words
