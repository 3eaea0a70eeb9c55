"""The contract's cleaning rules as engine expressions: every statement reads the cleaned table.

A cleaned column keeps its name. What marks a missing value is NULL, a number is a double,
a date is text in the form 2001-12-31, and a word is spelled as agreed, in small letters where capitals make no
difference. So nothing that reads the table needs to know that it was ever anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from radocraft.contract import Cleaning, Contract, Kind, Value, show
from radocraft.errors import MissingColumn, WrongType
from radocraft.rows._checks import listed
from radocraft.rows._expressions import NUMBERS, equals, text, whole, word
from radocraft.rows.engines._base import ROWS, Cluster, Source
from radocraft.rows.engines._derived import DerivedCluster, DerivedSource

_RAW = "radocraft raw "
_DIGITS = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "m": "(0[1-9]|1[0-2])", "d": "(0[1-9]|[12][0-9]|3[01])"}
_ISO = "%Y-%m-%d"
_CENTURY = "69"
_THOUSANDS = {",": ". '’", ".": ", '’"}
_NUMBER = "^[+-]?(([0-9]{{1,3}}([{apart}][0-9]{{3}})+|[0-9]+)([{point}][0-9]*)?|[{point}][0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class ColumnRule:
    """What is done to one column: what the contract says of it, and whether it is read as a date."""

    cleaning: Cleaning = field(default_factory=Cleaning)
    missing: tuple[Value, ...] = ()
    dated: bool = False

    def applied(self, raw: exp.Expr, kind: Kind) -> tuple[exp.Expr, Kind]:
        """The column as it is found from now on, and how the engine then holds it."""
        reading, held = self._reading(raw, kind)
        marks = self._marks(raw, kind)
        return (reading if marks is None else exp.Case().when(marks, exp.null()).else_(reading)), held

    def unread(self, raw: exp.Expr, kind: Kind) -> exp.Expr | None:
        """Where a cell is neither a number or date in the way that was agreed nor missing; None if it cannot be."""
        reading, _ = self._reading(raw, kind)
        if kind != "text" or not (self.cleaning.decimal or self._format):
            return None
        gone = [raw.copy().is_(exp.null()), exp.EQ(this=word(raw), expression=exp.Literal.string("nan"))]
        marks = self._marks(raw, kind)
        return exp.and_(exp.not_(exp.or_(*gone, *([] if marks is None else [marks]))), reading.is_(exp.null()))

    @property
    def _format(self) -> str | None:
        return self.cleaning.format or (_ISO if self.dated else None)

    def _marks(self, raw: exp.Expr, kind: Kind) -> exp.Expr | None:
        """Whether a cell says that nothing is known."""
        if kind in NUMBERS:
            numbers = [mark for mark in self.missing if isinstance(mark, int | float) and not isinstance(mark, bool)]
            return exp.or_(*(equals(raw, kind, mark) for mark in numbers)) if numbers else None
        if not self.missing or kind not in ("text", "date"):
            return None
        plain = word(raw) if self.cleaning.fold else exp.func("TRIM", text(raw))
        return plain.isin(*(self._word(show(mark)) for mark in self.missing))

    def _reading(self, raw: exp.Expr, kind: Kind) -> tuple[exp.Expr, Kind]:
        if kind == "text" and self.cleaning.decimal:
            return _decimal(raw, self.cleaning.decimal), "never-nan"
        if kind == "text" and self._format:
            return _iso(raw, self._format), "text"
        if self.cleaning.values and kind != "other":
            return self._agreed(raw, kind), "text"
        if kind == "text" and self.cleaning.fold:
            return word(raw), "text"
        return raw.copy(), kind

    def _agreed(self, raw: exp.Expr, kind: Kind) -> exp.Expr:
        """The agreed word for what stands there."""
        case, plain = exp.Case(), word(raw) if self.cleaning.fold else exp.func("TRIM", text(raw))
        for theirs, ours in self.cleaning.values.items():
            stands = _stands(plain, raw, kind, self._word(theirs))
            case = case.when(stands, _quoted(str(self.cleaning.word(show(ours)))), copy=False)
        return case.else_(plain.copy(), copy=False)

    def _word(self, mark: str) -> str:
        return str(self.cleaning.word(mark)).strip(" ")


def _stands(plain: exp.Expr, raw: exp.Expr, kind: Kind, theirs: str) -> exp.Expr:
    """Whether a cell says this."""
    if kind in NUMBERS:
        with suppress(ValueError):
            return equals(raw, kind, float(theirs))
    if kind == "boolean" and theirs in ("true", "false"):
        return equals(raw, kind, theirs == "true")
    return exp.EQ(this=plain.copy(), expression=_quoted(theirs))


def _decimal(raw: exp.Expr, point: str) -> exp.Expr:
    """A number whose thousands may stand apart; NULL if it is none."""
    digits = plain = exp.func("TRIM", text(raw))
    for mark in _THOUSANDS[point]:
        digits = exp.func("REPLACE", digits, _quoted(mark), _quoted(""))
    digits = exp.func("REPLACE", digits, _quoted(","), _quoted(".")) if point == "," else digits
    looks = exp.RegexpLike(this=plain.copy(), expression=_quoted(number_pattern(point)))
    return exp.Case().when(looks, exp.TryCast(this=digits, to=exp.DataType.build("DOUBLE")))


def _iso(raw: exp.Expr, written: str) -> exp.Expr:
    """A date as text in the form 2001-12-31; NULL if it is none."""
    pattern, parts, mark = date_pattern(written)
    plain, pieces, start = exp.func("TRIM", text(raw)), dict[str, exp.Expr](), 1
    head = _split(_split(plain, " ", 1), "T", 1)
    for at, part in enumerate(parts, start=1):
        width = 4 if part == "Y" else 2
        cut = exp.Substring(this=plain.copy(), start=whole(start), length=whole(width))
        pieces[part.lower()] = _split(head, mark, at) if mark else cut
        start += width
    year, month, day = (_padded(pieces[part]) for part in ("y", "m", "d"))
    if "y" in parts:
        century = exp.Case().when(exp.GTE(this=year.copy(), expression=_quoted(_CENTURY)), _quoted("19"))
        year = exp.DPipe(this=century.else_(_quoted("20")), expression=year)
    return exp.Case().when(exp.RegexpLike(this=plain.copy(), expression=_quoted(pattern)), _dated(year, month, day))


def number_pattern(point: str) -> str:
    """Numbers with this mark before the fraction, and with the others or none between thousands."""
    return _NUMBER.format(apart=_THOUSANDS[point], point=point)


def date_pattern(written: str) -> tuple[str, tuple[str, ...], str]:
    """A format as a regular expression, its parts in order (of Y, y, m, d), and the mark between them.

    Examples
    --------
    >>> date_pattern("%Y%m%d")
    ('^[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])([ T].*)?$', ('Y', 'm', 'd'), '')
    """
    parts, mark = re.findall("%(.)", written), written[2].strip("%")
    each = (_DIGITS[part].replace("0[", "0?[") if mark else _DIGITS[part] for part in parts)
    return f"^{(f'[{mark}]' if mark else '').join(each)}([ T].*)?$", tuple(parts), mark


def _dated(year: exp.Expr, month: exp.Expr, day: exp.Expr) -> exp.Expr:
    """The parts as one text, if there is such a day."""
    number = exp.cast(year.copy(), "INT")
    fourth, hundredth, longest = (
        exp.EQ(this=exp.Mod(this=number.copy(), expression=whole(n)), expression=whole(0)) for n in (4, 100, 400)
    )
    leap = exp.and_(fourth, exp.or_(exp.not_(hundredth), longest))
    last = (
        exp.Case()
        .when(month.copy().isin("04", "06", "09", "11"), _quoted("30"))
        .when(
            exp.EQ(this=month.copy(), expression=_quoted("02")),
            exp.Case().when(leap, _quoted("29")).else_(_quoted("28")),
        )
        .else_(_quoted("31"))
    )
    there = exp.LTE(this=day.copy(), expression=last)
    said = year
    for piece in (month, day):
        said = exp.DPipe(this=exp.DPipe(this=said, expression=_quoted("-")), expression=piece)
    return exp.Case().when(there, said)


def _split(text: exp.Expr, mark: str, at: int) -> exp.Expr:
    return exp.SplitPart(this=text.copy(), delimiter=_quoted(mark), part_index=whole(at))


def _padded(piece: exp.Expr) -> exp.Expr:
    """Two digits at least; of four all."""
    short = exp.LT(this=exp.func("LENGTH", piece.copy()), expression=whole(2))
    return exp.Case().when(short, exp.DPipe(this=_quoted("0"), expression=piece.copy())).else_(piece)


def _quoted(text: str) -> exp.Expr:
    return exp.Literal.string(text)


@dataclass(frozen=True)
class CleanedSource(DerivedSource):
    """A source whose every statement finds cleaned columns."""

    rules: Mapping[str, ColumnRule]

    @cached_property
    def _found(self) -> dict[str, tuple[exp.Expr, Kind]]:
        kinds = self.whole.kinds()
        return {name: rule.applied(exp.column(name, quoted=True), kinds[name]) for name, rule in self.rules.items()}

    def kinds(self) -> dict[str, Kind]:
        """As the columns are once they are cleaned."""
        return {name: self._found[name][1] if name in self._found else k for name, k in self.whole.kinds().items()}

    def seen(self) -> exp.Select:
        """The table with these columns cleaned."""
        raw = {name: exp.column(name, quoted=True) for name in self.whole.kinds()}
        columns: list[exp.Expr] = [column for name, column in raw.items() if name not in self._found]
        columns += [found.copy().as_(name, quoted=True) for name, (found, _) in self._found.items()]
        columns += [raw[name].copy().as_(_RAW + name, quoted=True) for name in self._found]
        return exp.select(*columns).from_(ROWS)

    def as_it_is(self, name: str) -> exp.Column:
        """A column of the table without any cleaning."""
        return exp.column(_RAW + name if name in self.rules else name, quoted=True)

    def check(self) -> None:
        """Every cell of a column of numbers or dates must be one, or mean that nothing is known."""
        kinds, asked = self.whole.kinds(), dict[str, exp.Expr]()
        for name, rule in self.rules.items():
            if (unread := rule.unread(exp.column(name, quoted=True), kinds[name])) is not None:
                asked[name] = exp.func("COUNT", exp.Case().when(unread, whole(1)))
        if not asked:
            return
        query = exp.select(*(count.as_(f"c_{at}") for at, count in enumerate(asked.values()))).from_(ROWS)
        found = self.whole.table(query).to_pylist()[0]
        if wrong := [name for at, name in enumerate(asked) if found[f"c_{at}"]]:
            raise WrongType(
                f"{listed(wrong)} in '{self.name}' has cells that are neither written as the contract says nor "
                "missing. Correct `decimal` or `format` under [peers.NAME.cleaning], or name what marks a missing "
                "value (`missing`); `radocraft profile` proposes both."
            )


class CleanedCluster(CleanedSource, DerivedCluster):
    """The same of a cluster."""


def cleaned(source: Source, contract: Contract, peer: str, own: Iterable[str] | None = None) -> Source:
    """A peer's table as its statements find it under a contract.

    Parameters
    ----------
    source
        Where the rows are.
    contract, peer
        Whose rules they are.
    own
        The columns that are the peer's, if others may be in the table; all are if None, and then every
        column that has a rule must be there.
    """
    return with_rules(source, rules_of(source, contract, peer, own))


def rules_of(source: Source, contract: Contract, peer: str, own: Iterable[str] | None = None) -> dict[str, ColumnRule]:
    """What is done to which columns; see `cleaned`."""
    held, kinds = contract.peer(peer), source.kinds()
    if own is None and (absent := [name for name in held.cleaning if name not in kinds]):
        raise MissingColumn(
            f"'{source.name}' lacks {listed(absent)}, which [peers.{peer}.cleaning] has a rule for. "
            f"It has {listed(list(kinds))}. Rules go by the names that columns have in the table."
        )
    dated = {contract.column_of(peer, shared.name) for shared in contract.shared if shared.date is not None}
    dated |= {contract.column_of(peer, name) for name, feature in held.features.items() if feature.kind == "date"}
    rules = {}
    for name in kinds if own is None else [name for name in own if name in kinds]:
        said = held.cleaning.get(name, Cleaning())
        rule = ColumnRule(said, (*said.missing, *held.missing), name in dated)
        if rule != ColumnRule():
            rules[name] = rule
    return rules


def as_it_is(source: Source, name: str) -> exp.Column:
    """A column of a source's table, to be handed through without any cleaning."""
    return source.as_it_is(name) if isinstance(source, CleanedSource) else exp.column(name, quoted=True)


def with_rules(source: Source, rules: Mapping[str, ColumnRule], *, check: bool = True) -> Source:
    """A source with these columns cleaned, every cell of which can be read; itself if there is nothing to do."""
    if not rules or isinstance(source, CleanedSource):
        return source
    made = (CleanedCluster if isinstance(source, Cluster) else CleanedSource)(source, rules)
    if check:
        made.check()
    return made
