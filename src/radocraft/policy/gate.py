"""From a tally to a release: every rule of the policy, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from radocraft.arrays import Ints, number_rows, one_thread
from radocraft.cells import ROLLED, Cells, constant_features, standardise
from radocraft.contract import Contract
from radocraft.encoding import summed_columns
from radocraft.errors import ContractMismatch, OneClass, PolicyRefusal
from radocraft.labels import Number
from radocraft.policy.detail import even_sums
from radocraft.policy.groups import Groups
from radocraft.policy.limits import Contributors, Counts, Limits
from radocraft.policy.rare import Least, row_counts, without_rare
from radocraft.policy.reasons import HeldBack, held_back
from radocraft.policy.recoding import encoded_by, mixes_of, recode, released_cells
from radocraft.policy.rolling import rolled_up
from radocraft.policy.rules import Policy
from radocraft.policy.together import without_small_pairs
from radocraft.tally import Tally


@dataclass(frozen=True)
class Release:
    """Cells that passed the gate, with what the gate did to them.

    ``noise`` is None, or what a learner needs to know about the noise in the
    cells. Two things are for the reviewer alone and do not leave:
    ``largest_shares``, the largest share one row has in a cell's sum, by column,
    where it is known; and ``held_back``, blocks that are only shown rolled up.
    ``ledger`` is the file, if the policy names one, that must know before it leaves;
    ``groups``, what it has to know of rolled-up cells, does not leave either.
    """

    contract: Contract
    cells: Cells
    mode: str
    guarantee: str
    min_rows: int
    blocks_rolled_up: int
    rows_rolled_up: int
    notes: tuple[str, ...] = field(default=())
    noise: dict[str, Any] | None = None
    largest_shares: dict[str, float] = field(default_factory=dict)
    held_back: tuple[HeldBack, ...] = field(default=())
    ledger: str | None = None
    groups: Groups | None = None


@one_thread
def release(
    tally: Tally,
    contract: Contract,
    policy: Policy | None = None,
    contributors: Contributors | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> Release:
    """Let a tally through the gate, rolling up what is too small to leave.

    Parameters
    ----------
    tally, contract
        The peer's exact sums, and what they were crafted under.
    policy
        The peer's rules; those of `Policy()` if None.
    contributors
        Needed where the policy has a dominance rule; see `radocraft.contributors`.
    notes
        What else a reader of the part has to know.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from radocraft import Contract, Policy, craft, open_source, release
    >>> contract = Contract.parse('''
    ... name = "risk"
    ... label = { column = "bad", positive = 1, negative = 0 }
    ... shared = [{ name = "age", edges = [40] }]
    ... peers.bank.features = { income = "numeric" }
    ... ''')
    >>> rows = pa.table({"bad": [0, 0, 0, 1, 1], "age": [30, 35, 50, 30, 60], "income": [2.0, 3.0, 1.0, 4.0, 5.0]})
    >>> released = release(craft(open_source(rows), contract, "bank"), contract, Policy(min_rows=2))
    >>> released.cells.rows, released.cells.codes.ravel()
    (array([3, 2]), array([-1, -1]))
    """
    policy = policy or Policy()
    check_scope(tally, contract, policy)
    least = Least(policy.limit, policy.least_count)
    merged, rare = without_rare(tally, contract, least)
    exact = standardise(without_small_pairs(merged, contract, policy.limit), contract)
    check_labels(exact, contract, policy)
    limits = limits_of(exact, row_counts(merged, contract, least), policy, contributors)
    codes = cell_codes(limits, policy, contract)
    found = recode(limits, codes)
    mixes = mixes_of(limits, contract, codes, found)
    sums = even_sums(limits, found, encoded_by(mixes, contract, len(codes)))
    cells = released_cells(exact, contract, found, mixes, sums)
    moved = (codes == ROLLED).any(axis=1)
    return Release(
        contract=contract,
        cells=without_few_missing(cells, least.count),
        mode=policy.mode,
        guarantee=policy.guarantee,
        min_rows=policy.limit,
        blocks_rolled_up=int(moved.sum()),
        rows_rolled_up=int(exact.rows[moved].sum()),
        notes=(*notes, *rare, *remarks(tally, exact, contract)),
        largest_shares=largest_shares(limits, codes),
        held_back=held_back(limits, codes, contract, policy),
        ledger=policy.ledger,
        groups=Groups.of(exact, found),
    )


def without_few_missing(cells: Cells, least: int) -> Cells:
    """The cells, silent about missing values of a column where some cell misses a few: no learner needs to know."""
    missing = cells.rows[:, None] - cells.present
    few = ((missing > 0) & (missing < least)).any(axis=0)
    return replace(cells, present=np.where(few, cells.rows[:, None], cells.present))


def largest_shares(limits: Limits, codes: Ints) -> dict[str, float]:
    """By column the largest share of one row in a cell's sum of absolute values, where contributors are known."""
    if limits.contributors is None:
        return {}
    group = number_rows(np.column_stack([codes, limits.cells.labels]))
    absolute, largest = limits.contributors.pooled(group, np.arange(len(group)), int(group.max()) + 1)
    shares = (largest[:, :, 0] / np.maximum(absolute, np.finfo(float).tiny)).max(axis=0)
    return {name: float(share) for name, share in zip(limits.cells.columns, shares, strict=True) if share > 0}


def limits_of(exact: Cells, counts: Counts, policy: Policy, contributors: Contributors | None) -> Limits:
    """The policy's limits on these blocks."""
    if policy.dominance is None or policy.mode == "none":
        return Limits(exact, counts, policy.limit)
    if contributors is None:
        raise PolicyRefusal(
            "The policy's rule on dominance needs to know each cell's largest contributors, and they are not at hand. "
            "Craft the whole table with this policy (a tally of earlier rows does not hold them)."
        )
    if not (np.array_equal(contributors.codes, exact.codes) and np.array_equal(contributors.labels, exact.labels)):
        raise PolicyRefusal("The largest contributors are of another table than the tally. Craft the whole table anew.")
    return Limits(exact, counts, policy.limit, policy.dominance, contributors)


def cell_codes(limits: Limits, policy: Policy, contract: Contract) -> Ints:
    """The codes each block leaves under."""
    if policy.signatures == "labels-only":
        return np.full_like(limits.cells.codes, ROLLED)
    if policy.mixed_labels and isinstance(contract.label, Number) and not contract.label.edges:
        raise PolicyRefusal(
            "The policy's rule mixed_labels speaks of labels in a signature, and this contract's label is a number "
            "without bins. Agree on `edges` for it, or take mixed_labels out of the policy."
        )
    mixed = policy.mixed_labels and policy.mode != "none" and contract.labelled(limits.cells.peer)
    return rolled_up(limits, mixed)


def check_scope(tally: Tally, contract: Contract, policy: Policy) -> None:
    """The tally must be of this contract, and the policy must allow the contract, its features and its width."""
    if tally.fingerprint != contract.fingerprint:
        raise ContractMismatch("The tally was crafted under another contract; craft it anew under this one.")
    if policy.mode == "differential-privacy":
        raise PolicyRefusal(
            "Under differential privacy rows are bounded one by one, so nothing may leave from a tally of exact sums. "
            "Craft the table with this policy (`radocraft craft --policy`, or `radocraft.privacy.release_private`)."
        )
    if policy.contracts is not None and contract.fingerprint not in policy.contracts:
        raise PolicyRefusal(
            f"The policy does not allow the contract '{contract.name}'. "
            f'Add its fingerprint "{contract.fingerprint}" to `contracts` if your data officer agrees.'
        )
    held = contract.peer(tally.peer).features
    if policy.features is not None and (more := [name for name in held if name not in policy.features]):
        raise PolicyRefusal(
            f"The policy does not allow the feature '{more[0]}'. Take it out of the contract, or add it to `features`."
        )
    if policy.limit > 1 and tally.total < policy.rows_per_column * len(tally.columns):
        raise PolicyRefusal(
            f"'{tally.peer}' has fewer than {policy.rows_per_column:g} rows for each of its {len(tally.columns)} "
            "private columns, so the moment matrix would nearly be the rows. Give more rows, or agree on fewer columns."
        )


def remarks(tally: Tally, exact: Cells, contract: Contract) -> list[str]:
    """What looks like a mistake in the table: features that carry nothing, categories that nobody has."""
    columns = zip(summed_columns(contract, tally.peer), tally.present.sum(axis=0), strict=True)
    filled = {column.feature for column, values in columns if values}
    nothing = [
        f"'{name}' {'is constant' if name in filled else 'has no value in any row'}: it carries nothing"
        for name in constant_features(exact, contract)
    ]
    unseen = [
        f"'{shared.name}' has no agreed category in any row: compare its spelling with the contract's"
        for at, shared in enumerate(contract.shared)
        if shared.categories is not None and (exact.codes[:, at] > len(shared.categories)).all()
    ]
    return nothing + unseen


def check_labels(cells: Cells, contract: Contract, policy: Policy) -> None:
    """At least two labels must occur, each of them in enough rows to show at least their total."""
    if isinstance(contract.label, Number):
        if contract.label.column in constant_features(cells, contract):
            raise OneClass(f"The label '{contract.label.column}' is the same in all rows at '{cells.peer}'.")
    elif contract.labelled(cells.peer) and len({*cells.labels.tolist()}) < 2:
        raise OneClass(
            f"Only one value of the label '{contract.label.column}' occurs at '{cells.peer}'. "
            "A model needs two at least; check [label] in the contract, or give more rows."
        )
    for code, name in contract.label_names.items():
        whole = cells.labels == code
        if whole.any() and cells.rows[whole].sum() < policy.limit:
            raise PolicyRefusal(
                f"'{cells.peer}' has fewer than {policy.limit} rows with label '{name}', so not even their "
                "total may leave. Give more rows; lower min_rows only if your data officer agrees."
            )
