"""radocraft review."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from radocraft.cli._inspect import besides, print_part
from radocraft.cli._outputs import Force, check_outputs
from radocraft.cli._terminal import Json, err, out, print_json
from radocraft.ledger import Verdict
from radocraft.pages import ReviewServer
from radocraft.parts import Histograms, Part
from radocraft.peer import Conclusion, Pending, conclude


def review(
    pending: Annotated[Path, typer.Argument(help="The pending file that `radocraft craft` or `count` wrote.")],
    approve: Annotated[bool, typer.Option("--approve", help="Let it leave.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Refuse it for good.")] = False,
    name: Annotated[str | None, typer.Option(help="Who decides; by default your user name.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded in the ledger.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the approved part.")] = None,
    web: Annotated[bool, typer.Option("--web", help="Review on a local page in a browser.")] = False,
    cells: Annotated[int, typer.Option(min=0, help="How many cells, or blocks of counts, to print; 0 for all.")] = 20,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show exactly what would leave, then approve or refuse it.

    Example: radocraft review bank.part.parquet.pending --approve --name "A. Muster" --reason "agreed on 3 May"
    """
    if approve and refuse:
        raise typer.BadParameter("Give --approve or --refuse, not both.")
    if (approve or refuse) and not (reason or web):
        raise typer.BadParameter("A decision needs a --reason; it is recorded in the ledger.")
    check_outputs([output], [pending], force=True)  # what is there may be the same release
    waiting = Pending.read(pending)
    if web:
        if not isinstance(waiting.content, Part):
            raise typer.BadParameter("Counts of scores are reviewed in the terminal; leave out --web.")
        if approve or refuse or reason:
            raise typer.BadParameter(
                "With --web the decision is made on the page; leave out --approve, --refuse and --reason."
            )
        _on_the_web(pending, output, force, as_json)
        return
    if as_json and not (approve or refuse):
        print_json(_everything(waiting))
        return
    if not as_json:
        _print_waiting(waiting, cells)
    if not (approve or refuse):
        out.print(
            f"Decide with --approve or --refuse:\n  radocraft review {pending} --approve --name NAME --reason WHY"
        )
        return
    verdict: Verdict = "approval" if approve else "refusal"
    conclusion = conclude(pending, verdict, name or getpass.getuser(), reason or "", output, replace=force)
    _print_conclusion(conclusion, as_json)


def _on_the_web(pending: Path, output: Path | None, force: bool, as_json: bool) -> None:
    with ReviewServer(pending, output, replace=force) as server:
        err.print("Open this address in a browser on this machine; it works once:")
        err.print(server.address, soft_wrap=True)
        err.print("Waiting for a decision. Ctrl-C stops without a decision.")
        if (conclusion := server.wait()) is not None:
            _print_conclusion(conclusion, as_json)


def _print_conclusion(conclusion: Conclusion, as_json: bool) -> None:
    if as_json:
        print_json(conclusion.as_dict())
    else:
        out.print(f"Approved: wrote {conclusion.part}." if conclusion.part else "Refused: nothing left.")


def _everything(waiting: Pending) -> dict[str, Any]:
    hidden = {"salt", "mark", "constants"}
    proposal = {
        **waiting.line.model_dump(mode="json", exclude=hidden),
        "ledger": waiting.note.ledger,
        "head": waiting.head,
    }
    if waiting.before is not None and waiting.after is not None:
        proposal["budget"] = {
            "before": waiting.before.spent,
            "after": waiting.after.spent,
            "remains": waiting.after.remains,
        }
    if isinstance(waiting.content, Histograms):
        return {**proposal, "scores": waiting.content.model_dump(mode="json")}
    return {**proposal, "metadata": waiting.content.metadata, "table": waiting.content.table.to_pylist()}


def _print_waiting(waiting: Pending, cells: int) -> None:
    grid = Table.grid(padding=(0, 2))
    for key, value in _facts(waiting).items():
        grid.add_row(key, value)
    out.print(grid)
    out.print()
    if isinstance(waiting.content, Histograms):
        _print_scores(waiting.content)
    else:
        print_part(waiting.content, cells or waiting.content.table.num_rows)


def _facts(waiting: Pending) -> dict[str, str]:
    """What a reviewer has to know."""
    line, content = waiting.line, waiting.content
    facts = {
        "would leave": f"{waiting.summary}, of '{line.table}'",
        "contract": f"{line.contract} ({line.fingerprint[:16]})",
        "guarantee": line.policy,
        **waiting.noise,
        "last release": waiting.since,
    }
    if isinstance(content, Part):
        rolled = content.metadata["policy"]["rolled_up"]
        facts["rolled up"] = f"{rolled:,} blocks are only shown inside coarser cells"
        facts["beside the cells"] = f"{besides(content)}; centre and scale of each column"
        if content.metadata["notes"]:
            facts["notes"] = "; ".join(content.metadata["notes"])
    if waiting.before is not None and waiting.after is not None:
        facts["spent before"] = waiting.before.spent
        facts["spent after"] = waiting.after.spent
        facts["remains"] = waiting.after.remains
    facts["ledger"] = f"{waiting.note.ledger}, head {waiting.head[:16]}"
    return facts


def _print_scores(counts: Histograms) -> None:
    grid = Table("label", "rows in each bin, from the lowest score to the highest")
    grid.add_row("negative", " ".join(map(str, counts.negative)))
    grid.add_row("positive", " ".join(map(str, counts.positive)))
    out.print(grid)
