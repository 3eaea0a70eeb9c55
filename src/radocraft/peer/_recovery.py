"""Recovery after a crash: every request is answered exactly once, whatever is killed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from radocraft.errors import FileError, RadocraftError
from radocraft.ledger import History, Leaving, Ledger, Stage
from radocraft.ledger import What as Kind
from radocraft.peer._file_kinds import kind_of
from radocraft.peer._pending import Pending, pending_path
from radocraft.peer._road import copy_out, put_back


def resume(output: Path, ledger: Path, job: str, what: Kind = "part") -> Stage | Literal["nothing"]:
    """How far the answer to a request has come; what was cut short after the ledger knew is brought to its end.

    Parameters
    ----------
    output
        Where the answer goes.
    ledger
        The ledger that knows.
    job
        The request.
    what
        What kind of file answers it.
    """
    output, book = output.resolve(), Ledger(ledger)
    history = book.history()
    entry = history.of_job(job) or _given_again(output, history, what)
    if entry is None:
        return "nothing"
    stage = history.stage_of(entry)
    if stage == "waiting" and not pending_path(output).exists():
        put_back(entry, book, output)
    if stage == "released":
        _bring_to_end(output, book, entry)
    return stage


def _given_again(output: Path, history: History, what: Kind) -> Leaving | None:
    """The line of an answer that was given, or waits, for another request before."""
    if output.exists():
        with suppress(RadocraftError):
            file_kind = kind_of(what)
            return history.of_file(file_kind.describe(file_kind.load(output)).hash)
    if pending_path(output).exists():
        with suppress(RadocraftError):
            return Pending.read(pending_path(output)).line
    return None


def _bring_to_end(output: Path, ledger: Ledger, entry: Leaving) -> None:
    if not output.exists() and ledger.copy_of(entry.what, entry.file).exists():
        copy_out(entry, ledger, output)
    elif not output.exists() and pending_path(output).exists():
        Pending.read(pending_path(output)).let_out(output)
    with suppress(RadocraftError, OSError):
        kind_of(entry.what).load_as(output, entry.file)
        return
    raise FileError(
        f"The ledger says that this request was answered, but '{output}' is not what left. "
        "Put the file back from a copy; it is not made twice."
    )
