"""A peer's policy: its own file of rules, which never leaves.

One TOML file. Every line may be left out, and what is left out is safe::

    mode = "noise"            # or "exact", for public tables only (beside gives_away_rows = true)
    noise = 0.5               # noise on every number, as a share of its sampling error ...
    # epsilon = 2.0           # ... or instead: what one release may spend
    delta = 1e-6              # the chance that a stated epsilon does not hold
    min_rows = 10             # blocks with fewer rows, by noisy counts, leave only inside coarser ones
    bound = 4.0               # columns are clipped at this many standard deviations
    row_bound = 1.5           # rows are scaled down to this norm, times the square root of the columns
    unit = "row"              # or "person": whom the noise protects
    # person = "customer_id"  # with unit = "person": the column that says whose a row is
    # rows_per_person = 1     # ... and how many rows of a person enter
    signatures = "full"       # or "labels-only": sums by label alone
    # lifetime_epsilon = 8.0  # what all releases of the table together may spend ...
    lifetime_releases = 10    # ... or, without it, how many there may be
    review = true             # a person must approve each release
    ledger = "bank.ledger"    # where every release is recorded; beside the part if left out
    table = "customers"       # the ledger's name for the table
    # features = ["balance"]  # the private features that may leave; all if left out
    # contracts = ["3fa9..."] # the fingerprints that are allowed; all if left out
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from radocraft.contract import Mistake, Record, from_validation, place, report
from radocraft.errors import PolicyError
from radocraft.files import read_text
from radocraft.sums import Bounds


class _Rules(Record):
    mode: Literal["noise", "exact"] = "noise"
    """Noise on everything that leaves, or exact sums."""
    noise: Annotated[float, Field(gt=0, le=10)] = 0.5
    """The noise on every number, as a share of the sampling error that is in it anyway."""
    epsilon: Annotated[float, Field(gt=0, le=100)] | None = None
    """What one release spends; then the noise follows from it, and `noise` is not given."""
    delta: Annotated[float, Field(gt=0, le=1e-3)] = 1e-6
    """The chance that a stated epsilon does not hold."""
    min_rows: Annotated[int, Field(ge=1)] = 10
    """A block with fewer rows, by noisy counts, leaves only inside a coarser one."""
    bound: Annotated[float, Field(gt=0, le=1000)] = 4.0
    """Columns are clipped at so many standard deviations."""
    row_bound: Annotated[float, Field(gt=0, le=1000)] = 1.5
    """Rows are scaled down to this norm, times the square root of the number of columns."""
    unit: Literal["row", "person"] = "row"
    """Whom the noise protects."""
    person: Annotated[str, Field(min_length=1)] | None = None
    """The column that says whose a row is."""
    rows_per_person: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many rows of a person enter; further rows are left out."""
    signatures: Literal["full", "labels-only"] = "full"
    """Sums by signature and label, or by label alone."""
    lifetime_epsilon: Annotated[float, Field(gt=0, le=1000)] | None = None
    """What all releases of the table together may spend, at `delta`."""
    lifetime_releases: Annotated[int, Field(ge=1)] = 10
    """How many releases of the table there may be where there is no `lifetime_epsilon`."""
    review: bool = False
    """A person must approve each release."""
    ledger: Annotated[str, Field(min_length=1)] | None = None
    """The file that records every release; beside the part if left out."""
    table: Annotated[str, Field(min_length=1)] | None = None
    """What the ledger calls the table."""
    features: tuple[str, ...] | None = None
    """The private features that may leave; all if left out."""
    contracts: tuple[str, ...] | None = None
    """Fingerprints of the contracts that are allowed; all if left out."""
    gives_away_rows: bool = False
    """Must be true beside `mode = "exact"`."""


_OF_RELEASE = {
    *("mode", "noise", "epsilon", "delta", "min_rows", "bound", "row_bound", "unit", "person", "rows_per_person"),
    *("signatures", "features"),
}
_OF_NOISE = {
    *("noise", "epsilon", "delta", "bound", "row_bound", "unit", "person", "rows_per_person"),
    *("lifetime_epsilon", "lifetime_releases"),
}


class Policy(_Rules):
    """A peer's own rules of what may leave. They are never sent.

    Parameters
    ----------
    min_rows
        A block with fewer rows, by noisy counts, leaves only inside a coarser
        one. 1 switches the rule off.
    **rules
        All others, by name, as in the file.

    Examples
    --------
    >>> Policy().guarantee
    'every number carries noise of at least 0.5 times its sampling error'
    >>> Policy(epsilon=2).guarantee
    'epsilon 2 at delta 1e-06 per row'
    """

    def __init__(self, min_rows: int = 10, **rules: Any) -> None:
        if mistakes := _mistakes({"min_rows": min_rows, **rules}, ""):
            raise PolicyError(report(mistakes, "The policy"))
        super().__init__(min_rows=min_rows, **rules)

    @classmethod
    def exact(cls, min_rows: int = 1, **rules: Any) -> Policy:
        """No noise: for tables that are public anyway, research and theorems.

        Examples
        --------
        >>> Policy.exact().guarantee
        'none: exact sums leave, and single rows can be read from them'
        """
        return cls(min_rows, mode="exact", gives_away_rows=True, **rules)

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read a policy from TOML text; raises one `PolicyError` that lists every mistake."""
        policy, mistakes = _read(text)
        if policy is None:
            raise PolicyError(report(mistakes, "The policy"))
        return policy

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file; a relative ledger path is relative to the file."""
        policy = cls.parse(read_text(path, "policy"))
        if policy.ledger is None:
            return policy
        return policy.model_copy(update={"ledger": str(Path(path).parent / policy.ledger)})

    @property
    def noisy(self) -> bool:
        """Whether what leaves carries noise."""
        return self.mode == "noise"

    @property
    def bounds(self) -> Bounds | None:
        """How rows are bounded where they are summed; not at all where exact sums leave."""
        return Bounds(self.bound, self.row_bound, self.person, self.rows_per_person) if self.noisy else None

    @property
    def numbers(self) -> dict[str, Any]:
        """The rules that change what a release holds; a release under others is another release."""
        return self.model_dump(mode="json", include=_OF_RELEASE)

    @property
    def protected(self) -> str:
        """Whom the noise protects, in words."""
        if self.unit == "row":
            return "row"
        rows = "1 row" if self.rows_per_person == 1 else f"{self.rows_per_person} rows"
        return f"person (at most {rows})"

    @property
    def guarantee(self) -> str:
        """What the policy promises, in one sentence without its full stop."""
        if not self.noisy:
            return "none: exact sums leave, and single rows can be read from them"
        if self.epsilon is not None:
            return f"epsilon {self.epsilon:g} at delta {self.delta:g} per {self.protected}"
        return f"every number carries noise of at least {self.noise:g} times its sampling error"


def check_policy(path: str | Path) -> list[Mistake]:
    """Every mistake in a policy file, each with its place and its remedy; empty if there is none."""
    return _read(read_text(path, "policy"))[1]


def draft_policy(name: str = "peer") -> str:
    """A policy file with safe values to start from.

    Examples
    --------
    >>> Policy.parse(draft_policy("bank")).ledger
    'bank.ledger'
    """
    ledger, table = f"ledger = {json.dumps(f'{name}.ledger')}", f"table = {json.dumps(name)}"
    return f"""\
# The policy of a peer: what may leave. This file itself never does.
noise = 0.5                # noise on every number, as a share of its sampling error
# epsilon = 2.0            # instead of noise: what one release may spend (below about 10: a formal guarantee)
min_rows = 10              # blocks with fewer rows leave only inside coarser ones
review = true              # a person approves each release with `radocraft review`
{ledger:<26} # every release is recorded here; keep this file
{table:<26} # what the ledger calls the table
lifetime_releases = 10     # how many releases of this table there may be ...
# lifetime_epsilon = 8.0   # ... or instead: what all of them together may spend
signatures = "full"        # or "labels-only": nothing by signature, only by label

# unit = "person"          # protect a person instead of a row:
# person = "customer_id"   # the column that says whose a row is
# rows_per_person = 1      # how many rows of each person enter

# bound = 4.0              # columns are clipped at this many standard deviations
# row_bound = 1.5          # rows are scaled down to this norm, times the square root of the columns
# delta = 1e-6             # the chance that a stated epsilon does not hold
# features = ["balance"]   # the private features that may leave
# contracts = ["3fa9..."]  # the fingerprints of the contracts that are allowed
"""


def _read(text: str) -> tuple[Policy | None, list[Mistake]]:
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return None, [Mistake("the file", f"not valid TOML: {error}", "fix the syntax at that line")]
    mistakes = _mistakes(tree, text)
    return (None, mistakes) if mistakes else (Policy(**tree), [])


def _mistakes(tree: dict[str, Any], text: str) -> list[Mistake]:
    """What is wrong with each rule, and what rules contradict each other."""
    mistakes = []
    try:
        _Rules.model_validate(tree)
    except ValidationError as error:
        mistakes = from_validation(error, text, "see `radocraft policy new` for a draft")
    return mistakes + [Mistake(place([path], text), *said) for path, *said in _contradictions(tree)]


def _contradictions(tree: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    exact, given = tree.get("mode") == "exact", {name for name, value in tree.items() if value is not None}
    if exact and tree.get("gives_away_rows") is not True:
        yield (
            "mode",
            '"exact" lets exact sums leave, and single rows can be read from them',
            "add gives_away_rows = true if this is intended, otherwise leave mode out",
        )
    if not exact and tree.get("gives_away_rows") is True:
        yield "gives_away_rows", 'this is for mode = "exact" only', "remove it, or set the mode"
    if exact:
        for name in sorted(given & _OF_NOISE):
            yield name, 'nothing is bounded, noisy or counted in mode = "exact"', "remove it, or remove the mode"
        return
    if {"noise", "epsilon"} <= given:
        yield "epsilon", "with `epsilon`, the noise follows from it", "give one of the two"
    if {"lifetime_epsilon", "lifetime_releases"} <= given:
        yield "lifetime_releases", "`lifetime_epsilon` already sets the budget", "give one of the two"
    if (tree.get("unit") == "person") != ("person" in given):
        yield "unit", '`unit = "person"` and `person = "COLUMN"` go together', "give both or neither"
    if tree.get("unit") != "person" and tree.get("rows_per_person", 1) != 1:
        yield "rows_per_person", 'this is for `unit = "person"`', "remove it, or set the unit"
    epsilon, lifetime = tree.get("epsilon"), tree.get("lifetime_epsilon")
    if isinstance(epsilon, int | float) and isinstance(lifetime, int | float) and epsilon > lifetime:
        yield (
            "epsilon",
            "one release spends more than `lifetime_epsilon`",
            "lower `epsilon` or raise `lifetime_epsilon`",
        )
