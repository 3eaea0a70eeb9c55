"""The command line: one file per command, each a thin shell over a public function of the library.

In come arguments and files. Out go tables for people, or JSON, and an exit code. A command's file is imported only when
the command is called.

To add a command: a line in `_commands.py`, and a file of its name beside `_predict.py`.
"""

from __future__ import annotations

import sys

import typer

from radocraft.cli._commands import Commands
from radocraft.cli._terminal import fail, fail_usage, interruption, is_misuse, out
from radocraft.errors import RadocraftError
from radocraft.files import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="radocraft",
    cls=Commands,
    help="One model across organisations' tables, with no shared id and no row leaving the building.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"radocraft {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options before any command."""


def main() -> None:
    """Run a command; errors raised on purpose, and wrong usage, become a message and an exit code."""
    interruption.heed()
    try:
        sys.exit(app(prog_name="radocraft", standalone_mode=False))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if interruption.happened:  # it broke something on its way, such as an import
            sys.exit(130)
        as_json = "--json" in sys.argv
        if isinstance(error, RadocraftError):
            sys.exit(fail(error, as_json))
        if is_misuse(error):
            sys.exit(fail_usage(error, as_json))
        raise
