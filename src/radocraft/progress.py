"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, rows done, rows in all (0 while unknown)."""


def quiet(doing: str, done: int, total: int) -> None:
    """Progress that shows nothing."""
