"""The eleven public tables of the paper, and the choices it leaves open.

The paper does not say how it made two classes of many, nor which columns it
kept. Each choice has a name here:

binarisation
    which rows are positive; the first of a domain is its default. ``class-mean``
    are those whose class, a number, is above its mean.
columns
    ``plain``: the features of the file that are not constant. ``paper``: the
    same, but for steelplates with the six other fault columns as features,
    which gives the d = 33 of the paper (and gives the label away when they are
    put together: exactly one fault is set in every row).

Two domains hold more than independent rows: exact copies (phishing 47 %) and
fifteen measurements of each mouse. `Table.groups` numbers what belongs
together, so that folds can keep it on one side.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from radocraft.arrays import Floats, Ints, number_rows
from radocraft.errors import StudyError

Columns = Literal["plain", "paper"]

DATA = "RADOCRAFT_DATA"
_MOUSE = 15


@dataclass(frozen=True)
class Rule:
    """Rows whose ``column`` holds ``value``, or at least ``least``, are positive; else those above its mean."""

    column: str
    value: str | int | None = None
    least: int | None = None


@dataclass(frozen=True)
class Domain:
    """One table of the paper.

    Parameters
    ----------
    name, rows
        Name in the paper and number of rows.
    targets
        The columns of the file that are no features.
    binarisations
        The rules that make two classes, by name.
    bins
        Into how many bins shared features are cut (the paper's b).
    peers, shared
        The paper's ranges of p and dim(J), both ends included.
    best_peer
        The smallest test error of a peer among all runs of the paper.
    """

    name: str
    rows: int
    targets: tuple[str, ...]
    binarisations: dict[str, Rule]
    peers: tuple[int, int]
    shared: tuple[int, int]
    best_peer: float
    bins: int = 4

    @property
    def default(self) -> str:
        """The name of the default binarisation."""
        return next(iter(self.binarisations))


@dataclass(frozen=True)
class Table:
    """A domain as the study uses it: raw features (NaN where missing), labels +1 and -1, groups."""

    domain: str
    columns: tuple[str, ...]
    features: Floats
    labels: Ints
    groups: Ints


_FAULTS = ("Pastry", "Z_Scratch", "K_Scatch", "Stains", "Dirtiness", "Bumps", "Other_Faults")
_CLAVES = ("class_neutral", "class_reverse", "class_forward", "class_incoherent")
_MEAN = {"class-mean": Rule("class")}
_QUALITY = {"six-or-more": Rule("class", least=6), "seven-or-more": Rule("class", least=7), **_MEAN}
_ALL = (
    Domain(
        "wine",
        178,
        ("class",),
        {"class-2": Rule("class", 2), "class-1": Rule("class", 1), "class-3": Rule("class", 3), **_MEAN},
        (2, 8),
        (1, 4),
        0.07,
    ),
    Domain("sonar", 208, ("class",), {"mine": Rule("class", "M")}, (2, 16), (1, 20), 0.29),
    Domain("ionosphere", 351, ("class",), {"good": Rule("class", "g")}, (2, 9), (1, 9), 0.20),
    Domain(
        "mice",
        1080,
        ("Genotype", "Treatment", "Behavior", "class"),
        {
            "genotype": Rule("Genotype", "Control"),
            "treatment": Rule("Treatment", "Memantine"),
            "behaviour": Rule("Behavior", "C/S"),
        },
        (2, 20),
        (1, 20),
        0.30,
    ),
    Domain("winered", 1599, ("class",), _QUALITY, (2, 7), (1, 4), 0.26),
    Domain(
        "steelplates",
        1941,
        _FAULTS,
        {
            "other": Rule("Other_Faults", 1),
            "bumps": Rule("Bumps", 1),
            "k-scratch": Rule("K_Scatch", 1),
            "pastry": Rule("Pastry", 1),
        },
        (2, 14),
        (1, 5),
        0.16,
    ),
    Domain(
        "statlog",
        4435,
        ("class",),
        {**{f"class-{value}": Rule("class", value) for value in (1, 2, 3, 4, 5, 7)}, **_MEAN},
        (2, 30),
        (1, 5),
        0.05,
    ),
    Domain("winewhite", 4898, ("class",), _QUALITY, (2, 7), (1, 4), 0.32),
    Domain("page", 5473, ("class",), {"text": Rule("class", 1), **_MEAN}, (2, 6), (1, 4), 0.21),
    Domain(
        "firmteacher",
        10800,
        _CLAVES,
        {name.removeprefix("class_"): Rule(name, 1) for name in (_CLAVES[1], _CLAVES[2], _CLAVES[3], _CLAVES[0])},
        (2, 7),
        (1, 7),
        0.26,
        bins=2,
    ),
    Domain("phishing", 11055, ("class",), {"phishing": Rule("class", 1)}, (2, 5), (1, 4), 0.11),
)
DOMAINS = {domain.name: domain for domain in _ALL}


def domain_named(name: str) -> Domain:
    """The domain of that name, or an error that lists the names there are."""
    if name not in DOMAINS:
        raise StudyError(f"There is no domain '{name}'. The domains are: {', '.join(DOMAINS)}.")
    return DOMAINS[name]


def load_table(name: str, binarisation: str | None = None, columns: Columns = "plain") -> Table:
    """Read a domain from the folder RADOCRAFT_DATA, or from UCI through a cache if that is not set.

    Examples
    --------
    >>> load_table("wine", "class-1").features.shape  # doctest: +SKIP
    (178, 13)
    """
    domain = domain_named(name)
    rule = domain.binarisations.get(binarisation or domain.default)
    if rule is None:
        known = ", ".join(domain.binarisations)
        raise StudyError(f"'{name}' has no binarisation '{binarisation}'. It has: {known}.")
    return _table(file_of(name), name, rule, columns)


def file_of(name: str) -> Path:
    """Where the CSV file of a domain lies, downloaded if need be."""
    folder = os.environ.get(DATA)
    if folder is None:
        from radocraft.research.study._download import fetch  # noqa: PLC0415  (only users without the files need it)

        return fetch(name)
    path = Path(folder) / f"{name}.csv"
    if not path.is_file():
        raise StudyError(
            f"There is no '{path.name}' in {DATA} ('{folder}'). Put it there, or unset {DATA} to download."
        )
    return path


@lru_cache(maxsize=4)
def _table(path: Path, name: str, rule: Rule, columns: Columns) -> Table:
    domain = DOMAINS[name]
    raw = read_csv(path)
    if raw.num_rows != domain.rows or rule.column not in raw.column_names:
        raise StudyError(
            f"'{path}' is not the table '{name}': it needs {domain.rows} rows and the column '{rule.column}'. "
            "Take the file anew from its source."
        )
    labels = _labels(raw, rule)
    extra = [column for column in domain.targets if column in _FAULTS and column != rule.column]
    names = [column for column in raw.column_names if column not in domain.targets]
    names += extra if columns == "paper" else []
    features = np.column_stack([_numbers(raw.column(column)) for column in names])
    kept = np.nanmax(features, axis=0) > np.nanmin(features, axis=0)
    kept_names = tuple(column for column, keep in zip(names, kept, strict=True) if keep)
    return Table(name, kept_names, features[:, kept], labels, _groups(name, features, labels))


def read_csv(path: Path) -> pa.Table:
    """A CSV file with a header as an Arrow table."""
    try:
        return csv.read_csv(path)
    except (OSError, pa.ArrowException) as error:
        raise StudyError(f"Cannot read '{path}' as CSV: {error}. Take the file anew from its source.") from error


def _labels(raw: pa.Table, rule: Rule) -> Ints:
    column = raw.column(rule.column)
    if rule.value is not None:
        positive = pc.equal(column, rule.value)
    elif rule.least is not None:
        positive = pc.greater_equal(column, rule.least)
    else:
        positive = pc.greater(column, pc.mean(column))
    return np.where(positive.to_numpy(), 1, -1).astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _groups(name: str, features: Floats, labels: Ints) -> Ints:
    """The same number for rows that must not be torn apart: one mouse, or exact copies."""
    if name == "mice":
        return (np.arange(len(labels)) // _MOUSE).astype(np.int64)
    distinct = [np.unique(column, return_inverse=True)[1] for column in features.T]
    return number_rows(np.column_stack([*distinct, labels]).astype(np.int64))
