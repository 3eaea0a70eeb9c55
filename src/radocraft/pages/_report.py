"""The report as the text of an HTML file, from what the model file holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from radocraft.files import size, writing
from radocraft.model import Model, ScoreModel, explain
from radocraft.pages._departures import blocks, departures, raw_size
from radocraft.pages._markup import Child, tag
from radocraft.pages._numbers import day, listed, unbroken
from radocraft.pages._outcome import outcome
from radocraft.pages._page import document, key_figures
from radocraft.pages._people import people
from radocraft.pages._quality import aim, error, expected, is_number, naive, second
from radocraft.pages._recipe import METHODS, recipe
from radocraft.pages._score_report import score_head, score_sections
from radocraft.pages._weights import weights


def report(model: Model | ScoreModel) -> str:
    """A model's report as the text of an HTML file.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=500)
    >>> parts = [rc.share(tables[peer], contract, peer) for peer in tables]
    >>> rc.report(rc.learn(parts, contract)).splitlines()[0]
    '<!doctype html>'
    """
    foot = f"Made by radocraft {model.radocraft} from a model file; nothing in this page comes from elsewhere."
    title = f"{model.contract.name} · radocraft"
    if isinstance(model, ScoreModel):
        return document(title, score_head(model), score_sections(model), [tag("p", foot)])
    explanation = explain(model)
    sections = [
        outcome(model),
        weights(model, explanation),
        people(model),
        blocks(model, explanation),
        departures(model),
    ]
    shown = [*(section for section in sections if section is not None), recipe(model)]
    return document(title, _head(model), shown, [tag("p", foot)])


def write_report(model: Model | ScoreModel, path: str | Path) -> int:
    """Write a model's report, whole or not at all; its bytes come back."""
    text = report(model).encode()
    with writing(path) as file:
        file.write(text)
    return len(text)


def _head(model: Model) -> Iterator[Child]:
    peers = [f"{origin.peer} ({origin.rows:,} rows)" for origin in model.learned_from]
    yield tag("p", "Model report", class_="eyebrow")
    yield tag("h1", _title(model.contract.name))
    yield tag(
        "p",
        f"{aim(model)}, learned on {day(model.created)} from {listed(peers)} by "
        f"{METHODS.get(model.method, model.method)}. The peers have no common id, and no row left any of them.",
        class_="lead",
    )
    yield key_figures(list(_figures(model)))


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def _figures(model: Model) -> Iterator[tuple[str, str, str]]:
    answer, naive_error = naive(model)
    told = expected(model)
    naive_words = f"always saying {answer}: {error(model, naive_error)}"
    yield "Error to expect", "not told" if told.error is None else error(model, told.error), naive_words
    name, value = second(told)
    yield (
        f"{name} to expect",
        value,
        "0 is the mean, 1 is perfect" if is_number(model) else "0.5 is chance, 1 is perfect",
    )
    if model.certificate is not None:
        name, loss = min(model.certificate.peers.items(), key=lambda item: item[1])
        yield "Mean loss", f"{model.certificate.expected:.3f}", f"best peer alone ({name}): {loss:.3f}"
    rows = sum(raw_size(model, origin) for origin in model.learned_from)
    left = sum(origin.bytes for origin in model.learned_from)
    yield "Bytes that left", size(left), f"the rows, {unbroken(size(rows))}, stayed"
