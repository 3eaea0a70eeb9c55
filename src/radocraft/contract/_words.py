"""A contract in words."""

from __future__ import annotations

from datetime import date

from radocraft.contract._cleaning import Cleaning
from radocraft.contract._contract import Contract, Peer
from radocraft.contract._features import (
    Boolean,
    Categorical,
    Date,
    Feature,
    Interact,
    Log,
    Quantity,
    Score,
    Shared,
    Spline,
    Value,
    show,
)
from radocraft.contract._keys import Key
from radocraft.contract._labels import Label, Number, TwoValues


def describe_contract(contract: Contract) -> str:
    """A contract in words, for those who must agree to it.

    Examples
    --------
    >>> from radocraft import example_peers
    >>> print(describe_contract(example_peers(rows=10)[0]).splitlines()[0])
    "default within a year" predicts whether defaulted is yes (not no).
    """
    lines = [
        f'"{contract.name}" predicts {_label(contract.label)}.',
        f"Fingerprint {contract.fingerprint[:16]}.",
        "",
        "Every peer groups its rows by the label"
        + (
            " and these shared features; a group with too few rows gives up the last of them first:"
            if contract.shared
            else " alone; there is no shared feature."
        ),
    ]
    lines += [f"  {number}. {shared.name}: {_shared(shared)}" for number, shared in enumerate(contract.shared, start=1)]
    for peer, entry in contract.peers.items():
        lines += ["", f"{peer} adds (summed by group, never by row):"]
        for name, feature in sorted(entry.features.items()):
            column = contract.column_of(peer, name)
            renamed = f" (its column {column})" if column != name else ""
            lines.append(f"  - {name}{renamed}: {_feature(feature)}")
        lines += _cleaning(peer, entry)
    if contract.key is not None:
        lines += ["", *_key(contract, contract.key)]
    if without := [peer for peer in contract.peers if not contract.labelled(peer)]:
        lack = "lacks" if len(without) == 1 else "lack"
        lines += ["", f"{', '.join(without)} {lack} the label; it is replaced by the other peers' proportions."]
    if contract.of_scores:
        lines += ["", "Each peer's model stays at the peer. The joint model has a weight for each score."]
    else:
        lines += ["", f"The model has {'an' if contract.intercept else 'no'} intercept."]
    return "\n".join(lines)


def _cleaning(peer: str, entry: Peer) -> list[str]:
    if not (entry.missing or entry.cleaning):
        return []
    rules = {column: _read(rule) for column, rule in sorted(entry.cleaning.items())}
    whole = {"every column": _read(Cleaning(missing=entry.missing))} if entry.missing else {}
    return [f"how {peer}'s table is read:", *(f"  - {column}: {rule}" for column, rule in (whole | rules).items())]


def _label(label: Label) -> str:
    if isinstance(label, TwoValues):
        return f"whether {label.column} is {show(label.positive)} (not {show(label.negative)})"
    if isinstance(label, Number):
        bins = f", blocks by its bins {', '.join(label.names)}" if label.edges else ", blocks by signature alone"
        return f"the number {label.column}{bins}"
    return f"which of {', '.join(label.names)} {label.column} is"


def _shared(shared: Shared) -> str:
    order = "" if shared.encoding == "one-hot" else "; one number in that order"
    what = "" if shared.date is None else f"{_date(shared.date, shared.at)}: "
    return f"{what}{', '.join(shared.codes)}{order}"


def _feature(feature: Feature) -> str:
    if isinstance(feature, Categorical):
        return f"one of {', '.join(feature.codes)}"
    if isinstance(feature, Boolean):
        return "yes or no"
    if isinstance(feature, Spline):
        places = (
            "at knots from its data" if isinstance(feature.knots, int) else f"at {', '.join(map(show, feature.knots))}"
        )
        return f"a smooth curve of a number, {places}"
    if isinstance(feature, Interact):
        return f"{feature.of[0]} times {feature.of[1]}"
    if isinstance(feature, Score):
        return _score(feature)
    return _number(feature)


def _number(number: Quantity) -> str:
    what = "the logarithm of a number" if isinstance(number, Log) else "a number"
    if isinstance(number, Date):
        what = _date(number.part, number.at)
    if number.centre is None:
        return f"{what}; its centre and scale come from the data, with noise"
    return f"{what}, as (value - {number.centre:g}) / {number.scale:g}"


def _date(part: str, day: date | None) -> str:
    return f"of a date, the days up to {day}" if day is not None else f"of a date, the {part}"


def _read(rule: Cleaning) -> str:
    """How a column is read that does not say things as agreed."""
    sentences = [f"{', '.join(map(_mark, rule.missing))} mean nothing is known"] if rule.missing else []
    sentences += ["capitals and spaces around make no difference"] if rule.fold else []
    sentences += [", ".join(f"{theirs} is {show(ours)}" for theirs, ours in rule.values.items())] if rule.values else []
    sentences += [f"numbers with a decimal {'comma' if rule.decimal == ',' else 'point'}"] if rule.decimal else []
    sentences += [f"dates written as {rule.format}"] if rule.format else []
    return "; ".join(sentences)


def _mark(mark: Value) -> str:
    return show(mark) or "blanks"


def _score(score: Score) -> str:
    persons = f", all rows of one {score.group} in the same fold" if score.group else ""
    if score.fitted_elsewhere:
        return f"its column {score.column}, scores of an existing model, calibrated in {score.folds} folds{persons}"
    what = "boosted trees" if score.model == "boosting" else "a linear model"
    columns = f"{', '.join(score.of)} and the shared features" if score.of else "all its columns"
    return (
        f"the score of {what} on {columns}, each row scored by a model that did not see it "
        f"({score.folds} folds{persons})"
    )


def _key(contract: Contract, key: Key) -> list[str]:
    called = [
        f"{peer} calls it {contract.column_of(peer, key.name)}"
        for peer in contract.peers
        if contract.column_of(peer, key.name) != key.name
    ]
    also = f" ({'; '.join(called)})" if called else ""
    return [
        f"Key: {key.name}{also}, {_values(key)}. It is never a feature. Peers sum the remainders of",
        "their scores by its values, which shows how the scores are related. It must say nothing about the label.",
    ]


def _values(key: Key) -> str:
    if key.categories is not None:
        return f"one of {', '.join(map(show, key.categories))}"
    if key.edges is not None:
        return f"by bins that meet at {', '.join(map(show, key.edges))}"
    if key.last_digits is not None:
        return "its last digit" if key.last_digits == 1 else f"its last {key.last_digits} digits"
    if key.secret is not None:
        return f"mapped to {key.values} values by a keyed hash (secret file {key.secret[:16]})"
    return "the day of its year"
