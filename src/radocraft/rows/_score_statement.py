"""A model of columns as one SELECT: the table's own columns, then scores and probabilities.

It reads a table exactly as predicting does, cleaning included. Each step is a subquery over the one before, so
that no score is written, or computed, twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from radocraft.arrays import Floats
from radocraft.rows._expressions import double, times, total, whole

_FAR = 700.0
"""Farther from 0, the exponential overflows or underflows, at which Postgres stops."""


@dataclass(frozen=True)
class Formula:
    """A score, or one for each class, made of codes and values.

    ``shared`` are weights by code of each shared feature, one line per score; ``centre``, ``limits`` (the least and
    the most a value counts) and ``weights`` (one line per score) are of the private columns; ``offset`` and ``slope``
    turn scores into log-odds.
    """

    intercept: Floats
    shared: tuple[Floats, ...]
    centre: Floats
    limits: tuple[Floats, Floats]
    weights: Floats
    offset: Floats
    slope: Floats


def score_of(formula: Formula, at: int, plain: list[int], coded: tuple[tuple[int, int], ...]) -> exp.Expr:
    """One score over the columns code_0 and so on, value_0 and so on, category_0 and so on."""
    weights, parts = formula.weights[at], [double(formula.intercept[at])]
    parts += [_looked_up(f"code_{place}", lines[at]) for place, lines in enumerate(formula.shared)]
    for place, column in enumerate(plain):
        low, high = (float(limit[column]) for limit in formula.limits)
        known: exp.Expr = exp.func("COALESCE", exp.column(f"value_{place}"), double(formula.centre[column]))
        if low > -np.inf:
            known = exp.func("LEAST", exp.func("GREATEST", known, double(low)), double(high))
        known = exp.paren(exp.Sub(this=known, expression=double(formula.centre[column])))
        parts.append(exp.paren(times(known, double(weights[column]))))
    for place, (start, count) in enumerate(coded):
        own = slice(start, start + count)
        most = weights[own] * np.minimum(1.0, formula.limits[1][own])
        parts.append(_looked_up(f"category_{place}", most - formula.centre[own] @ weights[own]))
    return total(parts)


def _looked_up(name: str, weights: Floats) -> exp.Expr:
    """The weight of a code; what most have in common is said once."""
    values, counts = np.unique(weights, return_counts=True)
    most = float(values[counts.argmax()])
    case = exp.Case(this=exp.column(name))
    for code, weight in enumerate(weights.tolist()):
        if weight != most:
            case = case.when(whole(code), double(weight), copy=False)
    return case.else_(double(most), copy=False) if case.args.get("ifs") else double(most)


def scored(
    inner: exp.Select, formula: Formula, scores: list[exp.Expr], kept: list[str], names: list[str]
) -> exp.Select:
    """``inner``, which keeps the table's columns as keep_0 and so on, with scores and probabilities by ``names``."""
    held = [exp.column(f"keep_{at}") for at in range(len(kept))]
    plain = ["score"] if len(scores) == 1 else [f"score_{at}" for at in range(len(scores))]
    named = [score.as_(name, quoted=True) for score, name in zip(scores, plain, strict=True)]
    query = exp.select(*held, *named).from_(inner.subquery("read"))
    own = [column.copy().as_(name, quoted=True) for column, name in zip(held, kept, strict=True)]
    columns: list[exp.Expr] = [exp.column(name, quoted=True) for name in plain]
    if not names:
        return exp.select(*own, *columns).from_(query.subquery("scored"))
    odds = [_log_odds(formula, at, columns).as_(f"odds_{at}") for at in range(len(formula.offset))]
    query = exp.select(*(c.copy() for c in held), *columns, *odds).from_(query.subquery("scored"))
    logs: list[exp.Expr] = [exp.column(f"odds_{at}") for at in range(len(odds))]
    if len(logs) == 1:
        chances = [exp.Div(this=double(1), expression=exp.paren(_plus_one(_exp(exp.Neg(this=logs[0])))))]
    else:
        largest = exp.func("GREATEST", *(log.copy() for log in logs))
        less = [_exp(exp.Sub(this=log, expression=largest.copy())) for log in logs]
        chances = [exp.Div(this=one.copy(), expression=total([each.copy() for each in less])) for one in less]
    told = [chance.as_(name, quoted=True) for chance, name in zip(chances, names, strict=True)]
    return exp.select(*own, *(c.copy() for c in columns), *told).from_(query.subquery("weighed"))


def _log_odds(formula: Formula, at: int, scores: list[exp.Expr]) -> exp.Expr:
    slope = formula.slope.reshape(len(formula.offset), len(scores))[at]
    parts = [exp.paren(times(double(weight), score)) for weight, score in zip(slope, scores, strict=True)]
    return total([double(formula.offset[at]), *parts])


def _plus_one(value: exp.Expr) -> exp.Expr:
    return exp.Add(this=double(1), expression=value)


def _exp(value: exp.Expr) -> exp.Expr:
    near = exp.func("LEAST", exp.func("GREATEST", exp.paren(value), double(-_FAR)), double(_FAR))
    return exp.func("EXP", near)
