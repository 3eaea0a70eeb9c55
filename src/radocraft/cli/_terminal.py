"""What every command shares: where it prints, how it shows progress, and what it says when it fails."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeGuard

import typer
from rich.console import Console, ConsoleOptions, RenderableType
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
from rich.segment import Segment
from rich.text import Text

from radocraft.errors import AwaitsReview, RadocraftError
from radocraft.files import plain, plain_json
from radocraft.progress import Progress as Report

if TYPE_CHECKING:  # what commands need they import when they are called; this is for all of them
    from radocraft.contract import Mistake


class PlainConsole(Console):
    """Prints no text from a file, contract or part that would steer the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is to be printed; codes for colours and movements are Rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


out = PlainConsole(highlight=False, markup=False)
err = PlainConsole(stderr=True, highlight=False, markup=False)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
ContractFile = Annotated[Path, typer.Option("--contract", "-c", help="The contract, a TOML file.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(plain_json(json.dumps(value, indent=1, ensure_ascii=False)) + "\n")


def print_mistakes(mistakes: list[Mistake], as_json: bool) -> None:
    """Every mistake of a file with its place and its remedy; nothing if there is none, as JSON that there is none."""
    if as_json:
        print_json({"ok": not mistakes, "mistakes": [vars(mistake) for mistake in mistakes]})
        return
    for mistake in mistakes:
        words = mistake.problem + (f" ({mistake.remedy})" if mistake.remedy else "")
        out.print(Text.assemble((mistake.place, "bold"), f": {words}"))


def fail(error: RadocraftError, as_json: bool) -> int:
    """Say what went wrong on standard error; the exit code comes back. Where a person has to decide, nothing did."""
    if isinstance(error, AwaitsReview):
        if as_json:
            print_json({"pending": str(error.pending), "message": str(error)})
        else:
            out.print(str(error))
    else:
        _print_error(type(error).__name__, str(error), as_json)
    return error.exit_code


class Misuse(Protocol):
    """What Typer raises where a command was typed wrongly."""

    exit_code: int

    def format_message(self) -> str:
        """What is wrong with it."""


def is_misuse(error: Exception) -> TypeGuard[Misuse]:
    """Whether it is that; Typer has no public name for it."""
    return hasattr(error, "format_message")


def fail_usage(error: Misuse, as_json: bool) -> int:
    """Say on standard error how a command is used; the exit code comes back."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if message:  # else it was typed alone, and its help was shown
        if context is not None and not as_json:
            err.print(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.")
        _print_error("UsageError", message, as_json)
    return error.exit_code


def _print_error(kind: str, message: str, as_json: bool) -> None:
    if as_json:
        sys.stderr.write(json.dumps({"error": kind, "message": message}) + "\n")
    else:
        err.print(Text.assemble(("error", "bold red"), f" {kind}: {message}"), soft_wrap=not err.is_terminal)


class Interruption:
    """The user's Ctrl-C, remembered: a library that is importing another swallows the exception."""

    happened = False

    def heed(self) -> None:
        """From now on remember it."""
        self.happened = False
        signal.signal(signal.SIGINT, self._interrupt)

    def check(self) -> None:
        """Stop now if it was swallowed before."""
        if self.happened:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: object) -> None:
        self.happened = True
        raise KeyboardInterrupt


interruption = Interruption()


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
            interruption.check()
            bar.update(task, description=f"{title}: {doing}", completed=done, total=total or None)

        yield report
