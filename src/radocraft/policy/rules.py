"""A peer's policy: its own file of rules, which never leaves.

One TOML file; every line may be left out, and what is left out is safe::

    mode = "disclosure-control"     # or "differential-privacy", or "none"
    min_rows = 10                   # the fewest rows behind anything released
    min_count = 5                   # the fewest rows of a cell that have a category, or either truth value
    signatures = "full"             # or "labels-only": no signature leaves at all
    review = true                   # a person must approve each release
    ledger = "bank.ledger"          # where every release is recorded
    table = "customers"             # the ledger's name for the table
    mixed_labels = false            # true: no signature leaves whose rows all have one label
    rows_per_column = 2             # moments need this many rows per private column

    [dominance]                     # only if given; on absolute values
    largest = 1                     # the n largest of a cell's values ...
    share = 0.5                     # ... may be at most this share of their sum
    percent = 10                    # nobody may guess the largest closer than this

    [privacy]                       # for mode = "differential-privacy"
    epsilon = 1.0
    delta = 1e-6
    lifetime_epsilon = 4.0
    row_norm = 3.0
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from radocraft.errors import PolicyError
from radocraft.mistakes import Mistake, from_validation, place, report
from radocraft.storage import read_text

_CONFIG = ConfigDict(frozen=True, extra="forbid", strict=False)


class Dominance(BaseModel):
    """When one or a few rows make up too much of a sum; at least one of the two rules.

    Parameters
    ----------
    largest, share
        The (n, k) rule: the ``largest`` values of a cell may make up at most
        ``share`` of the sum of its absolute values.
    percent
        The p % rule: what the cell holds beside its two largest values must be
        at least this percentage of the largest, so that the second largest
        contributor cannot guess the largest closer than that.
    """

    model_config = _CONFIG

    largest: Annotated[int, Field(ge=1, le=5)] = 1
    """How many of a cell's largest values are looked at."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """The most of the sum of absolute values they may make up."""
    percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """How close, in percent, the second largest contributor may come to guessing the largest."""

    @model_validator(mode="after")
    def _some_rule(self) -> Self:
        if self.share is None and self.percent is None:
            raise ValueError("give `share` (with `largest`), `percent`, or both; or leave [dominance] out")
        return self


class Privacy(BaseModel):
    """Differential privacy: what is spent, on whom, and how rows are bounded.

    Parameters
    ----------
    epsilon, delta
        What one release may spend.
    lifetime_epsilon
        What all releases of the table together may spend, at the same delta.
    row_norm
        Every row's private columns are scaled down to at most this norm.
    moments_share
        The share of the budget (in zCDP) for the moments; the rest is for counts and sums.
    signatures
        "public": every agreed signature leaves, seen or not. "threshold": only
        those whose noisy count passes a threshold that hides any one unit.
    unit, person, rows_per_person
        Whom the guarantee protects: one row, or a person (a column that says
        whose a row is) with at most that many rows; further rows are left out.
    """

    model_config = _CONFIG

    epsilon: Annotated[float, Field(gt=0, le=50)] = 1.0
    """What one release spends."""
    delta: Annotated[float, Field(gt=0, le=1e-3)] = 1e-6
    """The chance that the guarantee may fail."""
    lifetime_epsilon: Annotated[float, Field(gt=0, le=100)] = 4.0
    """What all releases of the table together may spend."""
    row_norm: Annotated[float, Field(gt=0, le=1e6)] = 3.0
    """Rows are scaled down to this norm, in the contract's units."""
    moments_share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The share of the budget for second moments; the rest is for counts and sums."""
    signatures: Literal["public", "threshold"] = "public"
    """Every agreed signature, or only those whose noisy count passes a threshold."""
    unit: Literal["row", "person"] = "row"
    """Whom the guarantee protects."""
    person: str | None = None
    """The column that says whose a row is."""
    rows_per_person: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many rows of a person are used."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.unit == "person") != (self.person is not None):
            raise ValueError('`unit = "person"` and `person = "COLUMN"` go together; give both or neither')
        if self.unit == "row" and self.rows_per_person != 1:
            raise ValueError('`rows_per_person` is for `unit = "person"`; remove it')
        if self.epsilon > self.lifetime_epsilon:
            raise ValueError(
                "`epsilon` of one release is more than `lifetime_epsilon`; lower the one or raise the other"
            )
        return self


class _Rules(BaseModel):
    model_config = _CONFIG

    min_rows: Annotated[int, Field(ge=1)] = 10
    """The fewest rows behind anything released."""
    min_count: Annotated[int, Field(ge=1)] | None = None
    """The fewest rows of a cell that have a category, or either truth value; half of min_rows if left out."""
    mode: Literal["disclosure-control", "differential-privacy", "none"] = "disclosure-control"
    """Exact sums of large enough groups, noisy sums, or no limit at all."""
    signatures: Literal["full", "labels-only"] = "full"
    """Sums by signature and label, or by label alone."""
    review: bool = False
    """A person must approve each release."""
    ledger: str | None = None
    """The file that records every release, beside the policy."""
    table: str | None = None
    """What the ledger calls the table."""
    mixed_labels: bool = False
    """Roll up a signature whose rows all have one label."""
    rows_per_column: Annotated[float, Field(ge=0)] = 2.0
    """The moment matrix needs this many rows per private column."""
    dominance: Dominance | None = None
    """Roll up sums that a few rows make up."""
    privacy: Privacy | None = None
    """For differential privacy."""
    features: tuple[str, ...] | None = None
    """The private features that may leave; all if left out."""
    contracts: tuple[str, ...] | None = None
    """Fingerprints of the contracts that are allowed; all if left out."""
    gives_away_single_rows: bool = False
    """Must be true beside `mode = "none"`."""


class Policy(_Rules):
    """A peer's own rules; they are never sent. See the module's docstring for the file.

    Parameters
    ----------
    min_rows
        The fewest rows a released cell may hold, and the fewest present
        values behind a released sum. 1 switches the rule off.
    min_count
        The fewest rows that a sum may tell to have a category, or to be on
        either side of a truth value, in any cell; half of ``min_rows`` (rounded up) if None.
    mode, signatures, review, ledger, table, mixed_labels, rows_per_column, dominance, privacy
        As in the file.
    features, contracts
        If given, only these private features, and only contracts with these
        fingerprints, may be released.
    gives_away_single_rows
        Must be true for mode "none", which lets a block of one row, that is
        the row itself, leave.

    Examples
    --------
    >>> Policy(min_rows=20).guarantee
    'every cell holds at least 20 rows'
    """

    def __init__(self, min_rows: int = 10, **rules: Any) -> None:
        if mistakes := _mistakes({"min_rows": min_rows, **rules}, ""):
            raise PolicyError(report(mistakes, "The policy"))
        super().__init__(min_rows=min_rows, **rules)

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
    def limit(self) -> int:
        """The fewest rows behind anything released, 1 if there is no limit."""
        return 1 if self.mode == "none" else self.min_rows

    @property
    def least_count(self) -> int:
        """The fewest rows that a sum may tell to have a value, in any cell."""
        return 1 if self.mode == "none" else min(self.limit, self.min_count or (self.limit + 1) // 2)

    @property
    def guarantee(self) -> str:
        """What the policy promises, in one sentence without its full stop."""
        if self.mode == "none":
            return "none: single rows may be in it"
        if self.privacy is not None:
            unit = "row" if self.privacy.unit == "row" else f"person (at most {self.privacy.rows_per_person} rows)"
            return (
                f"differentially private per {unit}: epsilon {self.privacy.epsilon:g} at delta {self.privacy.delta:g}"
            )
        return f"every cell holds at least {self.min_rows} rows"


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
    return f'''\
# The policy of {name}: what may leave. This file itself never does.
mode = "disclosure-control"   # or "differential-privacy" (with a section [privacy])
min_rows = 10                 # the fewest rows behind anything released
min_count = 5                 # the fewest rows of a cell that have a category, or either truth value
signatures = "full"           # or "labels-only": nothing by signature, only by label
review = true                 # craft writes a pending release; `radocraft review` lets it go
ledger = "{name}.ledger"      # every release is recorded here; keep this file
table = "{name}"              # what the ledger calls the table
mixed_labels = false          # true: a signature whose rows all have one label is rolled up
rows_per_column = 2           # the moment matrix needs this many rows per private column

# [dominance]                 # a sum mostly made by one or two rows is rolled up
# largest = 1                 # the largest value of a cell ...
# share = 0.5                 # ... may be at most this share of the sum of absolute values
# percent = 10                # the second largest contributor may not guess the largest closer
'''


_DRAFT = "see `radocraft policy new` for a draft"


def _read(text: str) -> tuple[Policy | None, list[Mistake]]:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [Mistake("the file", f"not valid TOML: {error}", "mend the syntax at that line")]
    mistakes = _mistakes(tree, text)
    return (None, mistakes) if mistakes else (Policy(**tree), [])


def _mistakes(tree: dict[str, Any], text: str) -> list[Mistake]:
    """What is wrong with each rule, and what rules contradict each other."""
    mistakes = []
    try:
        _Rules.model_validate(tree)
    except ValidationError as error:
        mistakes = from_validation(error, text, _DRAFT)
    return mistakes + [Mistake(place([path], text), *said) for path, *said in _contradictions(tree)]


def _contradictions(tree: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    mode, private = tree.get("mode"), tree.get("mode") == "differential-privacy"
    if mode == "none" and tree.get("gives_away_single_rows") is not True:
        yield (
            "mode",
            '"none" lets blocks of one row leave, and such a block is the row',
            'write gives_away_single_rows = true beside it if that is meant, else use "disclosure-control"',
        )
    if private != (tree.get("privacy") is not None):
        yield "mode", '"differential-privacy" and the section [privacy] go together', "give both or neither"
    if private and tree.get("ledger") is None:
        yield "mode", '"differential-privacy" needs to keep account of what was spent', 'add ledger = "FILE"'
    if tree.get("review") is True and tree.get("ledger") is None:
        yield "review", "a review is recorded in the ledger, and there is none", 'add ledger = "FILE"'
    if private and (tree.get("dominance") or tree.get("mixed_labels")):
        yield "mode", "[dominance] and mixed_labels are rules of disclosure control", "remove them"
