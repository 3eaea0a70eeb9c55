"""What a peer on the network does with a request: the same road as by file, for contracts it allows.

A part is made as by ``radocraft craft``, counts of a model's scores as by
``radocraft scores``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radocraft.contract import Contract
from radocraft.errors import ContractMismatch, PolicyError
from radocraft.model import Model
from radocraft.offer import PARTS, Stage, let_go, make_release, resume
from radocraft.policy import Policy
from radocraft.second_round import tell_scores
from radocraft.telling import SCORES, let_scores_go


@dataclass(frozen=True)
class Answering:
    """Answers requests for one peer's part, or for counts of its share of a model's scores.

    Parameters
    ----------
    peer, policy
        Who answers, by its own rules; they must keep a ledger.
    agreed
        The contracts it has agreed to.
    open_table
        Opens the table; called for every request, so that it is read as it is then.
    table
        What the ledger calls the table, if the policy does not say.
    """

    peer: str
    policy: Policy
    agreed: tuple[Contract, ...]
    open_table: Callable[[], Any]
    table: str

    def __post_init__(self) -> None:
        if self.policy.ledger is None:
            raise PolicyError(
                'A peer on the network keeps a ledger, and its policy names none. Add ledger = "FILE" to the policy.'
            )
        for contract in self.agreed:
            contract.peer(self.peer)

    @property
    def contracts(self) -> tuple[str, ...]:
        """Fingerprints of the contracts that were agreed to and that the policy allows."""
        allowed = self.policy.contracts
        return tuple(c.fingerprint for c in self.agreed if allowed is None or c.fingerprint in allowed)

    def stage(self, kind: str, job: str, output: Path) -> Stage:
        """How far the answer to a job has come; see `resume`."""
        return resume(output, self.policy, job, SCORES if kind == "scores" else PARTS)

    def make(self, fingerprint: str, job: str, output: Path, model: Path | None = None) -> None:
        """Let the gate decide, tell the ledger, and write what leaves or what waits for review.

        That is counts of scores where there is a ``model``, and else the part.
        """
        (contract,) = [one for one in self.agreed if one.fingerprint == fingerprint]
        if model is not None:
            return self._tell(Model.load(model), contract, job, output)
        released = make_release(self.open_table(), contract, self.peer, self.policy)
        let_go(released, self.policy, self.table, output, waits=self.policy.review, job=job)

    def _tell(self, model: Model, contract: Contract, job: str, output: Path) -> None:
        if model.contract.fingerprint != contract.fingerprint:
            raise ContractMismatch("The model is not of the contract that the request names.")
        told = tell_scores(self.open_table(), model, self.peer, self.policy)
        let_scores_go(told, model, self.policy, self.table, output, waits=self.policy.review, job=job)
