"""What every command shares: where it prints, how it shows progress, and what it says when it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from radocraft.craft import Progress as Report
from radocraft.errors import RadocraftError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
ContractFile = Annotated[Path, typer.Option("--contract", "-c", help="The contract, a TOML file.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the result.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def fail(error: RadocraftError, as_json: bool) -> int:
    """Say what went wrong on standard error; the exit code comes back."""
    if as_json:
        sys.stderr.write(json.dumps({"error": type(error).__name__, "message": str(error)}) + "\n")
    else:
        err.print(f"[bold red]error[/] {type(error).__name__}:", end=" ")
        err.print(str(error), markup=False, soft_wrap=True)
    return error.exit_code


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


class SpeedColumn(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        """Nothing while the speed is not known."""
        return Text(f"{task.speed:,.0f} rows/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def progress(title: str, hidden: bool) -> Iterator[Report]:
    """A progress bar on standard error, gone when the work is done."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        SpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=hidden or not err.is_terminal) as bar:
        task = bar.add_task(title, total=None)

        def report(doing: str, done: int, total: int) -> None:
            bar.update(task, description=f"{title}: {doing}", completed=done, total=total or None)

        yield report
