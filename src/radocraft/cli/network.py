"""The commands that need the extra ``net``; without it they say how to get it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import typer

from radocraft.errors import NetworkError

_GROUPS = {"identity": "Who you are on the network.", "peer": "A peer on the network."}
_COMMANDS = {"collect": "Ask the peers for their parts, and learn.", "doctor": "Say what is wrong with a connection."}


def add_network(app: typer.Typer, panel: str) -> None:
    """Add ``identity``, ``peer``, ``collect`` and ``doctor``."""
    there = all(find_spec(module) is not None for module in ("cryptography", "prometheus_client"))
    for name in _GROUPS:
        if there:
            app.add_typer(import_module(f"radocraft.cli.{name}").app, name=name, rich_help_panel=panel)
    for name in _COMMANDS:
        if there:
            app.command(name, rich_help_panel=panel)(getattr(import_module(f"radocraft.cli.{name}"), name))
    if not there:
        anything = {"allow_extra_args": True, "ignore_unknown_options": True}
        for name, told in {**_GROUPS, **_COMMANDS}.items():
            app.command(name, help=told, context_settings=anything, rich_help_panel=panel)(_not_there)


def _not_there() -> None:
    raise NetworkError("The network is an extra, which is not installed here: pip install 'radocraft[net]'.")
