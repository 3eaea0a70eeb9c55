"""Budgets for life: rho and delta add up, and what exceeds them is refused with what remains."""

import math

import pytest
from tests.unit.ledger.entries import leaving, proposal

from radocraft.errors import PolicyRefusal
from radocraft.gate._account import Spend, epsilon_of, rho_of
from radocraft.ledger._budget import Budget
from radocraft.ledger._ledger import Ledger
from radocraft.ledger._lines import Limits

EPSILON = Limits(delta=1e-6, epsilon=6.0)


def test_epsilon_is_that_of_all_releases_together():
    budget = Budget(Spend(0.25) + Spend(0.25), 2, EPSILON)
    assert budget.epsilon == epsilon_of(0.5, 1e-6)
    assert budget.share == pytest.approx(epsilon_of(0.5, 1e-6) / 6)
    assert budget.remains == f"epsilon {6 - epsilon_of(0.5, 1e-6):.3g} of 6 at delta 1e-06"


def test_what_would_exceed_epsilon_is_refused_with_what_remains(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    for file in "ab":
        ledger.append(leaving(file, limits=EPSILON))
    after = f"{epsilon_of(1.0, 1e-6):.3g}"
    with pytest.raises(PolicyRefusal, match=rf"epsilon 1\.11 of 6 at delta 1e-06 left, and with this .* {after}"):
        ledger.append(leaving("c", rho=0.5, limits=EPSILON))
    ledger.append(leaving("c", rho=0.1, limits=EPSILON))


@pytest.mark.parametrize("over", [-1e-6, 1e-6, 0.01])
def test_the_budget_is_kept_to_the_last_digit(tmp_path, over):
    """What comes to exactly the epsilon of a life may leave, and nothing above it."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.append(leaving("a", rho=0.1, limits=EPSILON))
    last = leaving("b", rho=rho_of(6.0 * (1 + over), 1e-6) - 0.1, limits=EPSILON)
    if over < 0:
        ledger.append(last)
        assert Budget.of(ledger.history(), "t", EPSILON).share == pytest.approx(1.0, abs=2e-6)
    else:
        with pytest.raises(PolicyRefusal, match="would exceed the lifetime budget"):
            ledger.append(last)


@pytest.mark.parametrize(("spent", "releases", "exceeded"), [(0.5, 10, False), (0.5, 11, True)])
def test_so_many_releases_and_no_more(spent, releases, exceeded):
    limits = Limits(delta=1e-6, releases=10)
    assert Budget(Spend(spent), releases, limits).exceeded == exceeded


def test_a_proposal_spends_whether_or_not_it_leaves_and_the_same_file_once(tmp_path):
    ledger, once = Ledger(tmp_path / "ledger"), Limits(delta=1e-6, releases=1)
    ledger.append(proposal("a", limits=once))
    with pytest.raises(PolicyRefusal, match="0 of 1 releases left, and one more is asked for"):
        ledger.append(leaving("b", limits=once))
    ledger.append(proposal("a", "2", rho=0.0, limits=once))
    assert ledger.history().count("t") == 1


def test_other_tables_have_budgets_of_their_own(tmp_path):
    ledger, once = Ledger(tmp_path / "ledger"), Limits(delta=1e-6, releases=1)
    ledger.append(leaving("a", limits=once))
    ledger.append(leaving("b", table="other", limits=once))


def test_exact_sums_spend_everything(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    ledger.append(leaving("a", rho=None, limits=None))
    assert math.isinf(ledger.spent("t").rho)
    ledger.append(leaving("b", rho=None, limits=None))
    with pytest.raises(PolicyRefusal, match="epsilon inf"):
        ledger.append(leaving("c", limits=EPSILON))


def test_delta_adds_up(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    for file in "ab":
        ledger.append(leaving(file, delta=1e-7))
    assert Budget.of(ledger.history(), "t", EPSILON).spent == "2 releases, together epsilon 4.89 at delta 1.2e-06"
