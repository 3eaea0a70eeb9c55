"""The command line: one file per command, each a thin shell over a public function of the library."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from radocraft.cli import bench, contract, policy, study
from radocraft.cli.advise import advise
from radocraft.cli.craft import craft
from radocraft.cli.demo import demo
from radocraft.cli.example import example
from radocraft.cli.explain import explain
from radocraft.cli.inspect import inspect
from radocraft.cli.learn import learn
from radocraft.cli.ledger import ledger
from radocraft.cli.network import add_network
from radocraft.cli.predict import predict
from radocraft.cli.profile import profile
from radocraft.cli.report import report
from radocraft.cli.review import review
from radocraft.cli.second_round import count, recalibrate
from radocraft.cli.terminal import fail, fail_usage, interruption, is_misuse, out
from radocraft.errors import RadocraftError
from radocraft.files import __version__

app = typer.Typer(
    name="radocraft",
    help="One model across organisations' tables, with no shared id and no row leaving the building.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Begin": (demo, example),
    "Agree": (profile,),
    "At a peer": (craft, review, ledger, inspect, count),
    "At the learner": (learn, explain, report, predict, advise, recalibrate),
}
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(contract.app, name="contract", rich_help_panel="Agree")
app.add_typer(policy.app, name="policy", rich_help_panel="Agree")
add_network(app, panel="On a network")
app.add_typer(study.app, name="study", rich_help_panel="Research")
app.add_typer(bench.app, name="bench", rich_help_panel="Research")


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
