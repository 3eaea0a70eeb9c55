"""The policy file: safe by default, every mistake at once, and no limit only by its name."""

import pytest

from radocraft import Policy
from radocraft.errors import FileError, PolicyError
from radocraft.policy import check_policy, draft_policy
from radocraft.policy.wording import describe_policy

BAD = """\
mode = "none"
min_rows = 0
minrows = 3

[dominance]
largest = 9

[privacy]
delta = 0.5
"""


def test_what_is_left_out_is_safe():
    policy = Policy.parse("")
    assert (policy.mode, policy.min_rows, policy.rows_per_column) == ("disclosure-control", 10, 2.0)
    assert policy == Policy() == Policy(10) == Policy(min_rows=10)


def test_a_draft_is_in_order_asks_for_review_and_keeps_a_ledger(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(draft_policy("bank"))
    assert check_policy(file) == []
    policy = Policy.load(file)
    assert policy.review
    assert policy.ledger == str(tmp_path / "bank.ledger")


def test_all_mistakes_come_at_once_with_place_and_remedy():
    with pytest.raises(PolicyError) as caught:
        Policy.parse(BAD)
    message = str(caught.value)
    assert message.startswith("The policy has 6 mistakes:")
    for place in (
        "min_rows (line 2)",
        "minrows (line 3)",
        "dominance.largest (line 6)",
        "privacy.delta (line 9)",
        "mode (line 1)",
    ):
        assert place in message
    assert "gives_away_single_rows = true" in message
    assert "contract" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('mode = "differential-privacy"\nledger = "l"', "go together"),
        ('mode = "differential-privacy"\nprivacy = {}', "needs to keep account"),
        ("dominance = { largest = 2 }", "give `share`"),
        ('mode = "differential-privacy"\nledger = "l"\nprivacy = { epsilon = 9 }', "lifetime_epsilon"),
        ('mode = "differential-privacy"\nledger = "l"\nprivacy = { unit = "person" }', "go together"),
        ("mode = ", "not valid TOML"),
    ],
)
def test_contradictions_are_told(text, said):
    with pytest.raises(PolicyError, match=said):
        Policy.parse(text)


def test_mode_none_must_name_what_it_gives_away():
    with pytest.raises(PolicyError, match="gives_away_single_rows"):
        Policy(mode="none")
    policy = Policy(mode="none", gives_away_single_rows=True)
    assert policy.limit == 1
    assert "NO LIMIT" in describe_policy(policy)[0]


def test_no_file():
    with pytest.raises(FileError, match="Cannot read the policy"):
        Policy.load("nobody.toml")


def test_every_rule_is_put_in_words():
    policy = Policy.parse(
        'mode = "disclosure-control"\nsignatures = "labels-only"\nmixed_labels = true\nfeatures = ["income"]\n'
        'ledger = "l"\nreview = true\ndominance = { largest = 2, share = 0.8, percent = 10 }'
    )
    words = "\n".join(describe_policy(policy))
    for said in (
        "at least 10 rows",
        "sums by label",
        "one label",
        "income",
        "'l'",
        "2 largest values",
        "80%",
        "10 %",
        "approve",
    ):
        assert said in words
