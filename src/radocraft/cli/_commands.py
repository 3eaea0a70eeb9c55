"""All commands. Each is in a module of its own, which is imported when the command is called."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from radocraft.errors import NetworkError

BEGIN, AGREE, PEER, LEARNER, NETWORK, RESEARCH = (
    *("Begin", "Agree", "At a peer", "At the learner", "On a network", "Research"),
)


@dataclass(frozen=True)
class Entry:
    """Where a command is, under which heading it is listed, and what it does in one line.

    ``module`` is in `radocraft.cli`; a command is its function of the command's name, a group its ``app``.
    """

    module: str
    panel: str
    summary: str

    @property
    def there(self) -> bool:
        """Whether what it needs is installed."""
        needed = ("cryptography", "prometheus_client") if self.panel == NETWORK else ()
        return all(find_spec(name) is not None for name in needed)


COMMANDS = {
    "demo": Entry("demo", BEGIN, "Show the main job on small data: two tables with no shared id, one model."),
    "example": Entry("example", BEGIN, "Write example tables of a bank and an insurer, and their contract."),
    "profile": Entry("profile", AGREE, "List a table's columns and their kinds, without showing a row."),
    "contract": Entry("contract", AGREE, "Draft, check and explain the contract between the peers."),
    "policy": Entry("policy", AGREE, "Draft, check and explain a peer's policy: what may leave."),
    "craft": Entry("craft", PEER, "Sum a peer's rows by block, add noise, and write the part that may leave."),
    "score": Entry("score", PEER, "Score a peer's own people with its own model; predict combines the peers' scores."),
    "review": Entry("review", PEER, "Show exactly what would leave, then approve or refuse it."),
    "ledger": Entry("ledger", PEER, "Show what left, when, who approved it, what it cost, and what remains."),
    "inspect": Entry("inspect", PEER, "Show what a part contains, and check it as if an attacker had made it."),
    "audit": Entry("audit", PEER, "Show what an attacker who knows all rows but one can learn from a part at best."),
    "count": Entry(
        "second_round",
        PEER,
        "Count how this peer's share of a model's scores is distributed.",
    ),
    "learn": Entry("learn", LEARNER, "Learn one model from the peers' parts."),
    "explain": Entry("explain", LEARNER, "Show what a model's scores are made of: by feature, by peer, by block."),
    "report": Entry("report", LEARNER, "Write a report for people: one HTML file that opens without a network."),
    "predict": Entry(
        "predict", LEARNER, "Score every row of a table that has the columns or scores of all peers, or of some."
    ),
    "advise": Entry("advise", LEARNER, "Show which shared features help, so that peers can agree on fewer."),
    "recalibrate": Entry(
        "second_round",
        LEARNER,
        "Recalibrate a model's probabilities from every peer's counts of scores.",
    ),
    "collect": Entry("collect", NETWORK, "Ask the peers for their parts, learn, and send them the model."),
    "doctor": Entry(
        "doctor",
        NETWORK,
        "Show what is wrong with an identity or a connection, and how to fix it.",
    ),
    "identity": Entry("identity", NETWORK, "Who you are on the network: certificates and tokens."),
    "peer": Entry("peer", NETWORK, "A peer on the network, which answers requests under its own policy."),
    "study": Entry("study", RESEARCH, "The paper's experiments: run, summarise, plot and compare them."),
}


class Commands(TyperGroup):
    """The commands of `COMMANDS`; one is loaded when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the table."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A line for the list of commands, which loads nothing."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        return TyperCommand(cmd_name, help=entry.summary, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, to be run."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(str(name)), rest


def load(name: str) -> Any:
    """A command or group, with all it imports."""
    entry = COMMANDS[name]
    if not entry.there:
        anything = {"allow_extra_args": True, "ignore_unknown_options": True}
        return TyperCommand(name, callback=_not_there, context_settings=anything)
    module = import_module(f"radocraft.cli._{entry.module}")
    if (app := getattr(module, "app", None)) is None:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        app.command(name)(getattr(module, name))
    command = get_command(app)
    command.name = name
    return command


def _not_there() -> None:
    raise NetworkError("The network needs an extra that is not installed: pip install 'radocraft[net]'.")
