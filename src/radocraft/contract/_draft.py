"""A first draft of a contract, from the peers' profiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from radocraft.contract._cleaning import Cleaning, key, toml
from radocraft.contract._outline import ColumnProfile, Profile
from radocraft.contract._pairs import label_columns, of_birth, pair_columns, words_of

_AGREE = "# AGREE: "
_YES, _NO = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
_FEW = 20
_UNFIT = {
    "identifier": "different in nearly every row, so it says who somebody is",
    "free text": "free text",
    "constant": "the same in every row",
}


def draft_contract(
    profiles: dict[str, Profile],
    *,
    name: str,
    label: str,
    labels: Mapping[str, str] | None = None,
    positive: str | None = None,
    negative: str | None = None,
    columns: bool = False,
) -> str:
    """Draft a contract's text from what each peer may tell.

    Columns that every peer has, if only under a like name, become shared features, and a day of birth the key.
    Of all others each peer makes one score; with ``columns`` each of them is a private feature instead.
    What the profiles propose for cleaning is written down. What is open, or differs between peers, stands under a line
    that begins with ``# AGREE:``; what is left out is named with its reason.

    Parameters
    ----------
    profiles
        What `profile` tells of each peer's table.
    name, label
        What the contract is about, and the column to predict.
    labels
        What peers call that column, where its name does not tell.
    positive, negative
        The label's two values; true and false where all peers' read so, if None.
    columns
        Whether each peer's columns are summed, and not one score of them.

    Examples
    --------
    >>> from radocraft.contract import ColumnProfile, Profile
    >>> def table(*names):
    ...     return Profile(columns=tuple(ColumnProfile(name=name, kind="number") for name in names))
    >>> text = draft_contract({"bank": table("bad", "age", "income"), "shop": table("bad", "Age", "visits")},
    ...                       name="risk", label="bad", positive="1", negative="0")
    >>> [line for line in text.splitlines() if '"score"' in line]
    ['bank_score = "score"  # of income, with age', 'shop_score = "score"  # of visits, with age']
    """
    called = label_columns(profiles, label, labels or {})
    pairs = pair_columns(profiles, called)
    born = None if columns else next((pair for pair in pairs if of_birth(pair)), None)
    usable = [pair for pair in pairs if pair is not born]
    shared = [_Shared.of(pair) for pair in usable if _agreeable(pair)]
    lines = [f"name = {toml(name)}", "", *_label(profiles, label, called, positive, negative)]
    for feature in shared:
        lines += ["", "[[shared]]", *feature.lines()]
    lines += _too_many([pair for pair in usable if not _agreeable(pair)])
    if not columns:
        lines += _key(born)
    taken = {label, *(feature.name for feature in shared)}
    for peer, profile in profiles.items():
        names = {label: called[peer]} | {feature.name: feature.pair[peer].name for feature in shared}
        names |= {next(iter(born.values())).name: born[peer].name} if born else {}
        own = [c for c in profile.columns if c.name not in names.values()]
        fit = [c for c in own if c.unfit is None and c.kind != "other"]
        folded = {feature.pair[peer].name for feature in shared if feature.folds}
        lines += _reading(peer, names, [c for c in profile.columns if c in fit or c.name in names.values()], folded)
        lines += ["", f"[peers.{key(peer)}.features]", *_left_out([c for c in own if c not in fit])]
        if columns:
            lines += [line for column in fit for line in _private(column)]
            continue
        score = _score_name(peer, taken)
        taken.add(score)
        lines.append(_score(score, fit, len(fit) < len(own), [feature.name for feature in shared]))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Shared:
    """A feature that all peers have, and what it is at each of them."""

    name: str
    pair: Mapping[str, ColumnProfile]

    @classmethod
    def of(cls, pair: Mapping[str, ColumnProfile]) -> _Shared:
        """Under the shortest of its names."""
        return cls(min((column.name for column in pair.values()), key=len), pair)

    @property
    def columns(self) -> list[ColumnProfile]:
        """At every peer."""
        return [*self.pair.values()]

    @property
    def folds(self) -> bool:
        """Whether spellings differ in capitals or blanks, at a peer or between peers."""
        lists = [column.categories or () for column in self.columns]
        plain = [{str(Cleaning(fold=True).word(word)) for word in words} for words in lists]
        several = len({word for words in lists for word in words}) > len({word for words in plain for word in words})
        return several or any(column.cleaning is not None and column.cleaning.fold for column in self.columns)

    def lines(self) -> list[str]:
        """Its section."""
        marks = []
        if len({"".join(words_of(column.name)) for column in self.columns}) > 1:
            marks.append(f"is this the same thing? {_said({p: c.name for p, c in self.pair.items()})}")
        date = ['date = "year"'] if self.columns[0].kind == "date" else []
        codes, open_points = self._edges() if self.columns[0].kind in ("number", "date") else self._categories()
        return [*(_AGREE + mark for mark in (*marks, *open_points)), f"name = {toml(self.name)}", *date, codes]

    def _edges(self) -> tuple[str, list[str]]:
        quartiles = [column.quartiles for column in self.columns if column.quartiles]
        if not quartiles:
            return "edges = []", ["bin edges, the same at every peer"]
        if len({len(each) for each in quartiles}) == 1:
            edges = [fmean(each) for each in zip(*quartiles, strict=True)]
        else:
            edges = [*max(quartiles, key=len)]
        digits = 3 if self.columns[0].kind == "date" else 2
        edges = sorted({float(f"{edge:.{digits}g}") for edge in edges})
        middles = [(each[0], each[len(each) // 2], each[-1]) for each in quartiles]
        apart = any(not low <= other[1] <= high for low, _, high in middles for other in middles)
        spans = {peer: "{:g} to {:g}".format(*column.span) for peer, column in self.pair.items() if column.span}
        marks = [f"ranges differ: {_said(spans)}; are units the same?"] if apart else []
        return f"edges = [{', '.join(f'{edge:g}' for edge in edges)}]", marks

    def _categories(self) -> tuple[str, list[str]]:
        if all(column.kind == "boolean" for column in self.columns):
            return "categories = [false, true]", []
        fold = Cleaning(fold=self.folds)
        lists = {peer: {str(fold.word(w)) for w in column.categories or ()} for peer, column in self.pair.items()}
        union = sorted(set().union(*lists.values()))
        marks = [] if union else ["the categories, spelled as in the tables"]
        rest = {peer: ", ".join(sorted({*union} - words)) for peer, words in lists.items()}
        lacking = {peer: f"lacks {words}" for peer, words in rest.items() if words}
        marks += [f"not all peers have the same categories: {_said(lacking)}"] if union and lacking else []
        return f"categories = {toml(union)}", marks


def _agreeable(pair: Mapping[str, ColumnProfile]) -> bool:
    """Whether codes can be agreed on: of text there must be few values, as far as that was told."""
    return all(c.kind != "other" and not (c.kind == "text" and c.distinct and not c.categories) for c in pair.values())


def _too_many(pairs: list[Mapping[str, ColumnProfile]]) -> list[str]:
    said = []
    for pair in pairs:
        column = next(iter(pair.values()))
        if column.kind != "other":
            values = f"about {column.distinct:,} different values" if column.distinct else "many different values"
            said.append(_remark(f"not shared: {column.name}, {values}; agree on coarser ones if it matters"))
    return ["", *said] if said else []


def _said(words: Mapping[str, str]) -> str:
    return _plain("; ".join(f"{peer} {word}" for peer, word in words.items()))


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _remark(text: str) -> str:
    return f"# {_plain(text)}"


def _key(born: Mapping[str, ColumnProfile] | None) -> list[str]:
    """The key that is proposed, or how one would be written; whether an attribute is neutral only people know."""
    if born is None:
        return [
            "",
            "# What all have and what tells nothing of the label, such as a birthday, may relate the scores:",
            "# [[key]]",
            '# name = "birthday"',
            "# day_of_year = true",
        ]
    name = next(iter(born.values())).name
    mark = f"{_AGREE}the day of birth, without the year, should tell nothing of the label; it relates the scores"
    return ["", "[[key]]", mark, f"name = {toml(name)}", "day_of_year = true"]


def _label(
    profiles: Mapping[str, Profile], label: str, called: Mapping[str, str], positive: str | None, negative: str | None
) -> list[str]:
    lines = ["[label]", f"column = {toml(label)}"]
    truths = all(profiles[peer].by_name[column].kind == "boolean" for peer, column in called.items())
    spelled = {str(value).strip().lower() for value in (positive, negative)}
    if truths and positive is None and negative is None:
        return [*lines, "positive = true  # 1, yes, or as [peers.NAME.cleaning] says", "negative = false"]
    if truths and len(called) > 1 and len(spelled & {*_YES}) == len(spelled & {*_NO}) == 1:
        yes, no = ("true", "false") if str(positive).strip().lower() in _YES else ("false", "true")
        return [*lines, f"positive = {yes}", f"negative = {no}"]
    if positive is None or negative is None:
        lines.append(f"{_AGREE}the value to predict, and the other one")
    values = {"positive": positive or "", "negative": negative or ""}
    return lines + [f"{name} = {_value(value)}" for name, value in values.items()]


def _reading(peer: str, names: Mapping[str, str], used: list[ColumnProfile], folded: set[str]) -> Iterator[str]:
    """What the peer calls shared columns, and how its table is read, as its profile proposes."""
    marks = sorted({str(mark) for c in used for mark in (c.cleaning.missing if c.cleaning else ())})
    if marks:
        yield from ("", f"[peers.{key(peer)}]", f"missing = {toml(marks)}  # found in its table, in whichever column")
    if renamed := {name: column for name, column in names.items() if name != column}:
        yield from ("", f"[peers.{key(peer)}.columns]")
        yield from (f"{key(name)} = {toml(column)}" for name, column in renamed.items())
    rules = {}
    for column in used:
        rule = (column.cleaning or Cleaning()).model_copy(update={"missing": ()})
        fold = column.name in folded or rule.fold
        if (rule := rule.model_copy(update={"fold": fold})) != Cleaning():
            rules[column.name] = rule
    if rules:
        yield from ("", f"[peers.{key(peer)}.cleaning]  # how cells are read; see `radocraft profile`")
        yield from (f"{key(name)} = {{ {rule} }}{_why(rule)}" for name, rule in rules.items())


def _why(rule: Cleaning) -> str:
    if rule.decimal:
        return f"  # 1{'.' if rule.decimal == ',' else ','}234{rule.decimal}5"
    if rule.values:
        return "  # what stands there, and what it means"
    return "  # capitals and blanks make no difference" if rule.fold else ""


def _left_out(columns: list[ColumnProfile]) -> Iterator[str]:
    for column in columns:
        why = _UNFIT.get(column.unfit or "", "neither number, truth value, date nor text")
        yield _remark(f"left out: {column.name}, {why}")


def _score_name(peer: str, taken: set[str]) -> str:
    name = f"{re.sub('[^a-zA-Z0-9_-]', '_', peer)}_score"
    while name in taken:
        name += "_"
    return name


def _score(name: str, own: list[ColumnProfile], chosen: bool, shared: list[str]) -> str:
    """The peer's score; of some of its columns if others are left out."""
    if chosen and own:
        return f'{name} = {{ kind = "score", of = {toml([column.name for column in own])} }}'
    also = f", with {', '.join(shared)}" if shared else ""
    names = ", ".join(column.name for column in own)
    what = f"of {names}{also}" if own else "this peer has no column of its own, so this adds nothing"
    return f'{name} = "score"  {_remark(what)}'


def _private(column: ColumnProfile) -> Iterator[str]:
    name = key(column.name)
    if column.kind == "number":
        yield f'{name} = "{"spline" if (column.distinct or 0) > _FEW else "numeric"}"'
    elif column.kind in ("boolean", "date"):
        yield f'{name} = "{column.kind}"'
    elif column.distinct and not column.categories:
        yield _remark(f"left out: {column.name}, about {column.distinct:,} different values; agree on coarser ones")
    else:
        if not column.categories:
            yield f"{_AGREE}its categories"
        yield f'{name} = {{ kind = "categorical", categories = {toml(column.categories or ())} }}'


def _value(text: str) -> str:
    """A label's value as TOML: numbers and truth values bare, all else quoted."""
    if text in ("true", "false"):
        return text
    try:
        float(text)
    except ValueError:
        return toml(text)
    return text if text.strip().lstrip("+-")[:1].isdigit() and "_" not in text else toml(text)
