"""A peer's own scorer on the terminal: how good it is on rows it has not seen, and how well calibrated."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from radocraft.cli._terminal import out
from radocraft.rows import Scorer


def describe_scorer(scorer: Scorer) -> dict[str, Any]:
    """The same for machines."""
    performance = {name: value for name, value in asdict(scorer.performance).items() if value is not None}
    return {
        "out_of_fold": performance,
        "calibration": [[asdict(each) for each in curve] for curve in scorer.reliability],
    }


def print_scorer(scorer: Scorer, kept: Path | None) -> None:
    """Performance, calibration, and where it is kept."""
    out.print(_performance(scorer))
    if len(scorer.reliability) == 1:
        out.print(_curve(scorer))
    elif scorer.reliability:
        out.print(_curves(scorer))
    if kept is not None and kept.exists():
        out.print(f"The scorer stays here: {kept}. Score new people with it: radocraft score {kept} TABLE -o FILE")


def _performance(scorer: Scorer) -> str:
    performance, rows = scorer.performance, f"{scorer.performance.rows:,}"
    who = f"{scorer.peer}'s own model, on {rows} rows each scored by a model that has not seen it:"
    if performance.error is None:
        wrong = (performance.mean_squared_error or 0.0) ** 0.5
        return f"{who} root mean square error {wrong:.4g}, R\N{SUPERSCRIPT TWO} {performance.r2 or 0.0:.3f}."
    usual = f" (always the likeliest label: {_usual(scorer):.1%})"
    area = f", AUC {performance.auc:.3f}" if performance.auc is not None else ""
    return f"{who} error {performance.error:.1%}{usual}{area}, log loss {performance.log_loss or 0.0:.3f}."


def _usual(scorer: Scorer) -> float:
    """The error of always predicting the commonest label."""
    shares = [sum(each.true * each.rows for each in curve) / scorer.performance.rows for curve in scorer.reliability]
    return 1.0 - max([*shares, *([1.0 - shares[0]] if len(shares) == 1 else [])])


def _curve(scorer: Scorer) -> Table:
    """Predicted and true shares, by tenths of the rows."""
    (curve,) = scorer.reliability
    title = "Calibration, by tenths of the rows: predicted and true"
    grid = Table(title=title, title_justify="left", box=None, show_header=False, padding=(0, 1))
    grid.add_row("predicted", *(f"{each.said:.1%}" for each in curve))
    grid.add_row("true", *(f"{each.true:.1%}" for each in curve))
    return grid


def _curves(scorer: Scorer) -> Table:
    """For several classes: how far predicted shares are from true ones."""
    grid = Table("class", "average difference", title="Calibration", title_justify="left")
    for name, curve in zip(scorer.contract.label.names, scorer.reliability, strict=True):
        rows = sum(each.rows for each in curve)
        grid.add_row(name, f"{sum(abs(each.said - each.true) * each.rows for each in curve) / rows:.1%}")
    return grid
