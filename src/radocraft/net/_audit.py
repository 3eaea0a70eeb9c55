"""The audit log of one end: who asked for what and when, what was answered, and what left.

A chain of lines (see `radocraft.chain`) without secrets or values: names, jobs,
fingerprints, sizes and hashes. Each state of a job is one line, not each call.
Refusals of calls are written too, but only so many a minute: whoever knocks all
day shall not fill the disk; the metrics count every one.

Kinds of lines at a peer: ``request``, ``ready``, ``waiting``, ``refused``,
``failed``, ``sending`` (on disk before the first byte leaves), ``received`` (the
other end has it whole), ``model``; at the collector: ``asked``, ``answered``,
``received``, ``learned``, ``sending``; at both: ``turned away``, ``start``, ``stop``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radocraft.ledger import Chain
from radocraft.net._rate_limit import RateLimit

_REFUSALS_PER_MINUTE = 30


class Audit:
    """The log at one end.

    Examples
    --------
    >>> import tempfile
    >>> audit = Audit(Path(tempfile.mkdtemp()) / "audit.log")
    >>> audit.note("request", who="collector", job="0" * 64)
    >>> audit.chain.entries()[0]["who"]
    'collector'
    """

    def __init__(self, path: Path) -> None:
        self.chain = Chain(path)
        self._refusals = RateLimit(_REFUSALS_PER_MINUTE)

    def note(self, kind: str, **facts: Any) -> None:
        """Add a line; it is on disk when this returns."""
        self.chain.append({"kind": kind, **{name: value for name, value in facts.items() if value is not None}})

    def knows(self, kind: str, job: str) -> bool:
        """Whether there is such a line already: a process may have been killed right after it wrote it."""
        return any((line["kind"], line.get("job")) == (kind, job) for line in self.chain.entries())

    def turned_away(self, who: str, why: str) -> None:
        """Add a line on a call that was turned away, unless there were many of them this minute."""
        if self._refusals.take():
            self.note("turned away", who=who[:200], reason=why)
