"""The report on a model of scores: how good it is, what each peer adds, what left."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from xml.etree.ElementTree import Element

from radocraft.contract import TwoValues
from radocraft.files import size
from radocraft.gate import describe_rows
from radocraft.model import ExpectedQuality, Origin, ScoreModel, ScoreOutlook, absences, weights_in_words
from radocraft.pages._bars import plain_bar, signed_bar
from radocraft.pages._charts import Axis, Polyline, line_chart
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import day, listed, signed
from radocraft.pages._page import Section, figure, key_figures, scrolling, table
from radocraft.pages._recipe import CITATION, verbatim

_CORNERS = Polyline(((0.0, 0.0), (1.0, 1.0)), "quiet")


def score_head(model: ScoreModel) -> Iterator[Child]:
    """What the page is about, in large letters."""
    label = model.contract.label
    aim = f"whether {label.column} is “{label.names[-1]}”" if isinstance(label, TwoValues) else label.column
    peers = [f"{origin.peer} ({_rows(origin)} rows)" for origin in model.learned_from]
    yield tag("p", "Model report", class_="eyebrow")
    yield tag("h1", model.contract.name[:1].upper() + model.contract.name[1:])
    yield tag(
        "p",
        f"One model of {aim}, learned on {day(model.created)} from what the own models of {listed(peers)} say. The "
        "peers have no common id. No row left any of them, and no peer’s model.",
        class_="lead",
    )
    yield key_figures([*_key_figures(model.outlook), _bytes(model)])


def _key_figures(outlook: ScoreOutlook | None) -> Iterator[tuple[str, str, str]]:
    if outlook is None:
        return
    best = outlook.alone[outlook.best_peer]
    yield (
        "Error to expect",
        outlook.error.words(".1%", middle=outlook.measured),
        f"always the likelier label: {outlook.base_rate:.1%}",
    )
    yield (
        "AUC to expect",
        outlook.auc.words(".3f", best=1.0, middle=outlook.measured),
        f"best peer alone ({outlook.best_peer}): {best.auc.value:.3f}",
    )
    yield (
        "Log loss to expect",
        outlook.log_loss.words(".3f", middle=outlook.measured),
        f"best peer alone: {best.log_loss.value:.3f}",
    )


def _bytes(model: ScoreModel) -> tuple[str, str, str]:
    return "Bytes that left", size(sum(origin.bytes for origin in model.learned_from)), "rows and models stayed"


def score_sections(model: ScoreModel) -> list[Section]:
    """All of it."""
    return [_quality(model), _peers(model), _left(model), _rerun(model)]


def _quality(model: ScoreModel) -> Section:
    if (outlook := model.outlook) is None:
        words = "Too few rows were seen to say what to expect on new ones."
        return Section("quality", "How good it is", [tag("p", words, class_="lead")])
    charts = [_reliability(model, outlook), _roc(model, outlook) if outlook.false_positive_rate else None]
    return Section(
        "quality",
        "How good it is",
        [
            tag("p", outlook.worth, class_="lead"),
            tag("p", outlook.sentence),
            _intervals(model, outlook),
            _losses(outlook),
            tag("div", [chart for chart in charts if chart is not None], class_="pair"),
            tag(
                "p",
                "All of this is computed from simulated rows: each peer’s scores are distributed as its part says, and "
                "related as shown in the section below. No rows were joined for it. How right such figures were on "
                "other tables is on radocraft’s page “Told and true” (docs/calibration.md).",
                class_="muted small",
            ),
        ],
    )


_PARTS = {
    "relation": "how related the peers’ scores are",
    "sample": "that no more rows were seen",
    "noise": "the noise in what left",
    "shape": "that people are not quite spread as assumed",
}


def _intervals(model: ScoreModel, outlook: ScoreOutlook) -> Element:
    """From where to where, and why."""
    names = (
        ("Error", outlook.error, ".1%", 0.0),
        ("AUC", outlook.auc, ".3f", 1.0),
        ("Log loss", outlook.log_loss, ".3f", 0.0),
    )
    rows: list[tuple[Child, ...]] = [
        (
            name,
            tag("b", each.words(form, best=best, middle=outlook.measured)),
            *(f"± {each.parts[part]:{form}}" for part in _PARTS),
        )
        for name, each, form, best in names
    ]
    measured = model.relation.source == "linked groups"
    unknown = " How related they are was not measured: they may be unrelated, or as related as can be."
    words = f"Standard errors by what they come of: {'; '.join(f'{name}: {why}' for name, why in _PARTS.items())}."
    return tag(
        "div",
        tag("h3", "From where to where, and why"),
        scrolling(table(("", "#Expect", *(f"#{name}" for name in _PARTS)), rows), "From where to where, and why"),
        tag("p", words if measured else words + unknown, class_="muted small"),
        class_="card bars",
    )


def _losses(outlook: ScoreOutlook) -> Element:
    named: list[tuple[str, ExpectedQuality, str]] = [("This model", outlook, "up")]
    named += [(f"{peer} alone", quality, "down") for peer, quality in outlook.alone.items()]
    if len(outlook.without) > 2:
        named += [(f"Without {peer}", quality, "down") for peer, quality in outlook.without.items()]
    shown = [(name, q.error.value, q.auc.value, q.log_loss.value, kind) for name, q, kind in named]
    largest = max(loss for _, _, _, loss, _ in shown)
    rows = [
        (name, tag("b", f"{loss:.3f}"), f"{error:.1%}", f"{area:.3f}", plain_bar(loss, largest, kind))
        for name, error, area, loss, kind in shown
    ]
    return tag(
        "div",
        tag("h3", "Together and alone"),
        tag("p", "What to expect on new rows; a smaller log loss is better.", class_="muted"),
        scrolling(table(("Who", "#Log loss", "#Error", "#AUC", ""), rows), "Together and alone"),
        class_="card bars",
    )


def _reliability(model: ScoreModel, outlook: ScoreOutlook) -> Element | None:
    if not outlook.reliability:
        return None
    label = model.contract.label.names[-1]
    points = tuple((each.predicted, each.true) for each in outlook.reliability)
    tips = tuple(f"predicted {predicted:.0%}, true {true:.0%}" for predicted, true in points)
    chart = line_chart(
        "Reliability: predicted probabilities against true shares",
        Axis.share("predicted probability"),
        Axis.share(""),
        [_CORNERS, Polyline(points, "main", dots=True, tips=tips)],
    )
    rows = [(f"{each.predicted:.1%}", f"{each.true:.1%}", f"{each.share:.0%}") for each in outlook.reliability]
    words = (
        f"By tenths of the rows: the predicted probability, and how many are “{label}”. On the dashed line "
        "probabilities are exact."
    )
    return figure("Reliability", chart, words, table(("#predicted", "#true", "#share of rows"), rows))


def _roc(model: ScoreModel, outlook: ScoreOutlook) -> Element:
    negative, positive = model.contract.label.names[0], model.contract.label.names[-1]
    points = tuple(zip(outlook.false_positive_rate, outlook.true_positive_rate, strict=True))
    tips = tuple(f"{y:.0%} of “{positive}” found at {x:.0%} of “{negative}” taken for it" for x, y in points)
    chart = line_chart(
        f"ROC curve, area {outlook.auc.value:.3f}",
        Axis.share(f"“{negative}” taken for “{positive}”"),
        Axis.share(""),
        [_CORNERS, Polyline(points, "main", tips=tips)],
    )
    words = f"How many “{positive}” are found (upwards) at the price of how many false alarms."
    rows = [(f"{x:.1%}", f"{y:.1%}") for x, y in points[::5]]
    return figure(f"ROC, area {outlook.auc.value:.3f}", chart, words, table(("#false alarms", "#found"), rows))


def _peers(model: ScoreModel) -> Section:
    return Section(
        "weights",
        "What each peer adds",
        [
            tag("p", " ".join(sentence for _, _, sentence in absences(model)), class_="lead"),
            tag("p", weights_in_words(model)),
            tag("div", _weights(model), _relation(model), class_="pair"),
        ],
    )


def _weights(model: ScoreModel) -> Element:
    full = model.full
    named = [*zip(full.peers, full.weights, strict=True), ("Shared features", full.signature)]
    largest = max(abs(weight) for _, weight in named)
    rows = [(name, signed_bar(weight, largest, f"{name}: {weight:+.2f}"), signed(weight, 2)) for name, weight in named]
    formula = " + ".join(f"{weight:.2f} × {peer}" for peer, weight in zip(full.peers, full.weights, strict=True))
    sign = "−" if full.signature < 0 else "+"
    return tag(
        "div",
        tag("h3", "Weights"),
        tag(
            "p",
            f"log-odds = {full.intercept:.2f} + {formula} {sign} {abs(full.signature):.2f} × signature",
            class_="muted",
        ),
        table(("Score of", "", "#Weight"), rows),
        tag(
            "p",
            "Each score is in log-odds; a signature’s are those of the label among all rows of its codes.",
            class_="muted small",
        ),
        class_="card weights",
    )


def _relation(model: ScoreModel) -> Element | None:
    if len(model.peers) < 2:
        return None
    relation, rows = model.relation, list[tuple[Child, ...]]()
    for at, first in enumerate(model.peers):
        for to in range(at):
            value, error = relation.correlation[at][to], relation.error[at][to]
            rows.append(
                (f"{model.peers[to]} – {first}", f"{value:.2f}", f"± {error:.2f}", plain_bar(max(value, 0.0), 1.0))
            )
    words = (
        "Measured on sums by groups of a key that says nothing about the label: a group consists of the same people "
        "at every peer, so its sums vary together as the scores do."
        if relation.source == "linked groups"
        else "Assumed, because the contract has no key: peers’ scores are usually somewhat related. A neutral key, "
        "such as the day of birth, would measure it."
    )
    return tag(
        "div",
        tag("h3", "How related the scores are"),
        tag("p", "Correlation of two peers’ scores among rows of the same label and signature.", class_="muted"),
        table(("Peers", "#Correlation", "#", ""), rows),
        tag("p", words, class_="muted small"),
        class_="card bars",
    )


def _rows(origin: Origin) -> str:
    return describe_rows(origin.rows, origin.gate.mode if origin.gate else "exact")


def _left(model: ScoreModel) -> Section:
    return Section(
        "left",
        "What left each peer",
        [
            tag("p", "No row left, and no model. Each peer sent one file of sums of its scores:", class_="lead"),
            tag("div", [_origin(origin) for origin in model.learned_from], class_="pair"),
            tag(
                "p",
                "The epsilon covers these sums, given the peer’s model. A row that the model was fitted on also "
                "moved the scores of other rows, which this epsilon does not count; a model fitted earlier, on other "
                "rows, has no such gap.",
                class_="small muted",
            ),
            _notes(model),
        ],
    )


def _origin(origin: Origin) -> Element:
    lines: list[tuple[str, Child]] = [
        ("Scored", f"{_rows(origin)} rows"),
        ("Left", f"{size(origin.bytes)}: {origin.cells:,} cells, a histogram for each label"),
        ("Guarantee", origin.guarantee),
        ("Made", day(origin.created)),
        ("Part", tag("code", origin.hash[:16])),
    ]
    facts = tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in lines], class_="facts")
    return tag("div", tag("h3", origin.peer), facts, class_="card origin")


def _notes(model: ScoreModel) -> Element | None:
    if not model.notes:
        return None
    return tag("div", tag("h3", "Notes"), tag("ul", [tag("li", note) for note in model.notes]), class_="card")


def _rerun(model: ScoreModel) -> Section:
    words = ["radocraft learn --contract contract.toml", *(quote(f"{peer}.part.parquet") for peer in model.peers)]
    words += ["--method average"] if model.head == "average" else []
    commands = [
        f"pip install radocraft=={model.radocraft}",
        " \\\n  ".join([*words, "-o model.json"]),
        "radocraft report model.json -o report.html",
    ]
    return Section(
        "recipe",
        "Rerun and cite",
        [
            verbatim("Learn it again", "From the same parts, whose hashes stand above:", "\n".join(commands)),
            verbatim("Cite", "The paper the method starts from:", CITATION),
        ],
    )
