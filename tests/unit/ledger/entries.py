"""Lines as a ledger holds them."""

from typing import Any

from radocraft.ledger._lines import Decision, Leaving, Limits


def leaving(file: str = "a", **changed: Any) -> Leaving:
    """A part of table "t" that left, at a cost of 0.25."""
    facts: dict[str, Any] = {
        "kind": "release",
        "what": "part",
        "table": "t",
        "peer": "bank",
        "contract": "risk",
        "fingerprint": "f" * 64,
        "rows": 900,
        "cells": 12,
        "policy": "noise",
        "rho": 0.25,
        "file": file * 64,
        "limits": Limits(delta=1e-6, releases=10),
    }
    return Leaving(**{**facts, **changed})


def proposal(file: str = "a", identity: str = "1", **changed: Any) -> Leaving:
    """The same, waiting for a person."""
    return leaving(file, kind="proposal", proposal=identity * 64, **changed)


def decision(kind: str, file: str = "a", identity: str = "1") -> Decision:
    """What a person decided on it."""
    facts = {"what": "part", "table": "t", "file": file * 64, "proposal": identity * 64}
    return Decision(kind=kind, name="A. Muster", reason="agreed", **facts)  # type: ignore[arg-type]
