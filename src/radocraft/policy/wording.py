"""A policy in words, for the data officer who signs it."""

from __future__ import annotations

from collections.abc import Iterator

from radocraft.policy.rules import Dominance, Policy, Privacy


def describe_policy(policy: Policy) -> list[str]:
    """What the policy lets leave, one sentence a line.

    Examples
    --------
    >>> describe_policy(Policy(min_rows=20))[0]
    'Sums leave, no rows. Every cell holds at least 20 rows.'
    """
    return [*_mode(policy), *_scope(policy), *_record(policy)]


def _mode(policy: Policy) -> Iterator[str]:
    if policy.mode == "none":
        yield "NO LIMIT: a block of one row leaves as it is, and it is that row."
        return
    yield f"Sums leave, no rows. {policy.guarantee[0].upper()}{policy.guarantee[1:]}."
    if policy.privacy is not None:
        yield from _privacy(policy.privacy)
    else:
        yield "A block with fewer rows gives up its last shared feature and joins its siblings."
        yield "A shared code or category that few rows have is merged with its neighbour before anything is released."
        yield f"No sum tells that fewer than {policy.least_count} rows of a cell have a category, or are true or false."
        yield f"The moment matrix leaves only with at least {policy.rows_per_column:g} rows per private column."
    if policy.signatures == "labels-only":
        yield "Nothing leaves by signature: sums by label, and one moment matrix."
    if policy.mixed_labels:
        yield "A signature whose rows all have one label is rolled up."
    if policy.dominance is not None:
        yield from _dominance(policy.dominance)


def _dominance(rule: Dominance) -> Iterator[str]:
    if rule.share is not None:
        count = "the largest value" if rule.largest == 1 else f"the {rule.largest} largest values"
        yield f"In no cell may {count} of a column be more than {rule.share:.0%} of the sum of absolute values."
    if rule.percent is not None:
        yield f"The second largest contributor of a cell cannot guess the largest closer than {rule.percent:g} %."


def _privacy(rule: Privacy) -> Iterator[str]:
    yield f"All releases of the table together may spend epsilon {rule.lifetime_epsilon:g} at delta {rule.delta:g}."
    yield f"Every row is scaled down to norm {rule.row_norm:g} in the contract's units."
    if rule.signatures == "public":
        yield "Every agreed signature is released, whether rows have it or not."
    else:
        yield "A signature is released only if its noisy count passes a threshold."


def _scope(policy: Policy) -> Iterator[str]:
    if policy.features is not None:
        yield f"Only these features may leave: {', '.join(policy.features)}."
    if policy.contracts is not None:
        yield f"Only these contracts are allowed: {', '.join(name[:16] for name in policy.contracts)}."


def _record(policy: Policy) -> Iterator[str]:
    yield f"Every release is recorded in '{policy.ledger}'." if policy.ledger else "Releases are not recorded."
    if policy.review:
        yield "A person must approve each release (radocraft review)."
