"""The contract file: what it says, every mistake in it, and its fingerprint."""

import numpy as np
import pytest

from radocraft.contract._contract import Contract, check_contract
from radocraft.contract._features import Shared, interval, show
from radocraft.errors import ContractError, FileError

GOOD = """
name = "default within a year"

[label]
column = "defaulted"
positive = "yes"
negative = "no"

[[shared]]
name = "region"
categories = ["north", "south"]

[[shared]]
name = "age"
edges = [30, 45, 60]
encoding = "ordinal"

[peers.bank.features]
income = { kind = "numeric", centre = 30000, scale = 12000 }
balance = "numeric"
job = { kind = "categorical", categories = ["clerk", 7] }
has_loan = "boolean"

[peers.insurer.features]
claims = "numeric"

[peers.insurer.columns]
age = "customer_age"
"""

BAD = """\
name = ""
[label]
column = "bad"
positive = 1
negative = 1.0

[[shared]]
name = "region"
categories = []

[[shared]]
name = "age"
edges = [60, 45]

[[shared]]
name = "age"
edge = [3]

[peers.bank.features]
income = { kind = "numeric", centre = 1 }
balance = { kind = "numeric", centre = 0, scale = 0 }
bad = "number"
job = { categories = ["clerk"] }

[peers."the shop".features]
income = "numeric"
visits = { kind = "categorical", categories = ["any", 2020-01-01] }

[peers."the shop".columns]
agee = "customer_age"
"""


def fingerprint(text: str) -> str:
    return Contract.parse(text).fingerprint


def test_a_contract_says_what_was_agreed():
    contract = Contract.parse(GOOD)
    assert contract.label.values == ("no", "yes")
    assert [shared.name for shared in contract.shared] == ["region", "age"]
    assert contract.shared[0].codes == ("north", "south", "missing", "unseen")
    assert contract.shared[1].codes == ("(-inf, 30)", "[30, 45)", "[45, 60)", "[60, inf)", "missing")
    assert contract.shared_columns == ("region=north", "region=south", "region=missing", "region=unseen", "age")
    assert contract.peer("bank").features["job"].codes == ("clerk", "7", "missing", "unseen")
    assert contract.column_of("insurer", "age") == "customer_age"
    assert contract.column_of("bank", "age") == "age"
    assert contract.intercept is True


def test_an_unknown_peer_is_answered_with_the_peers_there_are():
    with pytest.raises(ContractError, match=r"no peer 'shop'.*bank, insurer"):
        Contract.parse(GOOD).peer("shop")


@pytest.mark.parametrize(
    ("encoding", "columns"), [("one-hot", np.eye(4)), ("ordinal", np.array([[-1.0], [1.0], [0.0], [0.0]]))]
)
def test_missing_and_unseen_stand_in_the_middle_of_an_ordinal_feature(encoding, columns):
    shared = Shared(name="s", categories=("low", "high"), encoding=encoding)
    np.testing.assert_array_equal(shared.matrix, columns)


def test_signatures_are_encoded_feature_by_feature():
    encoded = Contract.parse(GOOD).encode_shared(np.array([[1, 0], [3, 4]]))
    np.testing.assert_array_equal(encoded, [[0, 1, 0, 0, -1], [0, 0, 0, 1, 0]])


def test_every_mistake_comes_at_once_with_its_line_and_its_remedy(tmp_path):
    (tmp_path / "c.toml").write_text(BAD)
    mistakes = {mistake.place: mistake for mistake in check_contract(tmp_path / "c.toml")}
    told = {
        "name (line 1)": "at least 1 character",
        "label (line 2)": "the same value",
        "shared[0] (line 7)": "`categories` is empty",
        "shared[1] (line 11)": "rising order",
        "shared[2].edge (line 17)": "no such entry",
        "shared[2].name (line 16)": "'age' is already a shared feature",
        "peers.bank.features.income (line 20)": "both `centre` and `scale`",
        "peers.bank.features.balance.scale (line 21)": "greater than 0",
        "peers.bank.features.bad (line 22)": "'bad' is already the label",
        "peers.bank.features.job (line 23)": "its kind is missing",
        'peers."the shop".features.income (line 26)': "'income' is a different feature at another peer",
        'peers."the shop".features.visits.categories[1] (line 27)': "must be text, a finite number, true or false",
        'peers."the shop".columns.agee (line 30)': "'agee' is not a feature of the shop",
    }
    assert mistakes.keys() == told.keys()
    for place, problem in told.items():
        assert problem in str(mistakes[place])
    with pytest.raises(ContractError, match="has 14 mistakes") as error:
        Contract.load(tmp_path / "c.toml")
    assert all(place in str(error.value) for place in told)
    assert error.value.exit_code == 1


@pytest.mark.parametrize(
    ("change", "place", "remedy"),
    [
        (("edges = [30, 45, 60]", "edges = [30, inf]"), "shared[1].edges[1] (line 15)", "contract new"),
        (("edges = [30, 45, 60]", ""), "shared[1] (line 13)", "either `edges`"),
        (('"north", "south"', '"north", "missing"'), "shared[0] (line 9)", "give the category another name"),
        (('"north", "south"', "1, 1.0"), "shared[0] (line 9)", "listed twice"),
        (
            ('balance = "numeric"', 'balance = "number"'),
            "peers.bank.features.balance (line 20)",
            '"numeric", "log", "date"',
        ),
        (
            ('balance = "numeric"', 'balance = { kind = "spline", knots = 1 }'),
            "peers.bank.features.balance.knots (line 20)",
            "a whole number from 2 to 20, or a list",
        ),
        (
            ('balance = "numeric"', 'balance = { kind = "spline", knots = "many" }'),
            "peers.bank.features.balance.knots (line 20)",
            "a whole number from 2 to 20, or a list",
        ),
        (
            ('balance = "numeric"', 'balance = { kind = "spline", knots = [0, inf] }'),
            "peers.bank.features.balance.knots (line 20)",
            "a whole number from 2 to 20, or a list",
        ),
        (('balance = "numeric"', "balance = 3"), "peers.bank.features.balance (line 20)", 'e.g. "numeric"'),
        (("edges = [30, 45, 60]", "edges = 30"), "shared[1].edges (line 15)", "must be a list"),
        (("claims", "age"), "peers.insurer.features.age (line 25)", "another name"),
        (("has_loan", '"job=clerk"'), "'job=clerk'", "give it another name"),
        (("has_loan", '"region=unseen"'), "'region=unseen'", "give it another name"),
        (('name = "region"', ""), "shared[0].name (line 9)", "add it"),
        (("[label]", "intercept = 3\n[label]"), "intercept (line 4)", "contract new"),
        (('positive = "yes"', 'positive = "no"'), "label (line 4)", "two different ones"),
        (('positive = "yes"', "positive = nan"), "label.positive (line 6)", "finite"),
        (("[label]", "[label"), "the file", "fix the syntax"),
    ],
)
def test_a_single_mistake_is_told_with_its_place_and_remedy(tmp_path, change, place, remedy):
    text = GOOD.replace(*change, 1)
    assert text != GOOD
    (tmp_path / "c.toml").write_text(text)
    (mistake,) = check_contract(tmp_path / "c.toml")
    assert mistake.place == place
    assert remedy in str(mistake)


def test_a_feature_named_like_a_kind_keeps_its_place(tmp_path):
    (tmp_path / "c.toml").write_text(GOOD.replace("claims =", "numeric = 3\nclaims ="))
    (mistake,) = check_contract(tmp_path / "c.toml")
    assert mistake.place == "peers.insurer.features.numeric (line 25)"


def test_a_good_contract_has_no_mistakes(tmp_path):
    (tmp_path / "c.toml").write_text(GOOD)
    assert check_contract(tmp_path / "c.toml") == []
    assert Contract.load(tmp_path / "c.toml") == Contract.parse(GOOD)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"Cannot read the contract '.*': No such file or directory\. Check"),
        (b"\xff\xfe name", "not UTF-8 text"),
    ],
)
def test_a_contract_that_cannot_be_read(tmp_path, content, said):
    if content is not None:
        (tmp_path / "c.toml").write_bytes(content)
    with pytest.raises(FileError, match=said):
        Contract.load(tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("edges = [30, 45, 60]", "edges = [30.0, 4.5e1, 60]  # bins"),
        ("centre = 30000, scale = 12000", "scale = 1.2e4, centre = 30_000.0"),
        ('["clerk", 7]', '["clerk", 7.0]'),
        ('balance = "numeric"', 'balance = { kind = "numeric" }'),
        ('["north", "south"]', '["north", "south"]\nencoding = "one-hot"'),
        ("[label]", "intercept = true\n[label]"),
        ('age = "customer_age"', 'age = "customer_age"\nclaims = "claims"'),
        ('column = "defaulted"\npositive = "yes"', 'positive = "yes"\ncolumn = "defaulted"'),
        ('balance = "numeric"\n', ""),
    ],
)
def test_the_fingerprint_is_of_the_meaning_not_of_the_writing(before, after):
    again = GOOD.replace(before, after)
    if "balance" in before and not after:
        again = again.replace('has_loan = "boolean"', 'has_loan = "boolean"\nbalance = "numeric"')
    assert again != GOOD
    assert fingerprint(again) == fingerprint(GOOD)


def test_the_fingerprint_does_not_depend_on_the_order_of_peers():
    start, rest = GOOD.split("[peers.bank.features]")
    bank, insurer = rest.split("[peers.insurer.features]")
    swapped = f"{start}[peers.insurer.features]{insurer}\n[peers.bank.features]{bank}"
    assert list(Contract.parse(swapped).peers) == ["insurer", "bank"]
    assert fingerprint(swapped) == fingerprint(GOOD)


def test_one_and_one_point_zero_are_the_same_label():
    whole = GOOD.replace('"yes"', "1").replace('"no"', "0")
    assert fingerprint(whole) == fingerprint(GOOD.replace('"yes"', "1.0").replace('"no"', "-0.0"))
    assert fingerprint(whole) != fingerprint(GOOD.replace('"yes"', "true").replace('"no"', "false"))
    assert fingerprint(whole) != fingerprint(GOOD.replace('"yes"', '"1"').replace('"no"', '"0"'))


def test_the_order_of_shared_features_is_meaning():
    region = '[[shared]]\nname = "region"\ncategories = ["north", "south"]\n'
    age = '[[shared]]\nname = "age"\nedges = [30, 45, 60]\nencoding = "ordinal"\n'
    assert region in GOOD
    assert age in GOOD
    swapped = GOOD.replace(region, "@").replace(age, region).replace("@", age)
    assert fingerprint(swapped) != fingerprint(GOOD)


def test_numbers_as_text_keep_all_their_digits():
    assert [show(value) for value in (True, 3, 3.0, 0.1, 0.12345678, "a")] == [
        "true", "3", "3", "0.1", "0.12345678", "a",
    ]  # fmt: skip
    assert interval(0.1234567890123, 0.1234567890124) == "[0.1234567890123, 0.1234567890124)"
    assert len({*Shared(name="s", categories=(0.1234567, 0.1234568)).codes}) == 4


def test_a_changed_copy_keeps_nothing_worked_out_before():
    contract = Contract.parse(GOOD)
    known = contract.fingerprint, contract.shared_columns
    leaner = contract.model_copy(update={"shared": contract.shared[:1]})
    assert leaner.shared_columns == contract.shared[0].encoded
    assert leaner.fingerprint != contract.fingerprint
    assert (contract.fingerprint, contract.shared_columns) == known
