"""All lines of a ledger together: what left, what is waiting, and what it has cost so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from radocraft.gate import Spend
from radocraft.ledger._chain import FIRST
from radocraft.ledger._lines import Decision, Leaving, Line, Withheld

Stage = Literal["waiting", "refused", "released"]


@dataclass(frozen=True)
class History:
    """The lines of a ledger, oldest first."""

    lines: tuple[Line, ...]

    @property
    def head(self) -> str:
        """The hash of the last line, by which all of them can be checked; zeros if there is none."""
        return self.lines[-1].hash if self.lines else FIRST

    def leaving(self, table: str | None = None) -> Iterator[Leaving]:
        """What left or was proposed, of one table or of all."""
        for line in self.lines:
            if isinstance(line.entry, Leaving) and table in (None, line.entry.table):
                yield line.entry

    def withheld(self, table: str) -> Iterator[Withheld]:
        """Where a table was asked for, and noise said that there is too little."""
        for line in self.lines:
            if isinstance(line.entry, Withheld) and line.entry.table == table:
                yield line.entry

    def before(self, proposal: str) -> History:
        """Everything up to a proposal, without it."""
        number = next(line.number for line in self.lines if getattr(line.entry, "proposal", None) == proposal)
        return History(self.lines[:number])

    def spent(self, table: str) -> Spend:
        """What releases and proposals of a table have spent: noise once drawn is spent, whether or not it left."""
        spends = [entry.spend for entry in self.leaving(table)] + [entry.spend for entry in self.withheld(table)]
        return Spend(math.fsum(spend.rho for spend in spends), math.fsum(spend.delta for spend in spends))

    def count(self, table: str) -> int:
        """How many different files of a table left or were proposed, or were asked for and withheld."""
        return len({entry.file for entry in self.leaving(table)}) + len([*self.withheld(table)])

    def proposed(self, proposal: str) -> Leaving | None:
        """The proposal of an identity."""
        return next((entry for entry in self.leaving() if entry.proposal == proposal), None)

    def decision_on(self, proposal: str) -> Decision | None:
        """What a person decided on a proposal; the first word counts, and there is no second."""
        entries = (line.entry for line in self.lines)
        return next((entry for entry in entries if isinstance(entry, Decision) and entry.proposal == proposal), None)

    def stage_of(self, entry: Leaving) -> Stage:
        """Whether it left, waits, or was refused."""
        if entry.proposal is None:
            return "released"
        decision = self.decision_on(entry.proposal)
        if decision is None:
            return "waiting"
        return "released" if decision.kind == "approval" else "refused"

    def of_file(self, file: str) -> Leaving | None:
        """The line that counts of a file: that it left, else that it waits, else that it was refused."""
        entries = [entry for entry in self.leaving() if entry.file == file]
        order = ("released", "waiting", "refused")
        return min(entries, key=lambda entry: order.index(self.stage_of(entry)), default=None)

    def of_job(self, job: str) -> Leaving | None:
        """What answered a request."""
        return next((entry for entry in self.leaving() if entry.job == job), None)

    def same(self, digest: str) -> Leaving | None:
        """The same release, made before, of a table that has not changed; the last if there are several."""
        same = [entry for entry in self.leaving() if entry.marks(digest)]
        return self.of_file(same[-1].file) if same else None

    def refused(self, digest: str) -> Withheld | None:
        """What was said when the same was asked for before, of a table that has not changed."""
        entries = (line.entry for line in self.lines if isinstance(line.entry, Withheld))
        return next((entry for entry in entries if entry.marks(digest)), None)

    def constants(self, table: str, peer: str, fingerprint: str) -> dict[str, tuple[float, ...]] | None:
        """The units that a table was released in, paid for already; None if there are none."""
        for entry in reversed([*self.leaving(table)]):
            if (entry.peer, entry.fingerprint) == (peer, fingerprint) and entry.rho is not None and entry.constants:
                return entry.constants
        return None
