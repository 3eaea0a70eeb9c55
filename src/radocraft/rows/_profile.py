"""Profiles: what a peer shows of its table before there is a contract.

A profile holds no row. By default it names the columns, their kinds and how they are written. With
``outline`` it adds what helps to agree: how much is missing and by which marks, about how many
different values there are, range and quartiles rounded to two digits, the categories held by enough rows, and which
columns can be no feature. All figures are read off noisy counts, as everything that leaves; the
profile says what that is worth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats, Ints
from radocraft.contract import Cleaning, ColumnProfile, Profile
from radocraft.gate import TOTAL, Noise, Policy, Spend, describe_epsilon, epsilon_of, histograms, threshold
from radocraft.rows._cleaning import ColumnRule, with_rules
from radocraft.rows._constants import count_between, few_of_each, known, quantile, sample_of
from radocraft.rows._expressions import NUMBERS, date_number, number, text, whole
from radocraft.rows._forms import MARKS, Form, forms
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._opening import open_source
from radocraft.sums import Bounds

_MANY = 30
_LEVELS = np.array([0.01, 0.25, 0.5, 0.75, 0.99])
_FEWEST = 20
_LEAST, _SHARE = 2.0, 1 / 1000
_OF_DELTA = 0.1
_SURE = 4.0
_ENOUGH = 500
_WORDS = 3


def profile(data: Any, *, outline: bool = False, policy: Policy | None = None, noise: Noise | None = None) -> Profile:
    """Name a table's columns and kinds; with ``outline``, sketch their values without showing a row.

    Parameters
    ----------
    data
        A path, a data frame, a source; see `open_source`.
    outline
        Add how much is missing, how many different values there are, rounded range and quartiles, and
        categories held by enough rows to stand out of the noise.
    policy
        The peer's rules; those of `Policy()` if None. Only in mode "exact" is there no noise.
    noise
        Where noise comes from; the operating system's randomness if None.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import radocraft as rc
    >>> table = pa.table({"age": [31, 52], "paid": ["1.200,50", "NA"], "town": ["Bern", None]})
    >>> for column in rc.profile(table).columns:
    ...     print(column.name, column.kind, column.cleaning)
    age number None
    paid number decimal = ","
    town text None
    """
    source, rules = open_source(data), policy or Policy()
    found = forms(source)
    if not outline:
        return Profile(columns=tuple(_column(name, form) for name, form in found.items()))
    sketch = _Sketch(source, found, rules, Noise() if noise is None else noise)
    return Profile(columns=tuple(map(sketch.column, found)), guarantee=sketch.guarantee)


def _column(name: str, form: Form) -> ColumnProfile:
    return ColumnProfile(name=name, kind=form.kind, cleaning=form.cleaning if form.cleaning != Cleaning() else None)


def _rounded(values: Iterable[float], digits: int) -> tuple[float, ...]:
    return tuple(float(f"{value:.{digits}g}") for value in values)


@dataclass(frozen=True)
class _ColumnFacts:
    """Of a column, with noise: cells that hold something, different ones, and whole numbers or cells of many words."""

    present: float
    distinct: float
    odd: float


@dataclass
class _Sketch:
    """Outlines of a table's columns; ``spend`` is what they cost."""

    source: Source
    forms: dict[str, Form]
    policy: Policy
    noise: Noise
    spend: Spend = field(default_factory=lambda: Spend(0.0))
    constant: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Everything is counted at once, so that what it costs is known."""
        _ = self.total, self.facts, self.values, self.words, self.marks

    @property
    def guarantee(self) -> str:
        """What the noise is worth."""
        if not self.policy.noisy:
            return self.policy.guarantee
        delta = self.policy.delta
        said = describe_epsilon(epsilon_of(self.spend.rho, delta - self.spend.delta), delta, self.policy)
        return f"read off noisy counts: {said}"

    def column(self, name: str) -> ColumnProfile:
        """What is told of one column."""
        form, facts, values = self.forms[name], self.facts[name], self.values.get(name)
        cleaning = form.cleaning.model_copy(update={"missing": self.marks.get(name, ())})
        words = self.words.get(name, [])
        told = None
        if values is not None:
            counts = form.kind == "number" and facts.odd > 0.99 * facts.present
            told = _rounded(np.ceil(values) if counts else values, 3 if form.kind == "date" else 2)
        plain = {Cleaning(fold=True).word(word) for word in words}
        if len(plain) < len(words) or any(word != word.strip(" ") for word in words):
            cleaning = cleaning.model_copy(update={"fold": True})
            words = sorted(map(str, plain))
        return ColumnProfile(
            name=name,
            kind=form.kind,
            cleaning=None if cleaning == Cleaning() else cleaning,
            quartiles=tuple(sorted({*told[1:-1]})) if told else None,
            span=(told[0], told[-1]) if told else None,
            categories=tuple(words) if 0 < len(words) <= _MANY else None,
            missing=round(min(max(1.0 - facts.present / max(self.total, 1.0), 0.0), 1.0), 2),
            distinct=int(float(f"{facts.distinct:.2g}")) if facts.distinct > 3.0 * self.sd else None,
            unfit=self._unfit(name, facts, words),
        )

    def _unfit(self, name: str, facts: _ColumnFacts, words: list[str]) -> Any:
        kind, many = self.forms[name].kind, facts.distinct > max(_MANY, 3.0 * self.sd)
        if kind == "text" and many and (facts.distinct * 2 > facts.present or facts.odd * 2 > facts.present):
            return "free text" if facts.odd * 2 > facts.present else "identifier"
        if facts.present < _ENOUGH:
            return None
        if kind == "number" and facts.odd > 0.99 * facts.present and facts.distinct > 0.99 * facts.present:
            return "identifier"
        alone = name in self.constant or (kind == "text" and len(words) == 1)
        return "constant" if alone and not many and facts.present > 0.99 * self.total else None

    @property
    def sd(self) -> float:
        """The noise in every count of rows and of different values."""
        return TOTAL * self.policy.rows_per_person if self.policy.noisy else 0.0

    @cached_property
    def total(self) -> float:
        """How many rows there are."""
        star = exp.func("COUNT", exp.Star()).as_("rows")
        rows = self.source.table(exp.select(star).from_(self._rows))["rows"][0].as_py()
        return float(self._noisy(np.array([rows]))[0])

    @cached_property
    def facts(self) -> dict[str, _ColumnFacts]:
        """What is counted of every column."""
        asked: list[exp.Expr] = []
        for at, (name, kind) in enumerate(self._clean.kinds().items()):
            raw = exp.column(name, quoted=True)
            value = number(raw, kind) if kind in NUMBERS else text(raw)
            odd: exp.Expr = exp.EQ(this=exp.func("FLOOR", value.copy()), expression=value.copy())
            if kind not in NUMBERS:
                spaces = exp.func("REPLACE", value.copy(), exp.Literal.string(" "), exp.Literal.string(""))
                short = exp.Sub(this=exp.func("LENGTH", value.copy()), expression=exp.func("LENGTH", spaces))
                odd = exp.GTE(this=short, expression=whole(_WORDS))
            asked.append(exp.func("COUNT", value).as_(f"present_{at}"))
            asked.append(exp.Count(this=exp.Distinct(expressions=[value.copy()])).as_(f"distinct_{at}"))
            asked.append(exp.func("COUNT", exp.Case().when(odd, whole(1))).as_(f"odd_{at}"))
        found = self._clean.table(exp.select(*asked).from_(self._rows)).to_pylist()[0]
        counts = self._noisy(np.array([*found.values()])).reshape(-1, 3).tolist()
        return {name: _ColumnFacts(*counts[at]) for at, name in enumerate(self.forms)}

    @cached_property
    def values(self) -> dict[str, Floats]:
        """Five quantiles of every number, and of the year of every date, that enough rows have."""
        kinds, wanted = self._clean.kinds(), dict[str, exp.Expr]()
        for name, form in self.forms.items():
            raw, kind = exp.column(name, quoted=True), kinds[name]
            if form.kind == "number":
                wanted[name] = number(raw, kind)
            if form.kind == "date":
                wanted[name] = number(date_number(raw, kind, "year", None), "integer")
        found = self._quantiles(wanted) if wanted else {}
        return {name: found[name] for name in found if self.facts[name].present >= _FEWEST}

    def _quantiles(self, wanted: dict[str, exp.Expr]) -> dict[str, Floats]:
        if not self.policy.noisy:
            asked = [
                quantile(v, level).as_(f"q_{at}_{n}")
                for at, v in enumerate(wanted.values())
                for n, level in enumerate(_LEVELS.tolist())
            ]
            row = [*self._clean.table(exp.select(*asked).from_(ROWS)).to_pylist()[0].values()]
            table = np.array(row, dtype=np.float64).reshape(len(wanted), -1)
            self.constant |= {name for name, own in zip(wanted, table, strict=True) if own[0] == own[-1]}
            return {name: own for name, own in zip(wanted, table, strict=True) if np.isfinite(own).all()}
        named = [value.as_(f"value_{at}") for at, value in enumerate(wanted.values())]
        sample = self._clean.table(exp.select(*named).from_(sample_of(self._clean, self._bounds)))
        values = {name: known(sample.column(at)) for at, name in enumerate(wanted)}

        def count(edges: dict[str, Floats]) -> dict[str, Ints]:
            return {name: count_between(values[name], at) for name, at in edges.items()}

        per_unit = self.policy.rows_per_person
        found, spend = histograms(wanted, count, sample.num_rows, self.noise, per_unit=per_unit)
        self.spend += spend
        self.constant |= {name for name, histogram in found.items() if histogram.constant}
        return {name: histogram.quantiles(_LEVELS) for name, histogram in found.items()}

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """Categories: those whose noisy count no single row, or person, would reach; see `gate.signatures`."""
        texts = [name for name, form in self.forms.items() if form.kind == "text"]
        held = {name: counted(self._clean, self._rows, name) for name in texts}
        if not self.policy.noisy:
            return {name: sorted(w for w, rows in own if rows >= self.policy.min_rows) for name, own in held.items()}
        if not texts:
            return {}
        per_unit, sd = self.policy.rows_per_person, self._of_words
        delta = _OF_DELTA * self.policy.delta / len(texts)
        least = max(threshold(sd, per_unit, delta), self.policy.min_rows)
        out = {}
        for name, own in held.items():
            words = [(word, rows) for word, rows in own if rows > per_unit]
            counts = np.array([rows for _, rows in words], dtype=np.int64)
            noisy = counts + self.noise.draw(counts.shape, sd)
            out[name] = sorted(w for (w, _), enough in zip(words, (noisy >= least).tolist(), strict=True) if enough)
        self.spend += Spend(0.5 * len(texts) * (per_unit / sd) ** 2, delta * len(texts))
        return out

    @cached_property
    def marks(self) -> dict[str, tuple[str, ...]]:
        """Marks of missing values that enough cells have, out of a public list."""
        texts = [name for name, kind in self.source.kinds().items() if kind == "text"]
        if not texts:
            return {}
        asked = []
        for at, name in enumerate(texts):
            plain = exp.func("TRIM", text(exp.column(name, quoted=True)))
            marked = [exp.Case().when(plain.isin(mark), whole(1)) for mark in MARKS]
            asked += [exp.func("COUNT", one).as_(f"n_{at}_{n}") for n, one in enumerate(marked)]
        found = [*self.source.table(exp.select(*asked).from_(self._rows)).to_pylist()[0].values()]
        sd = min(self._of_words, self.sd)
        counts = np.array(found, dtype=np.float64).reshape(len(texts), -1)
        if self.policy.noisy:
            counts = counts + self.noise.draw(counts.shape, sd)
            self.spend += Spend(0.5 * len(texts) * (self.policy.rows_per_person / sd) ** 2)
        least = max(_SURE * sd, self.policy.min_rows)
        return {
            name: tuple(mark for mark, count in zip(MARKS, own, strict=True) if count >= least)
            for name, own in zip(texts, counts.tolist(), strict=True)
        }

    def _noisy(self, counts: Ints) -> Floats:
        """Counts that one row changes by one each."""
        if not self.policy.noisy:
            return counts.astype(np.float64)
        self.spend += Spend(0.5 * len(counts) / TOTAL**2)
        return np.asarray(counts + self.noise.draw(counts.shape, self.sd), dtype=np.float64)

    @property
    def _of_words(self) -> float:
        """The noise in counts of categories."""
        return self.policy.rows_per_person * max(_LEAST, _SHARE * self.total)

    @property
    def _bounds(self) -> Bounds:
        return Bounds(person=self.policy.person, rows_per_person=self.policy.rows_per_person)

    @property
    def _rows(self) -> exp.Expr:
        return few_of_each(self._bounds)

    @cached_property
    def _clean(self) -> Source:
        """The table as it is read once it is cleaned."""
        kinds = self.source.kinds()
        marks = {name: MARKS if kind == "text" else () for name, kind in kinds.items()}
        rules = {}
        for name, form in self.forms.items():
            number_as_text = form.kind == "number" and form.cleaning.decimal is None
            cleaning = Cleaning(decimal=".") if number_as_text else form.cleaning
            rules[name] = ColumnRule(cleaning, marks[name], form.kind == "date")
        rules = {name: rule for name, rule in rules.items() if kinds[name] == "text" and name != self.policy.person}
        return with_rules(self.source, rules, check=False)


def counted(source: Source, rows: exp.Expr, name: str) -> list[tuple[str, int]]:
    """Every value of a text column, and how many rows have it."""
    value = text(exp.column(name, quoted=True))
    grouped = exp.select(value.as_("category"), exp.func("COUNT", exp.Star()).as_("held")).from_(rows.copy())
    found = source.table(grouped.group_by("category"))
    pairs = zip(found["category"].to_pylist(), found["held"].to_pylist(), strict=True)
    return [(word, int(held)) for word, held in pairs if word is not None]
