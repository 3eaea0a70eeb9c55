"""How the model was tuned, how to learn it again, and what to cite."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from xml.etree.ElementTree import Element

from radocraft.model import Model, Tuning
from radocraft.pages._charts import Axis, Polyline, line_chart
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import plain
from radocraft.pages._page import Section, figure, scrolling, table

METHODS = {"matching": "expected matching with caution", "drl": "the paper's DRL over Rademacher observations"}
CITATION = """@inproceedings{patrini2016fast,
  title  = {Fast Learning from Distributed Datasets without Entity Matching},
  author = {Patrini, Giorgio and Nock, Richard and Hardy, Stephen and Caetano, Tiberio},
  year   = {2016}
}"""


def recipe(model: Model) -> Section:
    """The section."""
    first = [_tuning(model.tuning)] if model.tuning else []
    return Section(
        "recipe",
        "Rerun and cite",
        [
            tag("div", first, _settings(model), class_="pair"),
            verbatim("Learn it again", "From the same parts, whose hashes stand above:", "\n".join(_commands(model))),
            verbatim("Cite", "The paper the method starts from:", CITATION),
        ],
    )


def _tuning(tuning: Tuning) -> Element:
    points = tuple(zip(tuning.candidates, tuning.scores, strict=True))
    tips = tuple(f"strength {x:.3g}: score {y:.4f}" for x, y in points)
    positive = [x for x, _ in points if x > 0]
    best = min(zip(tuning.scores, tuning.candidates, strict=True))[0]
    chosen = next(((x, y) for x, y in points if x == tuning.chosen), (tuning.chosen, best))
    chart = line_chart(
        f"Tuning curve; strength {tuning.chosen:.3g} was chosen",
        Axis.powers("strength of the regularisation", positive),
        Axis.over("", tuning.scores),
        [Polyline(points, "main", tips=tips), Polyline((chosen,), "chosen", dots=True)],
    )
    rows = [(f"{x:.3g}", f"{y:.5f}") for x, y in points]
    words = f"Score of each candidate by {tuning.method}, lower is better. The dot is the choice: {tuning.chosen:.3g}."
    return figure("Tuning", chart, words, table(("#strength", "#score"), rows))


def _settings(model: Model) -> Element:
    settings: list[tuple[str, Child]] = [("Method", METHODS.get(model.method, model.method))]
    settings += [
        (name.capitalize(), plain(v) if isinstance(v, float) else str(v)) for name, v in model.settings.items()
    ]
    settings += [
        ("Contract", model.contract.name),
        ("Fingerprint", tag("code", model.contract.fingerprint[:16])),
        ("Learned", model.created.replace("T", " ")),
        ("radocraft", model.radocraft),
    ]
    facts = tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in settings], class_="facts")
    return tag("div", tag("h3", "Settings"), facts, class_="card")


def _commands(model: Model) -> Iterator[str]:
    yield f"pip install radocraft=={model.radocraft}"
    words = ["radocraft learn --contract contract.toml", *(quote(f"{peer}.part.parquet") for peer in model.peers)]
    words.append(f"--method {model.method}")
    settings = model.settings
    if model.validation is not None:
        words.append("--linked linked.csv")
    elif "caution" in settings:
        words.append(f"--caution {settings['caution']}")
    if model.method == "matching" and model.tuning is None:
        words.append(f"--alpha {settings['alpha']}")
    if model.method == "drl":
        words.append("--regularisation tuned" if model.tuning else "--regularisation identity")
    if "proportions" in settings:
        words.append(f"--proportions {settings['proportions']}")
    yield " \\\n  ".join([*words, "-o model.json"])
    if model.second_round is not None:
        counts = " ".join(quote(f"{peer}.scores.json") for peer in model.peers)
        yield f"radocraft recalibrate model.json {counts} -o model.json"
    yield "radocraft report model.json -o report.html"


def verbatim(title: str, words: str, text: str) -> Element:
    """Text to copy, in a card."""
    block = scrolling(tag("pre", tag("code", text)), title)
    return tag("div", tag("h3", title), tag("p", words, class_="muted"), block, class_="card")
