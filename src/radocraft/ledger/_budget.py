"""What may still leave of a table."""

from __future__ import annotations

from dataclasses import dataclass

from radocraft.errors import PolicyRefusal
from radocraft.gate import Spend, epsilon_of, rho_of
from radocraft.ledger._history import History
from radocraft.ledger._lines import Leaving, Limits, Withheld

_SLACK = 1e-9


@dataclass(frozen=True)
class Budget:
    """What has left of a table, against what may.

    Examples
    --------
    >>> budget = Budget(Spend(0.5), 2, Limits(delta=1e-6, releases=10))
    >>> budget.spent, budget.remains
    ('2 releases, together epsilon 4.89 at delta 1e-06', '8 of 10 releases')
    """

    spend: Spend
    releases: int
    limits: Limits

    @classmethod
    def of(cls, history: History, table: str, limits: Limits) -> Budget:
        """Of all that a ledger knows about a table."""
        return cls(history.spent(table), history.count(table), limits)

    @property
    def epsilon(self) -> float:
        """What all of it spent together."""
        return epsilon_of(self.spend.rho, self.limits.delta)

    @property
    def share(self) -> float:
        """How much of the budget is spent, from 0 to 1 and above."""
        if self.limits.epsilon is not None:
            return self.epsilon / self.limits.epsilon
        return 0.0 if self.limits.releases is None else self.releases / self.limits.releases

    @property
    def exceeded(self) -> bool:
        """Whether more is spent than there was."""
        return self.share > 1.0 + _SLACK

    @property
    def spent(self) -> str:
        """What was spent, in words."""
        count = "1 release" if self.releases == 1 else f"{self.releases:,} releases"
        delta = self.limits.delta + self.spend.delta
        return f"{count}, together epsilon {self.epsilon:.3g} at delta {delta:.3g}"

    @property
    def remains(self) -> str:
        """What remains, in words."""
        if self.limits.epsilon is not None:
            left = max(self.limits.epsilon - self.epsilon, 0.0)
            return f"epsilon {left:.3g} of {self.limits.epsilon:g} at delta {self.limits.delta:g}"
        if self.limits.releases is not None:
            return f"{max(self.limits.releases - self.releases, 0):,} of {self.limits.releases:,} releases"
        return "no limit"


def check_budget(history: History, entry: Leaving | Withheld) -> None:
    """Refuse what would exceed the table's budget for life, and say what remains of it.

    How much noise costs depends on noisy numbers, and so does what is refused here. A request from outside that is
    refused so uses up what remains: asked often, it would say how many rows there are.
    """
    if entry.limits is None:
        return
    before = Budget.of(history, entry.table, entry.limits)
    known = {left.file for left in history.leaving(entry.table)}
    new = isinstance(entry, Withheld) or entry.file not in known
    after = Budget(before.spend + entry.spend, before.releases + new, entry.limits)
    if not after.exceeded or (entry.rho == 0 and not new):
        return
    asked = "one more is asked for"
    remedy = "Raise lifetime_releases in the policy if the data officer agrees, or stop here."
    if entry.limits.epsilon is not None:
        asked = f"with this release it would be epsilon {after.epsilon:.3g}"
        remedy = "Ask for less (more noise, or a smaller epsilon), or stop here."
    refusal = PolicyRefusal(
        f"This would exceed the lifetime budget of '{entry.table}': {before.spent} so far, {before.remains} left, "
        f"and {asked}. {remedy}"
    )
    if entry.limits.epsilon is not None and entry.job is not None:
        refusal.spent = (max(rho_of(entry.limits.epsilon, entry.limits.delta) - before.spend.rho, 0.0), 0.0)
    raise refusal
