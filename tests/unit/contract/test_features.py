"""Contracts of scores: what they say, every mistake in them, their drafts and their words."""

import pyarrow as pa
import pytest

import radocraft as rc
from radocraft.contract import (
    Contract,
    Key,
    Number,
    Score,
    check_contract,
    describe_contract,
    draft_contract,
    open_constants,
    private_columns,
    summed_columns,
    units_of,
)
from radocraft.demo import example_peers
from radocraft.errors import ContractError, ContractMismatch
from radocraft.rows import profile

SECRET = "ab" * 32

GOOD = f"""
name = "default within a year"

[label]
column = "defaulted"
positive = "yes"
negative = "no"

[[shared]]
name = "age"
edges = [30, 45, 60]

[[key]]
name = "phone"
hash = 365
secret = "{SECRET}"

[peers.bank.features]
bank_score = {{ kind = "score", of = ["job", "income"], model = "linear", folds = 3, group = "person" }}

[peers.insurer.features]
insurer_score = "score"

[peers.shop.features]
shop_score = {{ kind = "score", column = "old_risk", fitted_elsewhere = true }}

[peers.insurer.columns]
age = "customer_age"
phone = "mobile"
"""


def test_a_contract_of_scores_says_what_was_agreed():
    contract = Contract.parse(GOOD)
    assert contract.of_scores
    assert contract.key == Key(name="phone", hash=365, secret=SECRET)
    name, score = contract.score_of("bank")
    assert name == "bank_score"
    assert score == Score(of=("income", "job"), model="linear", folds=3, group="person")
    assert contract.score_of("insurer") == ("insurer_score", Score())
    assert contract.score_of("shop") == ("shop_score", Score(column="old_risk", fitted_elsewhere=True))
    assert (Score().of, Score().model, Score().folds, Score().group) == (None, "boosting", 5, None)
    assert contract.column_of("insurer", contract.key.name) == "mobile"


def test_a_contract_of_columns_has_no_scores_and_no_key():
    contract = example_peers(rows=10)[0]
    assert not contract.of_scores
    assert contract.key is None
    with pytest.raises(ContractError, match=r"'bank' has columns and no score.*contract new"):
        contract.score_of("bank")
    with pytest.raises(ContractError, match="no peer 'nobody'"):
        contract.score_of("nobody")


def test_nothing_is_summed_column_by_column_but_a_numeric_label():
    contract = Contract.parse(GOOD)
    assert contract.summed("bank") == {}
    assert contract.own_columns("bank") == ()
    assert private_columns(contract, "bank") == summed_columns(contract, "bank") == ()
    assert open_constants(contract, "bank") == {}
    assert [len(unit) for unit in units_of(contract, "bank", {})] == [0, 0]
    number = Contract.parse(GOOD.replace('positive = "yes"\nnegative = "no"', 'kind = "numeric"'))
    assert isinstance(number.label, Number)
    assert [column.name for column in summed_columns(number, "bank")] == ["defaulted"]
    assert [*number.summed("bank")] == ["defaulted"]


def test_a_contract_without_a_key_means_what_it_meant_before_there_were_keys():
    contract = Contract.parse(GOOD)
    assert contract.model_dump()["key"] == [{"name": "phone", "hash": 365, "secret": SECRET}]
    without = contract.model_copy(update={"key": None})
    assert without.key is None
    assert "key" not in without.model_dump()
    assert without.fingerprint != contract.fingerprint


@pytest.mark.parametrize("make", [lambda c: c.model_dump(), lambda c: c.model_dump(mode="json")])
def test_a_contract_of_scores_survives_being_kept(make):
    contract = Contract.parse(GOOD)
    assert Contract.model_validate(make(contract)) == contract
    assert Contract.model_validate(make(contract)).fingerprint == contract.fingerprint
    assert Contract.model_validate_json(contract.model_dump_json()) == contract


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["job", "income"]', '["income", "job"]'),
        ("folds = 3", "folds = 3.0"),
        ('insurer_score = "score"', 'insurer_score = { kind = "score" }'),
        ('insurer_score = "score"', 'insurer_score = { kind = "score", folds = 5, model = "boosting" }'),
        ('insurer_score = "score"', 'insurer_score = { kind = "score", fitted_elsewhere = false }'),
        ("hash = 365", "hash = 3.65e2"),
        ("hash = 365", "hash = 365\nday_of_year = false"),
        (SECRET, SECRET.upper()),
        ("[[key]]", "[[key]] # neutral"),
    ],
)
def test_the_fingerprint_is_of_the_meaning(before, after):
    assert before in GOOD
    assert Contract.parse(GOOD.replace(before, after)).fingerprint == Contract.parse(GOOD).fingerprint


BANK_SCORE = 'bank_score = { kind = "score", of = ["job", "income"], model = "linear", folds = 3, group = "person" }'
INSURER_SCORE = 'insurer_score = "score"'
SHOP_SCORE = 'shop_score = { kind = "score", column = "old_risk", fitted_elsewhere = true }'
KEY = f'name = "phone"\nhash = 365\nsecret = "{SECRET}"'

MISTAKES = {
    "columns beside a score": (
        (INSURER_SCORE, f'claims = "numeric"\n{INSURER_SCORE}\nsmoker = "boolean"'),
        "peers.insurer.features.claims (line 22)",
        "insurer has 'claims', 'smoker'",
        "take them out; its model uses every column",
    ),
    "columns where others have a score": (
        (INSURER_SCORE, 'claims = "numeric"\nsmoker = "boolean"'),
        "peers.insurer.features.claims (line 22)",
        "insurer has 'claims', 'smoker'",
        'give insurer one feature of kind "score" instead',
    ),
    "two scores of one peer": (
        (INSURER_SCORE, f'{INSURER_SCORE}\nmore = "score"'),
        "peers.insurer.features.more (line 23)",
        "already has a score, 'insurer_score'",
        "keep one",
    ),
    "one name for two scores": (
        (INSURER_SCORE, 'bank_score = "score"'),
        "peers.insurer.features.bank_score (line 22)",
        "'bank_score' is the score of bank",
        "its own name",
    ),
    "one name for a score and a column": (
        (INSURER_SCORE, 'bank_score = "numeric"'),
        "peers.insurer.features.bank_score (line 22)",
        "insurer has 'bank_score'",
        'one feature of kind "score" instead',
    ),
    "no constant": (("[label]", "intercept = false\n[label]"), "intercept (line 4)", "a constant", "take `intercept`"),
    "an unknown model": (('"linear"', '"forest"'), "model (line 19)", "'boosting' or 'linear'", ""),
    "one fold": (("folds = 3", "folds = 1"), "folds (line 19)", "greater than or equal to 2", ""),
    "too many folds": (("folds = 3", "folds = 21"), "folds (line 19)", "less than or equal to 20", ""),
    "whether as folds": (("folds = 3", "folds = true"), "folds (line 19)", "whole number", ""),
    "of nothing": (('["job", "income"]', "[]"), "of (line 19)", "`of` is empty", "name a column"),
    "of one twice": (('["job", "income"]', '["job", "job"]'), "of (line 19)", "names a column twice", ""),
    "of the label": (('["job", ', '["defaulted", '), "of (line 19)", "'defaulted' is the label", "take it out"),
    "of a shared feature": (('["job", ', '["age", '), "of (line 19)", "always used", "take it out"),
    "of the key": (('["job", ', '["phone", '), "of (line 19)", "'phone' is the key", "take it out"),
    "of persons": (('["job", ', '["person", '), "of (line 19)", "says whose a row is", "take it out"),
    "of what is shared under another name": (
        (INSURER_SCORE, 'insurer_score = { kind = "score", of = ["customer_age"] }'),
        "peers.insurer.features.insurer_score.of (line 22)",
        "'customer_age' is a shared feature",
        "take it out",
    ),
    "persons by the label": (('group = "person"', 'group = "defaulted"'), "group (line 19)", "the label", "another"),
    "persons by a shared feature": (('group = "person"', 'group = "age"'), "group (line 19)", "shared", "another"),
    "scores in the label": (('"old_risk"', '"defaulted"'), "column (line 25)", "'defaulted' is the label", "another"),
    "scores in the key": (('"old_risk"', '"phone"'), "column (line 25)", "'phone' is the key", "another column"),
    "persons by the scores": (
        ("fitted_elsewhere = true", 'fitted_elsewhere = true, group = "old_risk"'),
        "group (line 25)",
        "the column of the scores",
        "name another",
    ),
    "a column that is not fitted elsewhere": ((", fitted_elsewhere = true", ""), "(line 25)", "add `fitted_els", ""),
    "fitted elsewhere, in no column": (('column = "old_risk", ', ""), "(line 25)", "`column` must name", ""),
    "fitted elsewhere and here": (('column = "old_risk"', 'column = "old_risk", of = ["a"]'), "(line 25)", "leave", ""),
    "fitted elsewhere as": (('column = "old_risk"', 'column = "old_risk", model = "linear"'), "(line 25)", "leave", ""),
    "a score as a column": (
        ('phone = "mobile"', 'phone = "mobile"\ninsurer_score = "theirs"'),
        "peers.insurer.columns.insurer_score (line 30)",
        "is a score, not a column",
        "fitted_elsewhere = true",
    ),
    "two keys": (
        ("[peers.bank.f", '[[key]]\nname = "born"\nday_of_year = true\n[peers.bank.f'),
        "key[0] (line 13)",
        "only one key is allowed",
        "keep the best one",
    ),
    "a key that is no list": (("[[key]]", "[key]"), "key[0] (line 13)", "must be a list", "`[[key]]`"),
    "a key without a name": (('name = "phone"\n', ""), "key[0].name (line 13)", "missing", "add it"),
    "a key of the label": (('name = "phone"', 'name = "defaulted"'), "key[0].name (line 14)", "the label", "another"),
    "a key that is shared": (('name = "phone"', 'name = "age"'), "key[0].name (line 14)", "a shared", "another column"),
    "a key that is a score": (
        ('name = "phone"', 'name = "shop_score"'),
        "key[0].name (line 14)",
        "a private feature of shop",
        "another column",
    ),
    "a key in the column of a shared feature": (
        ('"mobile"', '"customer_age"'),
        "peers.insurer.columns.phone (line 29)",
        "'customer_age' is 'age' already",
        "choose another column",
    ),
    "a key in the column of the label": (
        ('"mobile"', '"defaulted"'),
        "peers.insurer.columns.phone (line 29)",
        "'defaulted' is 'defaulted' already",
        "choose another column",
    ),
    "a key of no way": ((f'hash = 365\nsecret = "{SECRET}"', ""), "key[0] (line 13)", "exactly one of", "`hash`"),
    "a key of two ways": (("hash = 365", "hash = 365\nday_of_year = true"), "key[0] (line 13)", "exactly one of", ""),
    "an unknown way": (
        ("hash = 365", "hash = 365\nmonth = true"),
        "key[0].month (line 16)",
        "no such entry",
        "spelling",
    ),
    "a hash without a secret": ((f'secret = "{SECRET}"', ""), "key[0] (line 13)", "go together", "sha256sum"),
    "a secret without a hash": (("hash = 365", "day_of_year = true"), "key[0] (line 13)", "go together", ""),
    "the secret itself": ((SECRET, "hunter2"), "key[0].secret (line 16)", "64 hexadecimal digits", "not the secret"),
    "a hash to few values": (("hash = 365", "hash = 2"), "key[0].hash (line 15)", "equal to 3", ""),
    "a hash to too many": (("hash = 365", "hash = 100_001"), "key[0].hash (line 15)", "equal to 100000", ""),
    "whether as a hash": (("hash = 365", "hash = true"), "key[0].hash (line 15)", "a whole number", ""),
    "no digits": ((KEY, 'name = "phone"\nlast_digits = 0'), "key[0].last_digits (line 15)", "equal to 1", ""),
    "too many digits": ((KEY, 'name = "phone"\nlast_digits = 4'), "key[0].last_digits (line 15)", "equal to 3", ""),
    "whether as digits": ((KEY, 'name = "phone"\nlast_digits = true'), "key[0].last_digits (line 15)", "a whole", ""),
    "edges that fall": ((KEY, 'name = "phone"\nedges = [3, 2]'), "key[0] (line 13)", "in rising order", ""),
    "one edge": ((KEY, 'name = "phone"\nedges = [3]'), "key[0] (line 13)", "3 values or more", "a few hundred"),
    "no edges": ((KEY, 'name = "phone"\nedges = []'), "key[0] (line 13)", "3 values or more", "a few hundred"),
    "two categories": ((KEY, 'name = "phone"\ncategories = [1, 2]'), "key[0] (line 13)", "3 values or more", "best"),
    "a category twice": ((KEY, 'name = "phone"\ncategories = [1, 2, 1.0]'), "key[0] (line 13)", "listed twice", ""),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_every_mistake_is_told_with_its_place_and_remedy(tmp_path, case):
    change, place, problem, remedy = MISTAKES[case]
    text = GOOD.replace(*change, 1)
    assert text != GOOD
    if 'name = "phone"' not in text:
        text = text.replace('phone = "mobile"', "")
    (tmp_path / "c.toml").write_text(text)
    (mistake,) = check_contract(tmp_path / "c.toml")
    assert mistake.place.endswith(place)
    assert problem in mistake.problem
    assert remedy in str(mistake)


def test_all_mistakes_come_at_once(tmp_path):
    text = GOOD.replace('["job"', '["defaulted"').replace(INSURER_SCORE, 'claims = "numeric"')
    (tmp_path / "c.toml").write_text(text.replace('"old_risk"', '"age"'))
    assert len(check_contract(tmp_path / "c.toml")) == 3


def test_persons_may_be_told_by_the_column_of_the_key():
    assert Contract.parse(GOOD.replace('"person"', '"phone"')).score_of("bank")[1].group == "phone"


@pytest.mark.parametrize(("label", "allowed"), [("positive = 1, negative = 0", True), ("classes = [1, 2, 3]", False)])
def test_a_key_of_columns_relates_one_score(tmp_path, label, allowed):
    text = f"""
name = "n"
label = {{ column = "y", {label} }}
[[key]]
name = "born"
day_of_year = true
[peers.a.features]
u = "numeric"
"""
    (tmp_path / "c.toml").write_text(text)
    mistakes = check_contract(tmp_path / "c.toml")
    assert bool(mistakes) is not allowed
    if mistakes:
        assert mistakes[0].place == "key[0] (line 4)"
        assert "two values" in mistakes[0].problem


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        (Key(name="k", categories=("a", "b", 3)), 3, "one of a, b, 3"),
        (Key(name="k", edges=(1, 2.5)), 3, "by bins that meet at 1, 2.5"),
        (Key(name="k", day_of_year=True), 366, "the day of its year"),
        (Key(name="k", last_digits=1), 10, "its last digit"),
        (Key(name="k", last_digits=3), 1000, "its last 3 digits"),
        (
            Key(name="k", hash=365, secret=SECRET),
            365,
            f"mapped to 365 values by a keyed hash (secret file {SECRET[:16]})",
        ),
    ],
)
def test_a_key_has_values_and_words(key, values, words):
    assert key.values == values
    assert isinstance(key.values, int)
    contract = Contract.parse(GOOD).model_copy(update={"key": key})
    assert f"Key: k, {words}." in describe_contract(contract)


def test_words_say_what_each_peer_fits_and_that_it_stays():
    words = describe_contract(Contract.parse(GOOD))
    assert "bank_score: the score of a linear model on income, job and the shared features" in words
    assert "(3 folds, all rows of one person in the same fold)" in words
    assert "insurer_score: the score of boosted trees on all its columns" in words
    assert "shop_score: its column old_risk, scores of an existing model, calibrated in 5 folds" in words
    assert "Key: phone (insurer calls it mobile), mapped to 365 values" in words
    assert "Each peer's model stays at the peer." in words
    assert "intercept" not in words


def test_words_of_columns_speak_of_no_scores():
    words = describe_contract(example_peers(rows=10)[0])
    assert "The model has an intercept." in words
    assert "Key" not in words


BORN = pa.array([0] * 40, pa.date32())
BANK = pa.table({"bad": [0, 1] * 20, "age": list(range(40)), "born": BORN, "income": [1.5] * 40, "job": ["clerk"] * 40})
SHOP = pa.table({"bad": [0, 1] * 20, "age": list(range(40)), "born": BORN, "visits of": [1] * 40, "vip": [True] * 40})
WORDS = {"name": "n", "label": "bad", "positive": "1", "negative": "0"}


def test_a_draft_has_one_score_per_peer_and_is_in_order():
    text = draft_contract({"bank": profile(BANK, outline=True), "the shop": profile(SHOP, outline=True)}, **WORDS)
    contract = Contract.parse(text)
    assert contract.of_scores
    assert [contract.score_of(peer) for peer in contract.peers] == [
        ("bank_score", Score()),
        ("the_shop_score", Score()),
    ]
    assert [shared.name for shared in contract.shared] == ["age"]
    assert 'bank_score = "score"  # of income, job, with age' in text


def test_a_day_of_birth_that_all_have_is_proposed_as_the_key():
    text = draft_contract({"bank": profile(BANK, outline=True), "shop": profile(SHOP, outline=True)}, **WORDS)
    assert Contract.parse(text).key == Key(name="born", day_of_year=True)
    assert "# AGREE: the day of birth" in text
    told = {"bank": profile(BANK.drop_columns(["born"])), "shop": profile(SHOP)}
    assert '# [[key]]\n# name = "birthday"\n# day_of_year = true\n' in draft_contract(told, **WORDS)


def test_scores_are_named_apart_from_all_else():
    tables = {
        "a b": BANK.rename_columns(["bad", "a_b_score", "born", "income", "job"]),
        "a_b": SHOP.rename_columns(["bad", "a_b_score", "born", "x\ny", "vip"]),
    }
    text = draft_contract({peer: profile(table, outline=True) for peer, table in tables.items()}, **WORDS)
    contract = Contract.parse(text)
    assert [contract.score_of(peer)[0] for peer in contract.peers] == ["a_b_score_", "a_b_score__"]


def test_a_peer_without_columns_of_its_own_is_told():
    tables = {"bank": BANK.select(["bad", "age"]), "shop": SHOP.select(["bad", "age", "vip"])}
    text = draft_contract({peer: profile(table, outline=True) for peer, table in tables.items()}, **WORDS)
    assert 'bank_score = "score"  # this peer has no column of its own' in text
    assert Contract.parse(text).of_scores


def test_columns_are_drafted_where_they_are_asked_for():
    tables = {"bank": BANK.drop_columns("born"), "shop": SHOP.drop_columns("born")}
    told = {peer: profile(table, outline=True) for peer, table in tables.items()}
    contract = Contract.parse(draft_contract(told, **WORDS, columns=True))
    assert not contract.of_scores
    assert sorted(contract.peers["bank"].features) == ["income", "job"]
    assert "key" not in draft_contract(told, **WORDS, columns=True)


def test_craft_refuses_a_contract_of_scores_and_says_what_to_do():
    with pytest.raises(ContractMismatch, match=r"each peer adds a score.*`share`.*--columns"):
        rc.craft(BANK, Contract.parse(GOOD), "bank")


def test_thousands_of_columns_are_refused_with_advice():
    """Dummies of one long column, or the product of two that are not short."""
    held = {"postcode": {"kind": "categorical", "categories": list(range(5_000))}, "income": {"kind": "numeric"}}
    with pytest.raises(ContractError, match=r"bank would have 5,003 columns.*5,002 of them of 'postcode'") as refused:
        Contract.parse(spelled(held))
    assert "fewer categories" in str(refused.value)
    assert '"score"' in str(refused.value)
    few = {"kind": "categorical", "categories": list(range(40))}
    product = {"one": few, "other": few, "both": {"kind": "interact", "of": ["one", "other"]}}
    with pytest.raises(ContractError, match="1,764 of them of 'both'"):
        Contract.parse(spelled(product))
    held["postcode"]["categories"] = list(range(500))
    assert len(private_columns(Contract.parse(spelled(held)), "bank")) == 503


def spelled(features: dict) -> str:
    lines = [f"{name} = {toml(feature)}" for name, feature in features.items()]
    return "\n".join(
        ['name = "wide"', 'label = { column = "y", positive = 1, negative = 0 }', "[peers.bank.features]", *lines]
    )


def toml(feature: dict) -> str:
    return "{ " + ", ".join(f"{key} = {value!r}" for key, value in feature.items()) + " }"
