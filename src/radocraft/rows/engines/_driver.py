"""Engines that are not installed by default."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from radocraft.errors import SourceError


def driver(module: str, engine: str, extra: str) -> Any:
    """The engine's Python module, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SourceError(
            f"Reading from {engine} needs its driver, which is not installed here: pip install 'radocraft[{extra}]'."
        ) from error
