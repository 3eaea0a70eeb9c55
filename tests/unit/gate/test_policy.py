"""The policy file: safe by default, every mistake at once, and exact sums only by their name."""

import pytest

from radocraft.errors import FileError, PolicyError
from radocraft.gate._policy import Policy, check_policy, draft_policy
from radocraft.gate._words import describe_policy

BAD = """\
mode = "exact"
min_rows = 0
minrows = 3
delta = 0.5
"""


def test_what_is_left_out_is_safe():
    policy = Policy.parse("")
    assert (policy.mode, policy.noise, policy.epsilon, policy.min_rows) == ("noise", 0.5, None, 10)
    assert (policy.lifetime_epsilon, policy.lifetime_releases) == (None, 10)
    assert policy == Policy() == Policy(10) == Policy(min_rows=10)


@pytest.mark.parametrize("name", ["bank", 'a "bank"', "two\nlines = 1"])
def test_a_draft_is_in_order_asks_for_review_and_keeps_a_ledger(tmp_path, name):
    file = tmp_path / "policy.toml"
    file.write_text(draft_policy(name))
    assert check_policy(file) == []
    policy = Policy.load(file)
    assert policy.review
    assert (policy.table, policy.ledger) == (name, str(tmp_path / f"{name}.ledger"))


def test_all_mistakes_come_at_once_with_place_and_remedy():
    with pytest.raises(PolicyError) as caught:
        Policy.parse(BAD)
    message = str(caught.value)
    assert message.startswith("The policy has 5 mistakes:")
    for place in ("min_rows (line 2)", "minrows (line 3)", "delta (line 4)", "mode (line 1)"):
        assert place in message
    assert "gives_away_rows = true" in message
    assert "contract" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gives_away_rows = true", 'for mode = "exact" only'),
        ('mode = "exact"\ngives_away_rows = true\nepsilon = 1', "nothing is bounded"),
        ("noise = 0.3\nepsilon = 1", "give one of the two"),
        ("lifetime_epsilon = 3\nlifetime_releases = 4", "give one of the two"),
        ("epsilon = 9\nlifetime_epsilon = 3", "one release spends more"),
        ('unit = "person"', "go together"),
        ('person = "customer"', "go together"),
        ("rows_per_person = 2", 'for `unit = "person"`'),
        ("noise = nan", "noise"),
        ("epsilon = inf", "epsilon"),
        ("noise = 0", "noise"),
        ("mode = ", "not valid TOML"),
        ("features = " + "[" * 10_000, "not valid TOML"),
    ],
)
def test_contradictions_are_told(text, said):
    with pytest.raises(PolicyError, match=said):
        Policy.parse(text)


def test_exact_sums_must_name_what_they_give_away():
    with pytest.raises(PolicyError, match="gives_away_rows"):
        Policy(mode="exact")
    policy = Policy.exact()
    assert (policy.min_rows, policy.noisy) == (1, False)
    assert "EXACT SUMS LEAVE" in describe_policy(policy)[0]
    assert describe_policy(policy)[-1] == "Releases are not recorded."


def test_no_file():
    with pytest.raises(FileError, match="Cannot read the policy"):
        Policy.load("nobody.toml")


def test_every_rule_is_put_in_words():
    policy = Policy.parse(
        'noise = 0.3\nsignatures = "labels-only"\nfeatures = ["income"]\nunit = "person"\nperson = "customer"\n'
        'rows_per_person = 7\nledger = "l"\nreview = true\nlifetime_epsilon = 6\nmin_rows = 33\ncontracts = ["3fa9"]'
    )
    words = "\n".join(describe_policy(policy))
    for said in ("0.3 times", "8.3 %", "by label", "income", "'customer'", "7 of a", "'l'", "epsilon 6", "33", "3fa9"):
        assert said in words
    assert "approve" in words


def test_an_epsilon_is_put_in_words():
    words = "\n".join(describe_policy(Policy(epsilon=2)))
    assert "epsilon 2 at delta 1e-06 per row, a formal guarantee" in words
    assert "no formal guarantee worth the name" in "\n".join(describe_policy(Policy(epsilon=20)))


def test_what_changes_a_release_is_told_apart_from_what_does_not():
    assert Policy().numbers == Policy(review=True, ledger="l", table="t", lifetime_releases=3).numbers
    assert Policy().numbers != Policy(noise=0.4).numbers
