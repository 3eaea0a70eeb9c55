"""How good the model is: certificate, error to expect, ROC, reliability, caution."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from radocraft.contract import show
from radocraft.model import Model, sentence
from radocraft.pages._bars import plain_bar
from radocraft.pages._charts import Axis, Polyline, line_chart, percent
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import plain
from radocraft.pages._page import Section, figure, scrolling, table
from radocraft.pages._quality import error, expected, has_two_values, is_number, second

_CORNERS = Polyline(((0.0, 0.0), (1.0, 1.0)), "quiet")
_POINTS = 49
_NAMES = {"error": "error", "auc": "AUC", "log_loss": "log loss", "r2": "R²"}


def outcome(model: Model) -> Section:
    """The section."""
    children: list[Child] = [
        tag("p", sentence(model.certificate, noisy=model.privacy is not None), class_="lead"),
        tag("p", model.expectation),
        _parts(model),
        tag("p", _tested(model)) if model.validation is not None else None,
        tag("div", list(_charts(model)), class_="pair"),
    ]
    children.append(tag("p", f"What these estimates assume: {model.estimate.assumption}", class_="muted small"))
    if model.second_round is not None:
        children.append(tag("p", f"Counts assume: {model.second_round.assumption}", class_="muted small"))
    return Section("quality", "How good it is", children)


def _losses(model: Model) -> Element:
    losses = model.certificate
    assert losses is not None
    named = [("This model, on average", losses.expected, "up")]
    named.append(("This model, at worst", losses.worst, "up soft"))
    named += [(f"{peer} alone", loss, "down") for peer, loss in losses.peers.items()]
    largest = max(loss for _, loss, _ in named)
    rows = [(name, tag("b", f"{loss:.4f}"), plain_bar(loss, largest, kind)) for name, loss, kind in named]
    scale = "in units of the label's variance" if is_number(model) else "1 for a score that is always 0"
    words = (
        "Nobody knows which rows of the peers belong together; the blocks allow many matchings. On average, and "
        f"at worst, over all of them; the loss is the squared one, {scale}."
    )
    return tag(
        "div",
        tag("h3", "Loss on the training population"),
        tag("p", words, class_="muted"),
        table(("Who", "#Loss", ""), rows),
        class_="card bars",
    )


def _parts(model: Model) -> Element | None:
    """Every figure with its interval and what this is made of."""
    found = expected(model).intervals
    if not found:
        return None
    rows = [
        (_NAMES[name], *(_figure(model, name, value) for value in (one.value, one.low, one.high, *one.parts.values())))
        for name, one in found.items()
    ]
    words = (
        "What to expect on new rows, and the standard errors that keep the ends apart: of how the peers' scores are "
        "related inside blocks, of the sample, of the noise in the parts, and of the shape of scores."
    )
    heads = ("On new rows", "#expect", "#from", "#to", *(f"#{part}" for part in found["error"].parts))
    grid = scrolling(table(heads, rows), "What to expect on new rows")
    return tag("div", tag("p", words, class_="muted"), grid, class_="card")


def _figure(model: Model, name: str, value: float) -> str:
    return error(model, value) if name == "error" else f"{value:.3f}"


def _tested(model: Model) -> str:
    validation = model.validation
    assert validation is not None
    return (
        f"Tested on {validation.rows:,} truly linked rows: error {error(model, validation.error)}, "
        f"{' '.join(second(validation))}. This is a measurement, not an estimate."
    )


def _charts(model: Model) -> Iterator[Element]:
    if model.certificate is not None:
        yield _losses(model)
    if model.estimate.outlooks:
        yield _caution(model)
    if has_two_values(model) and expected(model).false_positive_rate:
        yield _roc(model)
    if expected(model).reliability:
        yield _reliability(model)
    if model.validation is not None:
        yield from _compared(model)


def _roc(model: Model) -> Element:
    positive, negative = (show(value) for value in reversed(model.classes))
    estimate = expected(model)
    false, true = np.array(estimate.false_positive_rate), np.array(estimate.true_positive_rate)
    level = np.linspace(0.0, 1.0, _POINTS)
    across, up = np.interp(level, (false + true) / 2, false), np.interp(level, (false + true) / 2, true)
    points = tuple(zip(across.tolist(), up.tolist(), strict=True))
    tips = tuple(f"{y:.0%} of “{positive}” found at {x:.0%} of “{negative}” taken for it" for x, y in points)
    chart = line_chart(
        f"ROC curve, estimated area {estimate.auc:.3f}",
        Axis.share(f"“{negative}” taken for “{positive}”"),
        Axis.share(""),
        [_CORNERS, Polyline(points, "main", tips=tips)],
    )
    tenths = np.linspace(0.0, 1.0, 11)
    rows = [(f"{x:.0%}", f"{y:.1%}") for x, y in zip(tenths, np.interp(tenths, false, true), strict=True)]
    words = f"How many “{positive}” are found (upwards) at the price of how many false alarms. {_from_what(model, '0')}"
    numbers = table((f"#false alarms among “{negative}”", f"#found of “{positive}”"), rows)
    return figure(f"ROC, area {estimate.auc:.3f}", chart, words, numbers)


def _reliability(model: Model) -> Element:
    positive = show(model.classes[1])
    bins = expected(model).reliability
    points = tuple((each.predicted, each.true) for each in bins)
    tips = tuple(f"predicted {each.predicted:.0%}, true {each.true:.0%}; {each.share:.1%} of rows" for each in bins)
    chart = line_chart(
        "Reliability: predicted probabilities against true shares",
        Axis.share("predicted probability"),
        Axis.share(""),
        [_CORNERS, Polyline(points, "main", dots=True, tips=tips)],
    )
    rows = [(f"{each.predicted:.1%}", f"{each.true:.1%}", f"{each.share:.1%}") for each in bins]
    words = (
        f"Among rows with this predicted probability, how many are “{positive}”. On the line, probabilities are exact. "
        f"{_from_what(model, plain(float(model.settings.get('caution', 0.0))))}"
    )
    return figure("Reliability", chart, words, table(("#predicted", "#true", "#share of rows"), rows))


def _from_what(model: Model, caution: str) -> str:
    if model.second_round is not None:
        return "From counts of scores at every peer."
    return f"Estimated, caution {caution}."


def _caution(model: Model) -> Element:
    outlooks = model.estimate.outlooks
    points = tuple((outlook.caution, outlook.error) for outlook in outlooks)
    tips = tuple(f"at {o.caution:g}: error {error(model, o.error)}, {' '.join(second(o))}" for o in outlooks)
    chart = line_chart(
        "Error to expect against how bad the unseen part is",
        Axis.over("how bad the unseen part is", (0.0, 1.0)),
        Axis.over("", [0.0, *(o.error for o in outlooks)], plain if is_number(model) else percent),
        [Polyline(points, "main", dots=True, tips=tips)],
    )
    rows = [(f"{o.caution:g}", error(model, o.error), second(o)[1]) for o in outlooks]
    words = "The error of this model if what nobody can see averages out (0), up to the worst case (1)."
    return figure(
        "If the unseen part is worse", chart, words, table(("#how bad", "#error", f"#{second(outlooks[0])[0]}"), rows)
    )


def _compared(model: Model) -> Iterator[Element]:
    validation = model.validation
    assert validation is not None
    tried = sorted((each.value, each.loss) for each in validation.compared if each.kind == "caution")
    if len(tried) > 1:
        tips = tuple(f"caution {value:g}: loss {loss:.4f}" for value, loss in tried)
        chart = line_chart(
            "Loss on linked rows against caution",
            Axis.over("caution", [value for value, _ in tried]),
            Axis.over("", [loss for _, loss in tried]),
            [Polyline(tuple(tried), "main", dots=True, tips=tips)],
        )
        rows = [(f"{value:g}", f"{loss:.4f}") for value, loss in tried]
        best = min(validation.compared, key=lambda each: each.loss)
        chosen = "caution" if best.kind == "caution" else "of the covariance between peers that they show a share of"
        words = (
            f"On {validation.rows:,} linked rows. They chose {chosen} {best.value:g}, with a loss of {best.loss:.4f}."
        )
        yield figure("What linked rows say", chart, words, table(("#caution", "#loss"), rows))
