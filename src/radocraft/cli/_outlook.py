"""A model of scores on the terminal: what it consists of, and what to expect of it."""

from __future__ import annotations

from rich.table import Table

from radocraft.cli._terminal import out
from radocraft.model import ScoreModel, gain_of


def print_score_model(model: ScoreModel) -> None:
    """Weights, relation and outlook."""
    out.print(_weights(model))
    if len(model.peers) > 1:
        out.print(_relation(model))
    out.print(_outlook(model))
    out.print(gain_of(model).sentence)
    for note in model.notes:
        out.print(f"Note: {note}.")


def _weights(model: ScoreModel) -> Table:
    grid = Table("score of", "weight", "alone: error", "without it", title="What peers add", title_justify="left")
    for peer, weight in zip(model.full.peers, model.full.weights, strict=True):
        alone, without = model.outlook.alone[peer], model.outlook.without.get(peer)
        grid.add_row(peer, f"{weight:+.2f}", f"{alone.error:.1%}", f"{without.error:.1%}" if without else "-")
    grid.add_row("shared features", f"{model.full.signature:+.2f}", "", "")
    return grid


def _relation(model: ScoreModel) -> Table:
    grid = Table("peers", "correlation", f"inside label and signature ({model.relation.source})", title_justify="left")
    for at, first in enumerate(model.peers):
        for to in range(at):
            value, error = model.relation.correlation[at][to], model.relation.error[at][to]
            grid.add_row(f"{model.peers[to]}, {first}", f"{value:.2f}", f"+- {error:.2f}")
    return grid


def _outlook(model: ScoreModel) -> Table:
    outlook = model.outlook
    grid = Table("on new rows", "expect", "from", "to", title="Outlook", title_justify="left")
    for name, form in (("error", ".1%"), ("auc", ".3f"), ("log_loss", ".3f")):
        ends = sorted(getattr(quality, name) for quality in (outlook.low, outlook.here, outlook.high))
        shown = [format(value, form) for value in (getattr(outlook.here, name), ends[0], ends[-1])]
        grid.add_row({"error": "error", "auc": "AUC", "log_loss": "log loss"}[name], *shown)
    grid.add_row("error of always predicting the commoner label", f"{outlook.base_rate:.1%}", "", "")
    return grid
