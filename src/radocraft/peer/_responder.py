"""What a peer on the network does with a request: the same as for files, for contracts it agreed to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from radocraft.contract import Contract
from radocraft.errors import AwaitsReview, ContractMismatch, PolicyError
from radocraft.gate import Policy
from radocraft.ledger import Stage, What
from radocraft.model import Model, load_column_model
from radocraft.peer._counts import share_counts
from radocraft.peer._recovery import resume
from radocraft.peer._sharing import scorer_beside, share


@dataclass(frozen=True)
class Responder:
    """Answers requests for one peer's part, or for counts of its share of a model's scores.

    Parameters
    ----------
    peer, policy
        Who answers, by its own rules; they must name a ledger.
    agreed
        The contracts it has agreed to.
    open_table
        Opens the table; called for every request, so that it is read as it is then.
    table
        What the ledger calls the table, if the policy does not say.
    sign
        A private key in PEM to sign parts with.
    scorer
        For contracts of scores: where the peer's scorer is kept; beside the ledger if None.
    secret
        For contracts with a key that is hashed: the file of its secret.
    """

    peer: str
    policy: Policy
    agreed: tuple[Contract, ...]
    open_table: Callable[[], Any]
    table: str
    sign: bytes | None = None
    scorer: Path | None = None
    secret: Path | None = None

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

    def stage(self, kind: What, job: str, output: Path) -> Stage | Literal["nothing"]:
        """How far the answer to a job has come; see `resume`."""
        return resume(output, Path(str(self.policy.ledger)), job, kind)

    def make(self, fingerprint: str, job: str, output: Path, model: Path | None = None) -> None:
        """Write what leaves, or what waits for review: counts of scores where there is a ``model``, else the part."""
        (contract,) = [one for one in self.agreed if one.fingerprint == fingerprint]
        with suppress(AwaitsReview):
            if model is None:
                share(
                    self.open_table(),
                    contract,
                    self.peer,
                    policy=self.policy,
                    output=output,
                    name=self.table,
                    job=job,
                    sign=self.sign,
                    keep_scorer=self._scorer_of(contract),
                    secret=self.secret if contract.of_scores else None,
                )
            else:
                self._share_counts(load_column_model(model), contract, job, output)

    def _scorer_of(self, contract: Contract) -> Path | None:
        """Where the scorer is kept, which outlives the job: what is asked again is scored again by the same."""
        if not contract.of_scores:
            return None
        return self.scorer or scorer_beside(Path(str(self.policy.ledger)), self.peer)

    def _share_counts(self, model: Model, contract: Contract, job: str, output: Path) -> None:
        if model.contract.fingerprint != contract.fingerprint:
            raise ContractMismatch("The model is not of the contract that the request names.")
        share_counts(
            self.open_table(),
            model,
            self.peer,
            policy=self.policy,
            output=output,
            name=self.table,
            job=job,
            secret=self.secret,
        )
