"""What lines say together: what left, what waits, and what was there before."""

from datetime import UTC, datetime

import pytest
from tests.unit.ledger.entries import decision, leaving, proposal

from radocraft.ledger._history import History
from radocraft.ledger._lines import Decision, Leaving, Line


def history(*entries: Leaving | Decision) -> History:
    now = datetime.now(UTC)
    return History(tuple(Line(at, now, f"{at:064x}", entry) for at, entry in enumerate(entries)))


@pytest.mark.parametrize(
    ("lines", "stage"),
    [
        ([leaving()], "released"),
        ([proposal()], "waiting"),
        ([proposal(), decision("approval")], "released"),
        ([proposal(), decision("refusal")], "refused"),
        ([proposal(), decision("refusal"), proposal(identity="2")], "waiting"),
        ([proposal(), decision("refusal"), proposal(identity="2"), decision("approval", identity="2")], "released"),
        ([proposal(), proposal("b", "2"), decision("approval", "b", "2")], "waiting"),
    ],
)
def test_the_stage_of_a_file(lines, stage):
    told = history(*lines)
    entry = told.of_file("a" * 64)
    assert entry is not None
    assert told.stage_of(entry) == stage


def test_the_first_decision_counts():
    told = history(proposal(), decision("refusal"), decision("approval"))
    assert told.stage_of(proposal()) == "refused"


def test_the_same_release_is_known_by_its_mark_alone():
    told = history(leaving("a").marked("exact"), leaving("b"))
    assert told.same("exact") == told.of_file("a" * 64)
    assert told.same("other") is None
    assert "exact" not in repr(told)


def test_units_of_exact_sums_are_never_used_again():
    units = {"income": (3.0, 2.0)}
    noisy, exact = leaving("a", constants=units), leaving("b", rho=None, limits=None, constants={"income": (3.1, 2.2)})
    assert history(noisy, exact).constants("t", "bank", "f" * 64) == units
    assert history(exact).constants("t", "bank", "f" * 64) is None
    assert history(noisy).constants("t", "bank", "e" * 64) is None
    assert history(noisy).constants("other", "bank", "f" * 64) is None


def test_before_a_proposal():
    told = history(leaving("b"), proposal(), decision("approval"))
    assert [line.number for line in told.before("1" * 64).lines] == [0]
    assert told.before("1" * 64).head == f"{0:064x}"
