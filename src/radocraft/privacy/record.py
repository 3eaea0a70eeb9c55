"""Writing a release into the ledger, with every check on what it adds to earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from radocraft.errors import PolicyRefusal
from radocraft.parts import Part
from radocraft.policy import Policy, Release
from radocraft.privacy.differencing import check_difference, trace
from radocraft.privacy.joint import check_together
from radocraft.privacy.ledger import Entry, Ledger

_LEFT = ("release", "approval")
_MODES = (
    "A release of '{}' with and one without differential privacy do not go together: the exact one takes the other's "
    "protection away. Keep to one mode for a table."
)


def record(
    release: Release,
    part: Part,
    policy: Policy,
    table: str,
    kind: Literal["release", "proposal"] = "release",
    *,
    job: str | None = None,
) -> Entry | None:
    """Record that a part leaves, or waits for review; None if the policy keeps no ledger.

    ``job`` is the request it answers, if it came over the network. Raises
    `PolicyRefusal` if it would overspend the budget, if the job was answered
    already, or if, beside earlier releases of the same table, it would give a
    few rows away.
    """
    if policy.ledger is None:
        return None
    noise = release.noise or {}
    entry: Entry = {
        "kind": kind,
        "table": policy.table or table,
        "peer": part.peer,
        "contract": release.contract.name,
        "fingerprint": release.contract.fingerprint,
        "rows": part.metadata["rows"],
        "cells": part.table.num_rows,
        "mode": release.mode,
        "guarantee": release.guarantee,
        "part": part.metadata["hash"],
        "rho": noise.get("rho", 0.0),
        "trace": None if release.groups is None else trace(release.cells, release.contract, release.groups),
        **({} if job is None else {"job": job}),
    }

    def check(earlier: list[Entry]) -> None:
        if job is not None and any(line.get("job") == job for line in earlier):
            raise PolicyRefusal("This request was answered already, and no request is answered twice. Make another.")
        Beside(entry, policy.limit).check(earlier)

    return Ledger(Path(policy.ledger)).append(entry, limit=noise.get("lifetime_rho"), check=check)


def left_before(earlier: list[Entry], table: str) -> list[Entry]:
    """The releases of a table that have left; of one that waited for review, what was proposed."""
    proposals = {line["part"]: line for line in earlier if line["kind"] == "proposal"}
    left = [proposals.get(line["part"], line) for line in earlier if line["kind"] in _LEFT]
    return [line for line in left if line["table"] == table]


@dataclass(frozen=True)
class Beside:
    """A release beside all earlier ones of the same table."""

    entry: Entry
    limit: int

    def check(self, earlier: list[Entry]) -> None:
        """Refuse what earlier releases make dangerous."""
        if self.entry["mode"] == "none":
            return
        before = left_before(earlier, self.entry["table"])  # whatever a contract calls the peer
        for left in before:
            self._against(left)
        if before and self.entry["trace"] is not None:
            traces = [left["trace"] for left in before if left["trace"] is not None]
            check_together(self.entry["trace"], traces, self.limit, before[-1]["time"])
        counted = [line for line in earlier if line["kind"] == "scores" and line["table"] == self.entry["table"]]
        if counted and self.entry["mode"] == "differential-privacy":
            raise PolicyRefusal(_MODES.format(self.entry["table"]))

    def _against(self, left: dict[str, Any]) -> None:
        if (left["mode"] == "differential-privacy") != (self.entry["mode"] == "differential-privacy"):
            raise PolicyRefusal(_MODES.format(left["table"]))
        if left["trace"] is None or self.entry["trace"] is None:
            return
        check_difference(
            self.entry["trace"],
            left["trace"],
            self.limit,
            same_contract=left["fingerprint"] == self.entry["fingerprint"],
            when=left["time"],
        )
