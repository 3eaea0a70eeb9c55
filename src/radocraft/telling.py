"""What leaves in the second round, and how: counts of scores, the ledger's word on them and, if asked for, a person's.

`let_scores_go` is to counts what `let_go` of `offer` is to a part, in the same
order, so that no crash breaks it. Lines of the ledger: ``scores`` (they left; with
name and reason where a person let them), ``scores proposal`` (they wait for
review) and ``scores refusal``.

Counts of the same rows under two models could be subtracted from each other, so
the ledger lets one leave of a table, and no second. And a model may name any
blocks, finer ones than ever left: where there is a ledger, each block must hold
just the rows of whole cells of the part that left, so that what is new is how
scores are spread, and no few rows show by subtraction.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from radocraft.cells import locate
from radocraft.errors import ContractMismatch, FileError, PolicyRefusal
from radocraft.model.record import Record
from radocraft.offer import Outgoing, bring_out
from radocraft.policy import Policy
from radocraft.privacy.differencing import cells_of
from radocraft.privacy.ledger import Entry, Ledger
from radocraft.privacy.record import left_before
from radocraft.storage import read_json, write_json, writing


class _Filed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1

    def encode(self) -> bytes:
        """What its file holds."""
        return self.model_dump_json(indent=1).encode()


class Told(_Filed):
    """How one peer's share of the score is spread, block by block: the only thing that leaves in the second round.

    ``starts`` says where each bin of a block begins on the model's grid, ``rows``
    how many rows are in it. Blocks with too few rows are not there.
    """

    model: str
    peer: str
    guarantee: str
    blocks: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]

    @property
    def hash(self) -> str:
        """SHA-256 of its file."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def total(self) -> int:
        """How many rows are counted."""
        return sum(map(sum, self.rows))

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, whole or not at all."""
        write_json(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read it back."""
        return read_json(cls, path, "file of score counts", "Ask the peer to run `radocraft scores` again.")

    def check(self, peer: str, model: Record) -> None:
        """Refuse another peer's counts, or those of another model's scores."""
        if self.peer != peer:
            raise ContractMismatch(f"These are counts of '{self.peer}', not of '{peer}'. Ask '{peer}' for its own.")
        if self.model != identity(model):
            raise ContractMismatch(f"The counts of '{peer}' are of another model. Ask for them again with this one.")


class WaitingScores(_Filed):
    """Counts of scores that wait for a person: still at the peer, and not yet allowed to leave."""

    ledger: str
    limit: int
    line: dict[str, Any]
    told: Told

    def write(self, path: str | Path) -> None:
        """Write it to a file that its owner alone can read."""
        with writing(path, private=True) as file:
            file.write(self.encode())

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read it back; counts that were changed are refused."""
        try:
            waiting = cls.model_validate_json(Path(path).read_bytes())
        except (OSError, ValidationError) as error:
            raise FileError(f"'{path}' is not a pending release. Count anew, or check the path.") from error
        if waiting.line.get("part") != waiting.told.hash:
            raise FileError(f"The counts in '{path}' were changed since they were proposed. Count anew.")
        return waiting

    def let_out(self, output: Path) -> None:
        """Write what was approved."""
        self.told.save(output)

    def decide(self, verdict: Literal["approval", "refusal"], name: str, reason: str) -> Entry:
        """Record a person's decision; after an approval the counts may leave."""
        decision = {
            **self.line,
            "kind": "scores" if verdict == "approval" else "scores refusal",
            "name": name,
            "reason": reason,
        }
        decision.pop("job", None)

        def check(earlier: list[Entry]) -> None:
            own = [line for line in earlier if line.get("proposal") == self.line["proposal"]]
            if not own:
                raise PolicyRefusal("These counts were never proposed to the ledger they name. Count anew.")
            if len(own) > 1:
                raise PolicyRefusal(
                    f"These counts were decided on already ({own[1]['kind']} by {own[1].get('name')}). "
                    "Count anew for another decision."
                )
            if verdict == "approval":
                _check_ledger(decision, earlier)

        return Ledger(Path(self.ledger)).append(decision, check=check)


def let_scores_go(
    told: Told,
    model: Record,
    policy: Policy,
    table: str,
    output: Path,
    *,
    waits: bool = False,
    job: str | None = None,
) -> None:
    """Write counts of scores to ``output``, or beside it what waits for review, once the ledger knows.

    Parameters
    ----------
    told, model, policy
        From `tell_scores`, and what it was given.
    table
        What the ledger calls the table, if the policy does not say.
    output
        Where to write the counts.
    waits
        Whether a person has to decide first (`radocraft review`).
    job
        The request they answer, if it came over the network.

    Examples
    --------
    >>> import tempfile
    >>> import radocraft as rc
    >>> folder = Path(tempfile.mkdtemp())
    >>> contract, tables = rc.example_peers(rows=500)
    >>> policies = {peer: rc.Policy(ledger=str(folder / f"{peer}.ledger")) for peer in tables}
    >>> made = {peer: rc.make_release(tables[peer], contract, peer, policies[peer]) for peer in tables}
    >>> parts = [rc.let_go(made[peer], policies[peer], peer, folder / f"{peer}.part.parquet") for peer in tables]
    >>> model = rc.learn(parts, contract)
    >>> told = rc.tell_scores(tables["bank"], model, "bank", policies["bank"])
    >>> let_scores_go(told, model, policies["bank"], "bank", folder / "bank.scores.json")
    >>> [entry["kind"] for entry in Ledger(folder / "bank.ledger").entries()]
    ['release', 'scores']
    """
    line = _line(told, model, policy.table or table, "scores proposal" if waits else "scores", job)
    if policy.ledger is not None:
        line["beside"] = _check_blocks(told, model, _last_release(Ledger(Path(policy.ledger)).entries(), line))

    def check(earlier: list[Entry]) -> None:
        if job is not None and any(one.get("job") == job for one in earlier):
            raise PolicyRefusal("This request was answered already, and no request is answered twice. Make another.")
        _check_ledger(line, earlier)

    def enter() -> None:
        if policy.ledger is not None:
            Ledger(Path(policy.ledger)).append(line, check=check)

    write = told.save
    if waits:
        where = str(Path(str(policy.ledger)).resolve())
        write = WaitingScores(ledger=where, limit=policy.limit, line=line, told=told).write
    bring_out(output, write, enter, waits=waits)


SCORES = Outgoing(
    lambda path: Told.load(path).hash, lambda pending, output: WaitingScores.read(pending).let_out(output)
)


def identity(model: Record) -> str:
    """A hash of what makes the scores: contract, weights, constants and blocks."""
    body = model.model_dump_json(include={"contract", "intercept", "coefficients", "constants", "blocks"})
    return hashlib.sha256(body.encode()).hexdigest()


def _line(told: Told, model: Record, table: str, kind: str, job: str | None) -> Entry:
    return {
        "kind": kind,
        "table": table,
        "peer": told.peer,
        "contract": model.contract.name,
        "fingerprint": model.contract.fingerprint,
        "rows": told.total,
        "guarantee": told.guarantee,
        "model": told.model,
        "part": told.hash,
        **({"proposal": secrets.token_hex(16)} if kind == "scores proposal" else {}),
        **({} if job is None else {"job": job}),
    }


def _last_release(earlier: list[Entry], line: Entry) -> Entry:
    """The part that left last of a table under a contract."""
    left = left_before(earlier, line["table"])
    under = [release for release in left if release["fingerprint"] == line["fingerprint"]]
    if not under:
        raise PolicyRefusal(
            f"No part of '{line['table']}' has left under '{line['contract']}' by this ledger, so no model has learned "
            "from it. Use the policy and the ledger that the part was made with."
        )
    return under[-1]


def _check_blocks(told: Told, model: Record, release: Entry) -> str:
    """Refuse counts of blocks that are not made of whole cells of a release; gives the part's hash."""
    if release["trace"] is None:
        raise PolicyRefusal(
            "The part left with differential privacy, and exact counts beside it would take its protection away. Do "
            "without the second round."
        )
    codes, labels, rows = cells_of(release["trace"])
    block = locate(model.block_codes, np.array(model.blocks.labels), codes, labels)
    known = np.bincount(block[block >= 0], rows[block >= 0], minlength=len(model.blocks.labels)).astype(np.int64)
    counted = np.zeros_like(known)
    counted[list(told.blocks)] = [sum(bins) for bins in told.rows]
    if (known != counted).any():
        raise PolicyRefusal(
            "The model's blocks do not hold the rows of whole cells of the part that left: the table has changed "
            "since, or the model was not learned from that part. Counts beside the part could single rows out; "
            "release the table anew and have a model learned from that."
        )
    return str(release["part"])


def _check_ledger(line: Entry, earlier: list[Entry]) -> None:
    """Refuse a table's second counts, those of another part than the last that left, or beside a private release."""
    same = [one for one in earlier if one.get("table") == line["table"]]
    if any(one.get("mode") == "differential-privacy" for one in same if one["kind"] in ("release", "proposal")):
        raise PolicyRefusal(
            f"A differentially private release of '{line['table']}' has left or waits, and exact counts would take its "
            "protection away. Do without the second round for this table."
        )
    if any(one["kind"] == "scores" for one in same):
        raise PolicyRefusal(
            f"Counts of scores of '{line['table']}' have left before. Those of another model beside them could single "
            "rows out by subtraction, so there is no second time for this table."
        )
    if _last_release(earlier, line)["part"] != line["beside"]:
        raise PolicyRefusal("Another part of the table has left since these scores were counted. Count anew.")
