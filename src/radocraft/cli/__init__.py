"""The command line: one file per command, each a thin shell over a public function of the library."""

from __future__ import annotations

import sys

import typer

from radocraft.cli import bench, contract, policy, study
from radocraft.cli.advise import advise
from radocraft.cli.craft import craft
from radocraft.cli.demo import demo
from radocraft.cli.example import example
from radocraft.cli.explain import explain
from radocraft.cli.inspect import inspect
from radocraft.cli.learn import learn
from radocraft.cli.predict import predict
from radocraft.cli.profile import profile
from radocraft.cli.review import review
from radocraft.cli.terminal import fail, out
from radocraft.errors import RadocraftError
from radocraft.version import __version__

app = typer.Typer(
    name="radocraft",
    help="One model across organisations' tables, with no shared id and no row leaving the building.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for command in (demo, example, profile, craft, review, inspect, learn, predict, explain, advise):
    app.command()(command)
app.add_typer(contract.app, name="contract")
app.add_typer(policy.app, name="policy")
app.add_typer(study.app, name="study")
app.add_typer(bench.app, name="bench")


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
    """Run a command; errors raised on purpose become a message and an exit code."""
    try:
        app()
    except RadocraftError as error:
        sys.exit(fail(error, as_json="--json" in sys.argv))
    except KeyboardInterrupt:
        sys.exit(130)
