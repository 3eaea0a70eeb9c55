"""radocraft explain."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli.terminal import Json, out, print_json
from radocraft.model import Model
from radocraft.model import explain as explain_model


def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    top: Annotated[int, typer.Option(min=1, help="How many features and blocks to print.")] = 15,
    as_json: Json = False,
) -> None:
    """Say what a model's scores are made of: by feature, by peer, by block.

    Example: radocraft explain model.json --top 10
    """
    read = Model.load(model)
    told = explain_model(read)
    if as_json:
        print_json({**asdict(told), "coefficients": [c.model_dump() for c in told.coefficients]} | _certificate(read))
        return
    out.print(f"{read.contract.name}: learned by {read.method} from {', '.join(read.peers)} on {read.created[:10]}.")
    print_certificate(read)
    print_validation(read)
    print_effects(read)
    grid = Table("feature", "peer", "effect", "weight, raw units", title="By feature", title_justify="left")
    for c in told.coefficients[:top]:
        grid.add_row(c.name, c.peer or "shared", f"{c.effect:+.3f}", f"{c.raw:+.4g}")
    out.print(grid)
    names = ["shared", *read.peers]
    grid = Table("block", "label", "weight", *names, "score", title="By block (mean)", title_justify="left")
    for block in told.blocks[:top]:
        where = ", ".join(f"{name} {code}" for name, code in block.signature.items())
        parts = [f"{block.contributions[name]:+.2f}" for name in names]
        grid.add_row(where or "all", block.label, f"{block.weight:,.0f}", *parts, f"{block.score:+.2f}")
    out.print(grid)


def print_certificate(model: Model) -> None:
    """The losses, in a table and in words, and what to expect on new rows."""
    if model.certificate is not None:
        losses = model.certificate
        grid = Table("loss on the training population", "", title_justify="left")
        grid.add_row("expected over all matchings", f"{losses.expected:.4f}")
        grid.add_row("guaranteed under any matching", f"{losses.guaranteed:.4f}")
        for peer, loss in losses.peers.items():
            grid.add_row(f"{peer} alone", f"{loss:.4f}")
        out.print(grid)
    out.print(explain_model(model).sentence)
    worst = max(model.estimate.outlooks, key=lambda outlook: outlook.caution)
    out.print(
        f"Expect an error of {model.estimate.error:.1%} (AUC {model.estimate.auc:.3f}) on new rows, "
        f"{worst.error:.1%} ({worst.auc:.3f}) if what nobody can see is at its worst."
    )


def print_validation(model: Model) -> None:
    """What linked rows showed."""
    if (held := model.validation) is not None:
        kind, value = next((name, value) for name, value in model.settings.items() if name != "alpha")
        out.print(
            f"On {held.rows:,} linked rows: error {held.error:.1%}, AUC {held.auc:.3f}; they chose {kind} {value:g}."
        )


def print_effects(model: Model) -> None:
    """How much each peer moves the score."""
    shares = ", ".join(f"{peer.name} {peer.share:.0%}" for peer in explain_model(model).peers)
    out.print(f"What moves the score: {shares}.")


def _certificate(model: Model) -> dict[str, object]:
    return {"certificate": model.certificate.model_dump() if model.certificate else None}
