"""A model of scores on the terminal: what it consists of, and what to expect of it."""

from __future__ import annotations

from rich.table import Table

from radocraft.cli._terminal import out
from radocraft.model import ScoreModel, ScoreOutlook


def print_score_model(model: ScoreModel) -> None:
    """Weights, relation and outlook."""
    out.print(_weights(model))
    if len(model.peers) > 1:
        out.print(_relation(model))
    if model.outlook is not None:
        out.print(_outlook(model.outlook))
        print_expected(model)
        out.print(model.outlook.worth)
    for note in model.notes:
        out.print(f"Note: {note}.")


def print_expected(model: ScoreModel) -> None:
    """What to expect on new rows, in one sentence."""
    if model.outlook is not None:
        out.print(model.outlook.sentence)


def _weights(model: ScoreModel) -> Table:
    grid = Table("score of", "weight", "alone: error", "without it", title="What peers add", title_justify="left")
    alone, without = ({}, {}) if model.outlook is None else (model.outlook.alone, model.outlook.without)
    for peer, weight in zip(model.full.peers, model.full.weights, strict=True):
        errors = [f"{told[peer].error.value:.1%}" if peer in told else "-" for told in (alone, without)]
        grid.add_row(peer, f"{weight:+.2f}", *errors)
    grid.add_row("shared features", f"{model.full.signature:+.2f}", "", "")
    return grid


def _relation(model: ScoreModel) -> Table:
    grid = Table("peers", "correlation", f"inside label and signature ({model.relation.source})", title_justify="left")
    for row, first in enumerate(model.peers):
        for to in range(row):
            value, error = model.relation.correlation[row][to], model.relation.error[row][to]
            grid.add_row(f"{model.peers[to]}, {first}", f"{value:.2f}", f"+- {error:.2f}")
    return grid


def _outlook(outlook: ScoreOutlook) -> Table:
    """Each number with its interval, and the standard errors that it is made of."""
    parts = [*outlook.error.parts]
    grid = Table("on new rows", "expect", "no model", *parts, title="Outlook", title_justify="left")
    rows = (
        ("error", outlook.error, ".1%", 0.0, outlook.base_rate),
        ("AUC", outlook.auc, ".3f", 1.0, 0.5),
        ("log loss", outlook.log_loss, ".3f", 0.0, outlook.base_log_loss),
    )
    for name, told, form, best, naive in rows:
        errors = [f"± {told.parts[part]:{form}}" for part in parts]
        grid.add_row(name, told.words(form, best=best, middle=outlook.measured), format(naive, form), *errors)
    return grid
