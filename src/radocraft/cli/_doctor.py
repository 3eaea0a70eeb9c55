"""radocraft doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from radocraft.cli._peer import IdentityFolder, split
from radocraft.cli._terminal import Json, out, print_json
from radocraft.net import examine

_STYLES = {"good": "green", "warning": "yellow", "bad": "bold red"}


def doctor(
    identity: IdentityFolder,
    to: Annotated[str | None, typer.Option(metavar="NAME=HOST:PORT", help="A peer or a mailbox to call.")] = None,
    contract: Annotated[Path | None, typer.Option("--contract", "-c", help="Does the other end know it?")] = None,
    as_json: Json = False,
) -> None:
    """Show what is wrong with an identity or a connection, and how to fix it.

    Example: radocraft doctor -i collector --to bank=bank.example:8815 -c contract.toml
    """
    findings = list(examine(identity, split(to) if to else None, contract))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            out.print(f"{finding.verdict:<8}", style=_STYLES[finding.verdict], end=f" {finding.check}: ")
            out.print(finding.message, soft_wrap=True)
    if any(finding.verdict == "bad" for finding in findings):
        raise typer.Exit(1)
