"""From a tally to a release: count, roll up, add noise, account.

1. All rows are counted, with noise; other noise is measured by that (`levels`).
2. Every agreed signature is counted, with noise (`signatures`).
3. By these counts small blocks are rolled up (`rolling`).
4. Counts and sums of the cells that remain, and second moments by label, get noise.

What follows from these, such as the sums of codes that a rolled-up cell hides, is
arithmetic on noisy numbers. Nothing exact leaves, in no note and no count. In mode
"exact" there is no noise, and blocks are rolled up by exact counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows, one_thread
from radocraft.contract import Contract, Number, units_of
from radocraft.errors import ContractMismatch, OneClass, PolicyRefusal, RadocraftError
from radocraft.gate._account import Spend, epsilon_of, rho_of
from radocraft.gate._levels import TOTAL, Terms
from radocraft.gate._noise import Noise
from radocraft.gate._policy import Policy
from radocraft.gate._remarks import check_number, constant_features, remarks, unseen
from radocraft.gate._rolling import coarsened, rolled_up
from radocraft.gate._shared_sums import with_shared
from radocraft.gate._signatures import Counted, Signatures, check_labels, count_agreed, count_labels, count_open, fitted
from radocraft.gate._words import describe_epsilon
from radocraft.sums import (
    GRID,
    ROLLED,
    Bounds,
    Cells,
    Levels,
    ScoreCells,
    Tally,
)
from radocraft.sums import standardise as in_model_units

_CLEAR = 1.0
_FINE = 2048.0
_OPEN_SHARE = 0.1


Numbers = TypeVar("Numbers", Cells, ScoreCells)


@dataclass(frozen=True)
class Release(Generic[Numbers]):
    """Numbers that passed the gate; only `release` makes one.

    Parameters
    ----------
    contract, policy
        What was agreed, and the rules it passed by.
    cells
        Sums by cell and moments by label, or what leaves of scores, with noise.
    spend
        What it costs.
    rolled_up
        How many agreed blocks leave only inside coarser cells, told by noisy counts.
    notes
        What whoever learns from it should know.
    """

    contract: Contract
    policy: Policy
    cells: Numbers
    spend: Spend
    rolled_up: int
    notes: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """What its noise amounts to, at the policy's delta."""
        return epsilon_of(self.spend.rho, self.policy.delta - self.spend.delta)

    @property
    def guarantee(self) -> str:
        """What it promises, in one sentence without its full stop."""
        if not self.policy.noisy:
            return self.policy.guarantee
        if self.policy.epsilon is not None:
            return describe_epsilon(self.policy.epsilon, self.policy.delta, self.policy)
        return f"{self.policy.guarantee}, that is {describe_epsilon(self.epsilon, self.policy.delta, self.policy)}"


@one_thread
def release(
    tally: Tally,
    contract: Contract,
    policy: Policy | None = None,
    noise: Noise | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> Release[Cells]:
    """Let a tally through the gate.

    Parameters
    ----------
    tally, contract
        The peer's sums, and what they were crafted under.
    policy
        The peer's rules; those of `Policy()` if None.
    noise
        Where noise comes from; the operating system's randomness if None.
    notes
        What else a reader of the part should know.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=5000)
    >>> released = release(rc.craft(tables["bank"], contract, "bank"), contract)
    >>> released.cells.levels.sums >= 1.0, 0 < released.spend.rho < 1
    (True, True)
    """
    Contract.expect(contract, "release(tally, contract, policy)")
    policy = policy or Policy()
    check_scope(tally, contract, policy)
    if not policy.noisy:
        return _exact(tally, contract, policy, notes)
    made = _Gate.of(tally, contract, policy, noise or Noise()).run()
    return replace(made, notes=(*notes, *made.notes))


def check_scope(tally: Tally, contract: Contract, policy: Policy) -> None:
    """The tally must be of this contract and bounded as the policy says, and the policy must allow what is in it."""
    if tally.fingerprint != contract.fingerprint:
        raise ContractMismatch("The tally was crafted under another contract; craft it anew under this one.")
    if tally.bounds != policy.bounds:
        raise ContractMismatch(
            "Rows of this tally are not bounded as the policy says. Craft the table anew under this policy."
        )
    check_allowed(contract, tally.peer, policy)


def check_allowed(contract: Contract, peer: str, policy: Policy) -> None:
    """The policy must allow the contract and all that the peer would sum under it."""
    if policy.contracts is not None and contract.fingerprint not in policy.contracts:
        raise PolicyRefusal(
            f"The policy does not allow the contract '{contract.name}'. "
            f'Add its fingerprint "{contract.fingerprint}" to `contracts` if your data officer agrees.'
        )
    held = contract.peer(peer).features
    if policy.features is not None and (more := [name for name in held if name not in policy.features]):
        raise PolicyRefusal(
            f"The policy does not allow the feature '{more[0]}'. Take it out of the contract, or add it to `features`."
        )


def _exact(tally: Tally, contract: Contract, policy: Policy, notes: tuple[str, ...]) -> Release[Cells]:
    """Exact sums, of cells of at least ``min_rows`` rows."""
    cells = in_model_units(tally, contract)
    if not isinstance(contract.label, Number) and contract.labelled(tally.peer) and len({*cells.labels.tolist()}) < 2:
        raise OneClass(
            f"Only one value of the label '{contract.label.column}' occurs at '{tally.peer}'. "
            "A model needs two at least; check [label] in the contract, or give more rows."
        )
    if isinstance(contract.label, Number) and contract.label.column in constant_features(cells, contract):
        raise OneClass(f"The label '{contract.label.column}' is the same in all rows at '{tally.peer}'.")
    least = np.full(len(cells.rows) + 1, float(policy.min_rows))
    codes = rolled(cells.codes, cells.labels, cells.rows.astype(np.float64), least, policy)
    moved = int((codes == ROLLED).any(axis=1).sum())
    dull = [f"'{name}' is the same in all rows: it carries nothing" for name in constant_features(cells, contract)]
    return Release(contract, policy, cells.grouped(codes), Spend(0.0), moved, (*notes, *dull, *unseen(cells, contract)))


def rolled(codes: Ints, labels: Ints, counts: Floats, least: Floats, policy: Policy) -> Ints:
    """New codes of every block; none at all where nothing may leave by signature."""
    if policy.signatures == "labels-only":
        return np.full_like(codes, ROLLED)
    return (coarsened if policy.noisy else rolled_up)(codes, labels, counts, least)


@dataclass(frozen=True)
class _Gate:
    """One release with noise, step by step."""

    tally: Tally
    contract: Contract
    policy: Policy
    noise: Noise
    signatures: Signatures
    terms: Terms
    spend: Spend

    @classmethod
    def of(cls, tally: Tally, contract: Contract, policy: Policy, noise: Noise) -> _Gate:
        """Count all rows, and find what noise is measured by."""
        signatures, per_unit = Signatures.agreed(tally, contract), policy.rows_per_person
        terms = Terms(
            rows=max(tally.total + float(noise.draw(1, TOTAL * per_unit)[0]), 1.0),
            signatures=len(signatures),
            labels=len(tally.moments),
            norm=Bounds(policy.bound, policy.row_bound).norm(contract, tally.peer),
            bound=policy.bound,
            width=len(tally.columns),
            per_unit=per_unit,
            open_set=signatures.open_set,
        )
        return cls(tally, contract, policy, noise, signatures, terms, Spend(tally.units_rho) + terms.total)

    def run(self) -> Release[Cells]:
        """All steps."""
        sd, sd_labels = self.terms.sd_counts(self.dial_of_counts), self.terms.sd_labels(self.dial_of_counts)
        by_label = count_labels(self.tally, self.contract, sd_labels, self.noise)
        with refusals_cost(self.spend + self.terms.counts(self.dial_of_counts)):
            check_labels(by_label, self.contract, self.tally.peer, max(self.policy.min_rows, 4.0 * sd_labels))
        counted, spend = self.count()
        counted = fitted(counted, by_label, sd, sd_labels)
        least = self.least(sd, len(counted.labels))
        codes = rolled(counted.codes, counted.labels, counted.counts, least, self.policy)
        group = number_rows(np.column_stack([codes, counted.labels]))
        first = first_of_each(group)
        f = self.dial(spend, len(first))
        levels = Levels(
            rows=self.terms.sd_sums(f, len(first)) / self.terms.weight(f, len(first)),
            sums=self.terms.sd_sums(f, len(first)),
            moments=self.terms.sd_moments(f),
        )
        rows = self.rows_of(counted, group, levels, sd)
        cells = self.cells_of(codes[first], counted.labels[first], rows, group[counted.place], levels)
        spend = spend + self.terms.sums(f, len(first)) + self.terms.moments(f)
        with refusals_cost(spend):
            check_number(cells, self.contract)
        cells = with_shared(cells, self.contract, counted, group)
        moved = int((codes != counted.codes).any(axis=1).sum())
        return Release(self.contract, self.policy, cells, spend, moved, remarks(cells, self.contract))

    @cached_property
    def dial_of_counts(self) -> float:
        """f for the counts of signatures, before anybody knows how many cells there will be."""
        guess = int(np.clip(self.terms.rows / (3.0 * self.policy.min_rows), self.terms.labels, self.terms.signatures))
        return self._within(self.spend, guess, counts=True)

    def dial(self, spent: Spend, cells: int) -> float:
        """f for the rest."""
        return self._within(spent, cells, counts=False)

    def _within(self, spent: Spend, cells: int, *, counts: bool) -> float:
        if self.policy.epsilon is None:
            return self.policy.noise
        left = rho_of(self.policy.epsilon, self.policy.delta - self.delta) - spent.rho
        f = self.terms.dial(left, cells, counts=counts) if left > 0 else np.inf
        if not np.isfinite(f):
            with refusals_cost(spent):
                raise PolicyRefusal(
                    f"Epsilon {self.policy.epsilon:g} is spent before anything leaves. Raise it, agree on centre and "
                    "scale of all numbers in the contract, or leave epsilon out and give `noise`."
                )
        return f

    @property
    def delta(self) -> float:
        """What of delta the threshold for signatures that were seen takes."""
        return _OPEN_SHARE * self.policy.delta if self.signatures.open_set else 0.0

    def count(self) -> tuple[Counted, Spend]:
        """Noisy counts of signatures, and what has been spent with them."""
        f = self.dial_of_counts
        sd, spend = self.terms.sd_counts(f), self.spend + self.terms.counts(f)
        if not self.signatures.open_set:
            return count_agreed(self.signatures, self.tally, sd, self.noise), spend
        per_unit = self.terms.per_unit
        found = count_open(self.signatures, self.tally, sd, self.noise, per_unit=per_unit, delta=self.delta)
        return found, spend + Spend(0.0, self.delta)

    def least(self, sd: float, blocks: int) -> Floats:
        """By number of blocks in a group, the fewest rows that stand out of the noise in their counts."""
        return np.asarray(np.maximum(float(self.policy.min_rows), _CLEAR * sd * np.arange(blocks + 1) ** 0.5))

    def rows_of(self, counted: Counted, group: Ints, levels: Levels, sd: float) -> Ints:
        """Rows of every cell: its own noisy count and those of its signatures, each by how sure it is."""
        exact = np.bincount(group[counted.place], self.tally.rows, int(group.max()) + 1)
        own = exact + self.noise.draw(exact.shape, levels.rows)
        sure = 1.0 / (np.bincount(group) * sd**2), 1.0 / levels.rows**2
        both = (sure[0] * np.bincount(group, counted.counts) + sure[1] * own) / (sure[0] + sure[1])
        return np.maximum(np.rint(both), 1.0).astype(np.int64)

    def cells_of(self, codes: Ints, labels: Ints, rows: Ints, cell: Ints, levels: Levels) -> Cells:
        """Sums and moments with noise, in the model's units; ``cell`` is where each block of the tally belongs."""
        tally, count = self.tally, len(rows)
        centre, scale = units_of(self.contract, tally.peer, tally.constants)
        sums = noisy(add_up(tally.sums, cell, count), levels.sums * GRID, self.noise) / GRID
        return Cells(
            tally.peer,
            tally.columns,
            centre,
            scale,
            codes=codes,
            labels=labels,
            rows=rows,
            sums=sums,
            present=np.broadcast_to(rows[:, None], sums.shape),
            shared=csr_array((count, len(self.contract.shared_columns))),
            by_label=self.moments(levels.moments),
            levels=levels,
            constants=tally.constants,
            limits=(centre - self.policy.bound * scale, centre + self.policy.bound * scale),
        )

    def moments(self, sd: float) -> Floats:
        """Second moments of the private columns by label."""
        width = len(self.tally.columns)
        upper = np.triu_indices(width)
        out = np.zeros((self.terms.labels, width, width))
        exact = self.tally.moments[:, :width, :width]
        out[:, *upper] = noisy(exact[:, *upper], sd * GRID**2, self.noise) / GRID**2
        return out + np.triu(out, 1).transpose(0, 2, 1)


@contextmanager
def refusals_cost(spend: Spend) -> Iterator[None]:
    """What is refused by noisy numbers says something of the rows; see `RadocraftError.spent`."""
    try:
        yield
    except RadocraftError as refusal:
        refusal.spent = (spend.rho, spend.delta)
        raise


def noisy(exact: Floats, sd: float, noise: Noise) -> Floats:
    """Whole numbers with noise, rounded to steps that are small beside it.

    The sum is rounded, not the noise: what is left of a number below a step would
    be exact.
    """
    step = 2.0 ** max(0.0, np.floor(np.log2(sd / _FINE)))
    out: Floats = step * np.floor((exact + noise.draw(exact.shape, sd)) / step + 0.5)
    return out
