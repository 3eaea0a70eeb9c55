"""The ledger: every release of a peer's tables, kept for good.

A chain of lines (see `radocraft.chain`). A line is on disk before what it
speaks of may leave: a killed process may leave a spend without a release, never
a release without a spend. A last line cut short by a crash never led to a
release.

Kinds of lines: ``release`` (it left), ``proposal`` (it waits for review),
``approval`` and ``refusal`` (of a proposal, with name and reason). Under
differential privacy the budget is spent by the first two: noise once drawn is
spent, whether or not a person lets it go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from radocraft.chain import Chain, Entry
from radocraft.errors import PolicyRefusal

__all__ = ["Entry", "Ledger"]

_SLACK = 1e-12


@dataclass(frozen=True)
class Ledger:
    """The record of what left, in a file of the peer's own.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "bank.ledger")
    >>> written = ledger.append({"kind": "release", "table": "customers", "rho": 0.1})
    >>> ledger.spent("customers"), len(ledger.entries())
    (0.1, 1)
    """

    path: Path

    @property
    def _chain(self) -> Chain:
        return Chain(
            Path(self.path),
            "ledger",
            "Nothing leaves without it; check the path in the policy.",
            "Nothing leaves until the file is put back from a copy; tell your data officer.",
        )

    def entries(self) -> list[Entry]:
        """Every line, checked against the chain of hashes."""
        return self._chain.entries()

    def spent(self, table: str) -> float:
        """What releases and proposals of a table have spent, in zCDP."""
        return _spent(self.entries(), table)

    def append(
        self, entry: Entry, *, limit: float | None = None, check: Callable[[list[Entry]], None] | None = None
    ) -> Entry:
        """Add a line; it is on disk when this returns.

        Parameters
        ----------
        entry
            What to record. ``rho`` is what it spends of ``table``'s budget.
        limit
            The table's budget for life; a line that would overspend it is refused.
        check
            Called with all earlier lines while no other process can write;
            whatever it raises keeps the line out.
        """

        def both(earlier: list[Entry]) -> None:
            if check is not None:
                check(earlier)
            if limit is not None:
                _check_budget(earlier, entry, limit)

        return self._chain.append(entry, check=both)


def _spent(entries: list[Entry], table: str) -> float:
    return sum(entry.get("rho") or 0.0 for entry in entries if entry.get("table") == table)


def _check_budget(earlier: list[Entry], entry: Entry, limit: float) -> None:
    spent, asked = _spent(earlier, entry["table"]), entry.get("rho") or 0.0
    if spent + asked > limit * (1 + _SLACK):
        raise PolicyRefusal(
            f"This release would overspend the lifetime budget of '{entry['table']}': {spent / limit:.0%} of it is "
            f"spent and the release asks for {asked / limit:.0%}. Ask for less (a smaller epsilon), or stop here."
        )
