"""Rate limits: a number of times per minute, refilled evenly."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock


class RateLimit:
    """So many times a minute, as many at once.

    Examples
    --------
    >>> now = [0.0]
    >>> calls = RateLimit(2, clock=lambda: now[0])
    >>> calls.take(), calls.take(), calls.take()
    (True, True, False)
    >>> now[0] = 30.0
    >>> calls.take(), calls.take()
    (True, False)
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._left, self._clock, self._lock = per_minute, float(per_minute), clock, Lock()
        self._last = clock()

    def take(self) -> bool:
        """Whether it may happen once more now."""
        with self._lock:
            now = self._clock()
            self._left = min(self._most, self._left + (now - self._last) * self._most / 60)
            self._last = now
            if self._left < 1:
                return False
            self._left -= 1
            return True
