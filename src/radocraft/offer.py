"""From a peer's table to what may leave, and the ledger's word on it: the one road every release takes.

`make_release` crafts and lets the gate decide. `let_go` writes the part, or what
waits for review, in an order that a crash cannot break: first a file nobody
takes for a part, then the ledger's line, then the part's own name. `resume` looks
at what a crash left of the answer to a request and brings it to an end; so a
request is answered once, whatever is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from radocraft.contract import Contract
from radocraft.contributors import find_contributors
from radocraft.craft import craft
from radocraft.errors import ContractMismatch, FileError, PolicyRefusal
from radocraft.labelling import label_rows
from radocraft.parts import Part
from radocraft.policy import Policy, Release, release
from radocraft.privacy.ledger import Entry, Ledger
from radocraft.privacy.noise import release_private
from radocraft.privacy.pending import Pending
from radocraft.privacy.record import record
from radocraft.progress import Progress, quiet
from radocraft.sources import open_source
from radocraft.storage import check_place
from radocraft.tally import Tally

Stage = Literal["nothing", "waiting", "refused", "released"]


def make_release(
    source: Any,
    contract: Contract,
    peer: str,
    policy: Policy,
    *,
    onto: Tally | None = None,
    tally: Path | None = None,
    proportions: Sequence[Part] = (),
    progress: Progress = quiet,
) -> Release:
    """Sum a peer's rows and let the gate decide.

    Parameters
    ----------
    source, contract, peer, onto, progress
        As for `craft`.
    policy
        The peer's rules.
    tally
        Where to keep the exact sums, if they are to be kept.
    proportions
        For a peer without the label: parts of those who hold it, by whose
        proportions it labels its own rows; see `labelling`.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> make_release(tables["bank"], contract, "bank", rc.Policy(min_rows=20)).guarantee
    'every cell holds at least 20 rows'
    """
    source = open_source(source)
    if proportions:
        _check_whole(policy, onto or tally)
        own = label_rows(source, contract, peer, proportions, progress=progress)
        largest = find_contributors(source, contract, peer, own.tally, policy, ranking=own.ranking)
        return release(own.tally, contract, policy, largest, notes=(own.note,))
    if policy.privacy is not None:
        return release_private(source, contract, peer, policy, progress=progress)
    total = craft(source, contract, peer, onto=onto, progress=progress)
    contributors = None if onto is not None else find_contributors(source, contract, peer, total, policy)
    released = release(total, contract, policy, contributors)
    if tally is not None:
        total.save(tally)
    return released


def _check_whole(policy: Policy, kept: Tally | Path | None) -> None:
    """Labels found by proportions depend on all rows of the table at once."""
    if policy.privacy is not None:
        raise PolicyRefusal(
            "Labels found by proportions depend on all rows at once, which differential privacy does not cover. "
            "Craft sums by signature instead (leave the proportions out): `learn` estimates sums by label from them."
        )
    if kept is not None:
        raise ContractMismatch(
            "Labels found by proportions are of the whole table at once, so tallies of them do not add up. "
            "Craft the whole table, without a tally to add to or to keep."
        )


def let_go(
    released: Release, policy: Policy, table: str, output: Path, *, waits: bool = False, job: str | None = None
) -> Part:
    """Write the part to ``output``, or beside it what waits for review, once the ledger knows.

    Parameters
    ----------
    released, policy
        From `make_release`, and the policy it was made under.
    table
        What the ledger calls the table, if the policy does not say.
    output
        Where to write the part.
    waits
        Whether a person has to decide first (`radocraft review`).
    job
        The request it answers, if it came over the network.

    Examples
    --------
    >>> import tempfile
    >>> import radocraft as rc
    >>> folder = Path(tempfile.mkdtemp())
    >>> contract, tables = rc.example_peers(rows=500)
    >>> policy = rc.Policy(ledger=str(folder / "bank.ledger"))
    >>> released = rc.make_release(tables["bank"], contract, "bank", policy)
    >>> part = rc.let_go(released, policy, "customers", folder / "bank.part.parquet")
    >>> [entry["kind"] for entry in Ledger(folder / "bank.ledger").entries()]
    ['release']
    """
    part = Part.seal(released, ledger=policy.ledger)
    write = Pending.of(released, part, policy, table).write if waits else part.write
    kind: Literal["proposal", "release"] = "proposal" if waits else "release"
    bring_out(output, write, lambda: record(released, part, policy, table, kind, job=job), waits=waits)
    return part


def bring_out(output: Path, write: Callable[[Path], None], enter: Callable[[], object], *, waits: bool = False) -> None:
    """Write what leaves, or what waits, in an order that a crash cannot break.

    Parameters
    ----------
    output
        Where it goes; what waits for review is put beside it.
    write
        Writes it to the path it is given.
    enter
        Tells the ledger; if that refuses, nothing is left behind.
    waits
        Whether a person has to decide first.
    """
    check_place(output)
    if waits:
        place = pending_path(output)
    elif output.exists() and not output.is_file():  # a device or a pipe: what is written to it has left
        enter()
        write(output)
        return
    else:
        output = output.resolve()
        place = _prepared_path(output)
    write(place)
    try:
        enter()
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    if not waits:
        os.replace(place, output)


@dataclass(frozen=True)
class Outgoing:
    """A kind of file that leaves: its hash in the ledger, and how it comes out of the file that waited for review."""

    hash_of: Callable[[Path], str]
    unpack: Callable[[Path, Path], None]


PARTS = Outgoing(
    lambda path: str(Part.read(path).metadata["hash"]), lambda pending, output: Pending.read(pending).let_out(output)
)


def resume(output: Path, policy: Policy, job: str, kind: Outgoing = PARTS) -> Stage:
    """How far the answer to a request has come; what was cut short after the ledger knew is brought to its end.

    Files of an attempt that the ledger never heard of are removed: nobody has seen them.
    """
    output = output.resolve()
    prepared, pending = _prepared_path(output), pending_path(output)
    lines = Ledger(Path(str(policy.ledger))).entries()
    own = [line for line in lines if line.get("job") == job]
    if not own:
        for path in (prepared, pending):
            path.unlink(missing_ok=True)
        return "nothing"
    if own[0]["kind"].endswith("proposal"):
        verdict = _verdict(lines, own[0])
        if verdict is None:
            return "waiting"
        if verdict.endswith("refusal"):
            return "refused"
        if pending.exists() and not output.exists():
            kind.unpack(pending, output)
    elif prepared.exists() and not output.exists():
        os.replace(prepared, output)
    if not output.exists() or kind.hash_of(output) != own[0]["part"]:
        raise FileError(
            f"The ledger says that job {job[:12]} was answered, but '{output}' is not what left. "
            "Put the file back from a copy; it is not made twice."
        )
    return "released"


def pending_path(output: Path) -> Path:
    """Where a part that waits for review is put."""
    return output.with_name(output.name + ".pending")


def _prepared_path(output: Path) -> Path:
    return output.with_name(output.name + ".prepared")


def _verdict(lines: list[Entry], proposal: Entry) -> str | None:
    of_it = [line for line in lines if line.get("part") == proposal["part"] and line["kind"] != proposal["kind"]]
    decided = [line["kind"] for line in of_it if line.get("proposal") == proposal.get("proposal")]
    return str(decided[0]) if decided else None
