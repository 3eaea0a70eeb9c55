"""What to expect of a model of columns on new rows, in words: figures with their intervals, beside the base rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from radocraft.contract import Contract, Number
from radocraft.model._fields import BlockTable, Estimate
from radocraft.model._interval import Interval

if TYPE_CHECKING:
    from radocraft.model._model import Model

_NAMES = {"auc": "AUC", "r2": "R²", "log_loss": "log loss"}


def in_words(model: Model) -> str:
    """What to expect of a model on new rows, from a second round if there was one.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=250)
    >>> model = rc.learn([rc.share(tables[peer], contract, peer) for peer in tables], contract)
    >>> in_words(model).partition(";")[0]
    'With so few rows nothing can be said about new ones'
    """
    estimate = model.second_round or model.estimate
    number = isinstance(model.contract.label, Number)
    return " ".join(_sentences(estimate, naive_answer(model.contract, model.blocks), number=number))


def _sentences(estimate: Estimate, answer: str, *, number: bool) -> Iterator[str]:
    base = estimate.base_rate
    naive = "" if base is None else f"always predicting {answer} errs {_error(base, number=number, by=True)}"
    if "error" not in estimate.intervals:
        yield f"With so few rows nothing can be said about new ones; {naive}."
        return
    error, *others = estimate.intervals.items()
    figures = [f"{_NAMES[name]} {_between(interval, name)}" for name, interval in others]
    what = "a root mean square error" if number else "an error"
    yield f"On new rows expect {what} {_range(error[1], number=number)}, {' and '.join(figures)}; {naive}."
    if estimate.by_chance:
        yield "So this model cannot be told from one that knows nothing."


def _range(error: Interval, *, number: bool) -> str:
    if error.low <= 0.0:
        return f"below {_error(error.high, number=number)}"
    ends = f"{_error(error.low, number=number)} to {_error(error.high, number=number)}"
    return f"of {_error(error.value, number=number)} ({ends})"


def _between(interval: Interval, name: str) -> str:
    if name == "log_loss" and interval.low <= 0.0:
        return f"below {interval.high:.3f}"
    if name != "log_loss" and interval.high >= 1.0:
        return f"above {interval.low:.3f}"
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _error(value: float, *, number: bool, by: bool = False) -> str:
    """A share of rows, or a number in the label's units."""
    if number:
        return f"by {value:.4g}" if by else f"{value:.4g}"
    return f"in {value:.1%}" if by else f"{value:.1%}"


def naive_answer(contract: Contract, blocks: BlockTable) -> str:
    """The answer that needs no model: the most common label, or the mean of a number."""
    if isinstance(contract.label, Number):
        return "its mean"
    totals = dict.fromkeys(contract.label.codes, 0.0)
    for code, weight in zip(blocks.labels, blocks.weights, strict=True):
        totals[code] += weight
    most = max(totals, key=totals.__getitem__)
    return f"“{contract.label.names[contract.label.codes.index(most)]}”"
