"""A policy in words, for the data officer who signs it."""

from __future__ import annotations

from collections.abc import Iterator

from radocraft.gate._policy import Policy

FORMAL = 10.0
"""Above this epsilon a guarantee says too little to be called one."""


def describe_policy(policy: Policy) -> list[str]:
    """What the policy lets leave, one sentence a line.

    Examples
    --------
    >>> describe_policy(Policy())[1]
    'A model learns as much from it as from exact sums of 20 % fewer rows.'
    """
    sentences = _noise(policy) if policy.noisy else _exact()
    return [*sentences, *_scope(policy), *_record(policy)]


def describe_epsilon(epsilon: float, delta: float, policy: Policy) -> str:
    """What an epsilon is worth, in one sentence without its full stop.

    Examples
    --------
    >>> describe_epsilon(4.2, 1e-6, Policy())
    'epsilon 4.2 at delta 1e-06 per row, a formal guarantee'
    >>> describe_epsilon(63.0, 1e-6, Policy())
    'epsilon 63 at delta 1e-06 per row: noise, but no formal guarantee worth the name'
    """
    worth = ", a formal guarantee" if epsilon <= FORMAL else ": noise, but no formal guarantee worth the name"
    return f"epsilon {epsilon:.3g} at delta {delta:g} per {policy.protected}{worth}"


def describe_rows(rows: int, mode: str) -> str:
    """A number of rows, which is noisy unless the mode is exact.

    Examples
    --------
    >>> describe_rows(10_043, "noise")
    'about 10,043'
    """
    return f"{'about ' if mode == 'noise' else ''}{rows:,}"


def _exact() -> Iterator[str]:
    yield "EXACT SUMS LEAVE, and single rows can be read from them. Use this for public tables only."


def _noise(policy: Policy) -> Iterator[str]:
    if policy.epsilon is None:
        yield (
            f"Sums leave, no rows, and each carries random noise of at least {policy.noise:g} times its sampling error."
        )
        fewer = 1.0 - 1.0 / (1.0 + policy.noise**2)
        yield f"A model learns as much from it as from exact sums of {fewer * 100:.2g} % fewer rows."
        yield (
            "Each part states the resulting epsilon; the more rows, the smaller it is, and below "
            f"about {FORMAL:g} it is a formal guarantee."
        )
    else:
        yield "Sums leave, no rows, and each carries as much random noise as the epsilon requires."
        yield f"Each release spends {describe_epsilon(policy.epsilon, policy.delta, policy)}."
        yield "The fewer rows and the more columns and blocks there are, the more this costs the model."
    yield (
        f"A value counts at most {policy.bound:g} standard deviations from the centre of its column, and a row at most "
        f"{policy.row_bound:g} times as much as a usual one."
    )
    if policy.unit == "person":
        yield (
            f"The noise hides each person whole: whose a row is says the column '{policy.person}', and at most "
            f"{policy.rows_per_person:,} of a person's rows enter."
        )
    else:
        yield "The noise protects each row. A person with several rows is protected less."
    if policy.min_rows > 1:
        yield f"Blocks of fewer than about {policy.min_rows:,} rows leave only as part of coarser ones."
    yield f"All releases of the table together: {describe_budget(policy)}."


def describe_budget(policy: Policy) -> str:
    """What may leave of a table in its life.

    Examples
    --------
    >>> describe_budget(Policy())
    'at most 10 releases'
    """
    if not policy.noisy:
        return "no limit"
    if policy.lifetime_epsilon is not None:
        return f"at most epsilon {policy.lifetime_epsilon:g} at delta {policy.delta:g}"
    count = policy.lifetime_releases
    return "at most 1 release" if count == 1 else f"at most {count:,} releases"


def _scope(policy: Policy) -> Iterator[str]:
    if policy.signatures == "labels-only":
        yield "Nothing leaves by signature, only sums and second moments by label."
    if policy.features is not None:
        yield f"Only these features may leave: {', '.join(policy.features)}."
    if policy.contracts is not None:
        yield f"Only these contracts are allowed: {', '.join(name[:16] for name in policy.contracts)}."


def _record(policy: Policy) -> Iterator[str]:
    if policy.ledger is not None:
        yield f"Every release is recorded in '{policy.ledger}'."
    elif policy.noisy or policy.review:
        yield "Every release is recorded in a ledger beside the part."
    else:
        yield "Releases are not recorded."
    if policy.review:
        yield "A person must approve each release (radocraft review)."
