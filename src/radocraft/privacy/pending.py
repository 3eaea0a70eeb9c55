"""A release that waits for a person: still at the peer, and not yet allowed to leave.

The pending file holds the part exactly as it would leave and what the gate knows
about it. It is of no use without the ledger: approving it means that its
proposal is in the ledger, unchanged and undecided, and that beside all that has
left since it still gives no few rows away.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from radocraft.errors import FileError, PolicyRefusal
from radocraft.parts import Part
from radocraft.policy import Policy, Release
from radocraft.privacy.ledger import Entry, Ledger
from radocraft.privacy.record import Beside
from radocraft.storage import writing

_FORMAT = 1


@dataclass(frozen=True)
class Pending:
    """A part and what a reviewer should know about it."""

    part: Part
    facts: dict[str, Any]

    @classmethod
    def of(cls, release: Release, part: Part, policy: Policy, table: str) -> Pending:
        """What is to wait for review, from what is about to be proposed."""
        table = policy.table or table
        rows = np.sort(release.cells.rows)
        facts = {
            "format": _FORMAT,
            "ledger": str(Path(str(policy.ledger)).resolve()),
            "table": table,
            "part": part.metadata["hash"],
            "limit": policy.limit,
            "cells_by_size": _by_size(rows, policy.limit),
            "smallest_cell": int(rows[0]),
            "rolled_up": {"blocks": release.blocks_rolled_up, "rows": release.rows_rolled_up},
            "held_back": [asdict(block) for block in release.held_back],
            "notes": list(release.notes),
            "largest_shares": release.largest_shares,
            "budget": _budget(release, policy, table),
        }
        return cls(part, facts)

    def write(self, path: str | Path) -> None:
        """Write it to a file that its owner alone can read."""
        inner = io.BytesIO()
        self.part.stream(inner)
        with writing(path, private=True) as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("part.parquet", inner.getvalue())
            archive.writestr("review.json", json.dumps(self.facts, indent=1))

    @classmethod
    def read(cls, path: str | Path) -> Pending:
        """Read it back; a part that was changed is refused."""
        try:
            with zipfile.ZipFile(path) as archive:
                facts, inner = json.loads(archive.read("review.json")), archive.read("part.parquet")
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise FileError(f"'{path}' is not a pending release. Craft it anew, or check the path.") from error
        return cls(Part.read(io.BytesIO(inner), name=str(path)), facts)

    def let_out(self, output: Path) -> None:
        """Write the part that was approved."""
        self.part.write(output)

    def decide(self, verdict: Literal["approval", "refusal"], name: str, reason: str) -> Entry:
        """Record a person's decision; after an approval the part may leave."""
        proposal: list[Entry] = []

        def check(earlier: list[Entry]) -> None:
            own = [line for line in earlier if line.get("part") == self.part.metadata["hash"]]
            proposal.extend(line for line in own if line["kind"] == "proposal")
            if not proposal:
                raise PolicyRefusal("This release was never proposed to the ledger it names. Craft it anew.")
            if decided := [line for line in own if line["kind"] != "proposal"]:
                raise PolicyRefusal(
                    f"This release was decided on already ({decided[0]['kind']} by {decided[0].get('name')}). "
                    "Craft anew for another decision."
                )
            if verdict == "approval":
                Beside(proposal[0], self.facts["limit"]).check(earlier)

        entry = {
            "kind": verdict,
            "table": self.facts["table"],
            "part": self.part.metadata["hash"],
            "name": name,
            "reason": reason,
        }
        return Ledger(Path(self.facts["ledger"])).append(entry, check=check)


def _by_size(rows: Any, limit: int) -> dict[str, int]:
    """How many cells there are up to twice the limit, to ten times, to a hundred times, and above."""
    edges = [limit, 2 * limit, 10 * limit, 100 * limit]
    names = [f"{low:,} to {high - 1:,} rows" for low, high in pairwise(edges)]
    counts = np.diff(np.searchsorted(rows, edges)).tolist()
    return dict(zip([*names, f"{edges[-1]:,} rows or more"], [*counts, int((rows >= edges[-1]).sum())], strict=True))


def _budget(release: Release, policy: Policy, table: str) -> dict[str, float] | None:
    if release.noise is None:
        return None
    before, limit = Ledger(Path(str(policy.ledger))).spent(table), release.noise["lifetime_rho"]
    return {"before": before / limit, "after": (before + release.noise["rho"]) / limit}
