"""Profiles: what a peer shows of its table before there is a contract.

A profile holds no row. By default it names the columns and their kinds. With
``outline`` it adds what helps to agree on codes: for numbers the quartiles
rounded to two digits, for text the categories held by enough rows. Both are
read off noisy counts, as everything that leaves; the profile says what that is worth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.contract import ColumnProfile, Kind, Profile
from radocraft.gate import TOTAL, Noise, Policy, Spend, describe_epsilon, epsilon_of, histograms, threshold
from radocraft.rows._constants import count_between, few_of_each, known, quantile, sample_of
from radocraft.rows._expressions import number, text, truth
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._opening import open_source
from radocraft.sums import Bounds

_MANY = 30
_LEVELS = np.array([0.25, 0.5, 0.75])
_LEAST, _SHARE = 2.0, 1 / 1000
_OF_DELTA = 0.1
_READABLE: tuple[Kind, ...] = ("number", "boolean")


def profile(data: Any, *, outline: bool = False, policy: Policy | None = None, noise: Noise | None = None) -> Profile:
    """Name a table's columns and kinds; with ``outline``, sketch their values without showing a row.

    Parameters
    ----------
    data
        A path, a data frame, a source; see `open_source`.
    outline
        Add rounded quartiles of numbers, and categories held by enough rows to stand out of the noise.
    policy
        The peer's rules; those of `Policy()` if None. Only in mode "exact" is there no noise.
    noise
        Where noise comes from; the operating system's randomness if None.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [(c.name, c.kind) for c in profile(pa.table({"age": [31, 52], "town": ["Bern", None]})).columns]
    [('age', 'number'), ('town', 'text')]
    """
    source, rules = open_source(data), policy or Policy()
    held = source.kinds()
    kinds = {name: _kind(source, name, kind) for name, kind in held.items()}
    if not outline:
        return Profile(columns=tuple(ColumnProfile(name=name, kind=kind) for name, kind in kinds.items()))
    sketched = (
        _Noisy(source, rules, Noise() if noise is None else noise) if rules.noisy else _Exact(source, rules)
    ).of(
        {name: held[name] for name, kind in kinds.items() if kind == "number"},
        [name for name, kind in kinds.items() if kind == "text"],
    )
    columns = (
        ColumnProfile(
            name=name,
            kind=kind,
            quartiles=_rounded(sketched.quartiles.get(name, [])),
            categories=_few(sketched.categories.get(name, [])),
        )
        for name, kind in kinds.items()
    )
    return Profile(columns=tuple(columns), guarantee=sketched.guarantee)


def _kind(source: Source, name: str, held: Kind) -> Kind:
    """Text that reads as numbers or truth values throughout is just that: CSV files hold nothing but text."""
    if held != "text":
        return "number" if held == "integer" else held
    raw = exp.column(name, quoted=True)
    readings = {"present": raw, "number": number(raw, "text"), "boolean": truth(raw, "text")}
    counts = [exp.func("COUNT", reading).as_(kind) for kind, reading in readings.items()]
    found = source.table(exp.select(*counts).from_(ROWS)).to_pylist()[0]
    if not found["present"]:
        return "text"
    return next((kind for kind in _READABLE if found[kind] == found["present"]), "text")


def _rounded(quartiles: Iterable[float]) -> tuple[float, ...] | None:
    return tuple(sorted({float(f"{value:.2g}") for value in quartiles if np.isfinite(value)})) or None


def _few(categories: list[str]) -> tuple[str, ...] | None:
    return tuple(sorted(categories)) if 0 < len(categories) <= _MANY else None


@dataclass(frozen=True)
class _Sketch:
    """Quartiles and categories by column."""

    quartiles: dict[str, list[float]]
    categories: dict[str, list[str]]
    guarantee: str


@dataclass(frozen=True)
class _Exact:
    """Outlines of public tables."""

    source: Source
    policy: Policy

    def of(self, numbers: dict[str, Kind], texts: list[str]) -> _Sketch:
        """Of these columns, and how numbers are held."""
        quartiles = {name: self._quartiles(name, held) for name, held in numbers.items()}
        categories = {
            name: [word for word, rows in counted(self.source, ROWS, name) if rows >= self.policy.min_rows]
            for name in texts
        }
        return _Sketch(quartiles, categories, self.policy.guarantee)

    def _quartiles(self, name: str, held: Kind) -> list[float]:
        value = number(exp.column(name, quoted=True), held)
        levels = [quantile(value.copy(), level).as_(f"q{at}") for at, level in enumerate(_LEVELS.tolist())]
        found = self.source.table(exp.select(*levels).from_(ROWS)).to_pylist()[0]
        return [float(value) for value in found.values() if value is not None]


@dataclass(frozen=True)
class _Noisy:
    """Outlines of all other tables."""

    source: Source
    policy: Policy
    noise: Noise

    def of(self, numbers: dict[str, Kind], texts: list[str]) -> _Sketch:
        """Of these columns, and how numbers are held."""
        quartiles, spend = self._quartiles(numbers)
        categories, more = self._categories(texts)
        spend += more
        delta = self.policy.delta
        said = describe_epsilon(epsilon_of(spend.rho, delta - spend.delta), delta, self.policy)
        return _Sketch(quartiles, categories, f"read off noisy counts: {said}")

    @property
    def _bounds(self) -> Bounds:
        return Bounds(person=self.policy.person, rows_per_person=self.policy.rows_per_person)

    def _quartiles(self, numbers: dict[str, Kind]) -> tuple[dict[str, list[float]], Spend]:
        if not numbers:
            return {}, Spend(0.0)
        named = [number(exp.column(n, quoted=True), h).as_(f"value_{at}") for at, (n, h) in enumerate(numbers.items())]
        sample = self.source.table(exp.select(*named).from_(sample_of(self.source, self._bounds)))
        values = {name: known(sample.column(at)) for at, name in enumerate(numbers)}

        def count(edges: dict[str, Floats]) -> dict[str, Ints]:
            return {name: count_between(values[name], at) for name, at in edges.items()}

        per_unit = self.policy.rows_per_person
        found, spend = histograms(numbers, count, sample.num_rows, self.noise, per_unit=per_unit)
        return {name: histogram.quantiles(_LEVELS).tolist() for name, histogram in found.items()}, spend

    def _categories(self, texts: list[str]) -> tuple[dict[str, list[str]], Spend]:
        """Those whose noisy count no single row, or person, would reach; see `gate.signatures`."""
        if not texts:
            return {}, Spend(0.0)
        per_unit, rows = self.policy.rows_per_person, few_of_each(self._bounds)
        total = self.source.table(exp.select(exp.func("COUNT", exp.Star()).as_("rows")).from_(rows))["rows"][0].as_py()
        sd = per_unit * max(_LEAST, _SHARE * (total + float(self.noise.draw(1, TOTAL * per_unit)[0])))
        delta = _OF_DELTA * self.policy.delta / len(texts)
        least = max(threshold(sd, per_unit, delta), self.policy.min_rows)
        out = {}
        for name in texts:
            words = [(word, rows) for word, rows in counted(self.source, rows, name) if rows > per_unit]
            counts = np.array([rows for _, rows in words], dtype=np.int64)
            noisy = counts + self.noise.draw(counts.shape, sd)
            out[name] = [word for (word, _), enough in zip(words, (noisy >= least).tolist(), strict=True) if enough]
        rho = 0.5 * (TOTAL**-2 + len(texts) * (per_unit / sd) ** 2)
        return out, Spend(rho, delta * len(texts))


def counted(source: Source, rows: exp.Expr, name: str) -> list[tuple[str, int]]:
    """Every value of a text column, and how many rows have it."""
    value = text(exp.column(name, quoted=True))
    grouped = exp.select(value.as_("category"), exp.func("COUNT", exp.Star()).as_("held")).from_(rows.copy())
    found = source.table(grouped.group_by("category"))
    pairs = zip(found["category"].to_pylist(), found["held"].to_pylist(), strict=True)
    return [(word, int(held)) for word, held in pairs if word is not None]
