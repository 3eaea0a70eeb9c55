"""radocraft explain."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from radocraft.cli._outlook import print_score_model
from radocraft.cli._terminal import Json, out, print_json
from radocraft.contract import Number
from radocraft.model import (
    Explanation,
    Model,
    ScoreModel,
    Validation,
    Weight,
    absences,
    load_model,
    weights_in_words,
)
from radocraft.model import explain as explain_model
from radocraft.pages import each, signed

_IN_UNITS = "in the units of the label"


def explain(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    top: Annotated[int, typer.Option(min=1, help="How many features and blocks to print.")] = 15,
    as_json: Json = False,
) -> None:
    """Show what a model's scores are made of: by feature, by peer, by block.

    Example: radocraft explain model.json --top 10
    """
    read = load_model(model)
    if isinstance(read, ScoreModel):
        _explain_scores(read, as_json)
        return
    explanation = explain_model(read)
    if as_json:
        shares = {name: [asdict(share) for share in getattr(explanation, name)] for name in ("peers", "blocks")}
        weights = [c.model_dump() for c in explanation.coefficients]
        said = {"sentence": explanation.sentence, "privacy": explanation.privacy}
        print_json({"coefficients": weights, **shares, **_certificate(read), **said})
        return
    out.print(f"{read.contract.name}: learned by {read.method} from {', '.join(read.peers)} on {read.created[:10]}.")
    print_certificate(read)
    print_validation(read)
    print_effects(read)
    out.print(_features(read, explanation, top))
    out.print("Effect: what one standard deviation more of a column adds to the score.")
    if curves := sorted({c.feature for c in explanation.coefficients[:top] if c.name.startswith(f"{c.feature}~")}):
        out.print(
            f"Pieces of a curve ({', '.join(curves)}) mean little on their own: radocraft report {model} draws it."
        )
    out.print(_blocks(read, explanation, top))


def _explain_scores(model: ScoreModel, as_json: bool) -> None:
    if as_json:
        told = {
            "gain": None if model.outlook is None else model.outlook.worth,
            "words": [weights_in_words(model), *(said for *_, said in absences(model))],
        }
        print_json(model.model_dump(mode="json", exclude={"contract", "signatures"}) | told)
        return
    out.print(f"{model.contract.name}: learned from the scores of {', '.join(model.peers)} on {model.created[:10]}.")
    print_score_model(model)
    out.print(weights_in_words(model))
    for _, _, sentence in absences(model):
        out.print(sentence)


def _features(model: Model, explanation: Explanation, top: int) -> Table:
    """Effect and raw weight of every column; with several classes its effect on the score of each."""
    if isinstance(model.intercept, float):
        grid = Table("feature", "peer", "effect", "weight, raw units", title="By feature", title_justify="left")
    else:
        effects = [f"effect on {name}" for name in model.contract.label.names]
        grid = Table("feature", "peer", *effects, title="By feature", title_justify="left")
    for c in explanation.coefficients[:top]:
        raw = _each(c.raw, "+.4g") if isinstance(model.intercept, float) else []
        grid.add_row(c.name, c.peer or "shared", *_each(c.effect, _form(model, "+.3f")), *raw)
    return grid


def _blocks(model: Model, explanation: Explanation, top: int) -> Table:
    """What each peer adds to a block's mean score; with several classes the mean score of each."""
    single = isinstance(model.intercept, float)
    names = ["shared", *model.peers] if single else []
    scores = ["score"] if single else [f"score of {name}" for name in model.contract.label.names]
    keys = ", ".join(shared.name for shared in model.contract.shared) or "block"
    grid = Table(keys, "label", "weight", *names, *scores, title="By block (mean)", title_justify="left")
    form = _form(model, "+.2f")
    for block in explanation.blocks[:top]:
        where = ", ".join(block.signature.values())
        parts = [text for name in names for text in _each(block.contributions[name], form)]
        grid.add_row(where or "all", block.label, f"{block.weight:,.0f}", *parts, *_each(block.score, form))
    return grid


def _form(model: Model, otherwise: str) -> str:
    """Scores of a class are about 1; those of a number are in its units, whatever these are."""
    return _IN_UNITS if isinstance(model.contract.label, Number) else otherwise


def _each(weight: Weight, form: str) -> list[str]:
    return [signed(number) if form == _IN_UNITS else format(number, form) for number in each(weight)]


def print_certificate(model: Model) -> None:
    """The losses, in a table and in words, and what to expect on new rows."""
    if model.certificate is not None:
        losses = model.certificate
        grid = Table("loss on the training population", "", title_justify="left")
        grid.add_row("expected over all matchings", f"{losses.expected:.4f}")
        how = "guaranteed under any matching" if losses.guaranteed is not None else "under the worst one, by noisy sums"
        grid.add_row(how, f"{losses.worst:.4f}")
        for peer, loss in losses.peers.items():
            grid.add_row(f"{peer} alone", f"{loss:.4f}")
        out.print(grid)
    out.print(explain_model(model).sentence)
    flattered = model.certificate is not None and model.certificate.trusted
    out.print(model.expectation + (" (Too optimistic for the same reason.)" if flattered else ""))
    if model.privacy is not None:
        out.print(model.privacy.sentence)


def _quality(estimate: Validation) -> str:
    if estimate.r2 is not None:
        return f"a root mean square error of {estimate.error:.4g} (R² {estimate.r2:.3f})"
    return f"an error of {estimate.error:.1%} (AUC {estimate.auc:.3f})"


def print_validation(model: Model) -> None:
    """What linked rows showed."""
    if (held := model.validation) is not None:
        kind, value = next((name, value) for name, value in model.settings.items() if name != "alpha")
        out.print(f"On {held.rows:,} linked rows: {_quality(held)}; they chose {kind} {value:g}.")


def print_effects(model: Model) -> None:
    """How much each peer moves the score."""
    shares = ", ".join(f"{peer.name} {peer.share:.0%}" for peer in explain_model(model).peers)
    out.print(f"What moves the score: {shares}.")


def _certificate(model: Model) -> dict[str, object]:
    return {"certificate": model.certificate.model_dump() if model.certificate else None}
