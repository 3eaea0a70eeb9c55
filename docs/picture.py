"""Draws docs/assets/overview.svg, the picture of the README, from a run on the example: python docs/picture.py."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, indent, tostring

import pyarrow as pa

import radocraft as rc
from radocraft.files import size
from radocraft.gate import Noise
from radocraft.pages import FONTS, LIGHT
from radocraft.pages._markup import tag

PICTURE = Path(__file__).parent / "assets" / "overview.svg"
WIDTH, HEIGHT, CARD = 1080.0, 452.0, 312.0
LEFT, MIDDLE, RIGHT = 24.0, 384.0, 744.0
ROWS, SHOWN = 10_000, 3


def text(words: str, x: float, y: float, kind: str = "plain", **more: str | float) -> Element:
    """Words, in one of four kinds."""
    kinds: dict[str, dict[str, str | float]] = {
        "plain": {"font_size": 13, "fill": LIGHT.ink},
        "quiet": {"font_size": 12, "fill": LIGHT.muted},
        "title": {"font_size": 15, "fill": LIGHT.ink, "font_weight": 650},
        "accent": {"font_size": 12, "fill": LIGHT.accent, "font_weight": 650},
    }
    return tag("text", words, x=x, y=y, **{**kinds[kind], **more})


def card(x: float, y: float, tall: float, title: str, note: str, *, accent: bool) -> list[Element]:
    """A box with a title, and what happens to it."""
    edge = LIGHT.accent if accent else LIGHT.line
    return [
        tag("rect", x=x, y=y, width=CARD, height=tall, rx=12, fill=LIGHT.card, stroke=edge, stroke_width=1.5),
        text(title, x + 18, y + 30, "title"),
        text(note, x + CARD - 18, y + 30, "accent" if accent else "quiet", text_anchor="end"),
    ]


def grid(x: float, y: float, rows: list[list[str]], places: list[float]) -> list[Element]:
    """A few lines of a table; the first is its head."""
    out = []
    for at, row in enumerate(rows):
        for place, words in zip(places, row, strict=True):
            out.append(text(words, x + place, y + 24 * at + (4 if at else 0), "quiet" if at == 0 else "plain"))
    out.append(tag("line", x1=x, x2=x + CARD - 36, y1=y + 7, y2=y + 7, stroke=LIGHT.line))
    return out


def arrow(x1: float, y1: float, x2: float, y2: float) -> Element:
    """A line with a head."""
    middle = (x1 + x2) / 2
    path = f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"
    return tag("path", d=path, fill="none", stroke=LIGHT.accent, stroke_width=2, marker_end="url(#head)")


def raw(table: pa.Table, names: list[str]) -> list[list[str]]:
    """The first rows of a made-up table."""
    rows = table.select(names).slice(0, SHOWN).to_pylist()
    return [
        [name.replace("age_at_signing", "age") for name in names],
        *([f"{row[n]:,.0f}" if isinstance(row[n], float) else str(row[n]) for n in names] for row in rows),
    ]


def sums(part: rc.Part, name: str) -> list[list[str]]:
    """The first cells of a part that were not rolled up."""
    head = ["region", "age", "label", "rows", f"Σ {name}"]
    columns = ["shared:region", "shared:age", "label", "rows", f"sum:{name}"]
    rows = [row for row in part.table.select(columns).to_pylist() if row["shared:region"] != "any"]
    return [
        head,
        *([*(str(row[c]) for c in columns[:-1]), f"{row[columns[-1]]:,.0f}".replace("-", "−")] for row in rows[:SHOWN]),
    ]


def shared(table: pa.Table, contract: rc.Contract, peer: str) -> rc.Part:
    """A peer's part, with noise that is the same whenever the picture is drawn."""
    noise = Noise.seeded("picture", peer)
    return rc.Part.of(rc.release(rc.craft(table, contract, peer, noise=noise), contract, noise=noise))


def weights(model: rc.Model, x: float, y: float) -> list[Element]:
    """The largest weights, as bars."""
    top = sorted(model.coefficients, key=lambda c: -abs(c.effect))[:8]
    largest, axis, reach = abs(top[0].effect), x + 190, 86.0
    out = [tag("line", x1=axis, x2=axis, y1=y - 12, y2=y + 26 * len(top) - 14, stroke=LIGHT.counter)]
    for at, c in enumerate(top):
        wide = reach * abs(c.effect) / largest
        left, fill = (axis, LIGHT.accent) if c.effect > 0 else (axis - wide, LIGHT.counter)
        out.append(text(c.name, x, y + 26 * at + 4))
        out.append(tag("rect", x=left, y=y + 26 * at - 8, width=wide, height=15, rx=2, fill=fill))
    return out


def picture() -> str:
    """The picture as SVG."""
    contract, tables = rc.example_peers(rows=ROWS)
    parts = {peer: shared(table, contract, peer) for peer, table in tables.items()}
    model = rc.learn(list(parts.values()), contract)
    body: list[Element] = [
        tag("rect", width=WIDTH, height=HEIGHT, rx=18, fill=LIGHT.ground),
        text("Rows stay", LEFT + 18, 40, "title"),
        text("Sums with noise leave", MIDDLE + 18, 40, "title"),
        text("One model for both", RIGHT + 18, 40, "title"),
    ]
    shown = {
        "bank": ("bank.csv", raw(tables["bank"], ["region", "age", "income", "defaulted"]), "income"),
        "insurer": (
            "insurer.parquet",
            raw(tables["insurer"], ["region", "age_at_signing", "premium", "defaulted"]),
            "premium",
        ),
    }
    for at, (peer, (file, rows, name)) in enumerate(shown.items()):
        top = 62.0 + 186 * at
        cells = parts[peer].table.num_rows
        body += card(LEFT, top, 166, file, f"{ROWS:,} rows", accent=False)
        body += grid(LEFT + 18, top + 62, rows, [0, 66, 116, 196])
        body += card(
            MIDDLE, top, 166, f"{peer}.part.parquet", f"{cells} cells, {parts[peer].nbytes / 1000:.0f} kB", accent=True
        )
        body += grid(MIDDLE + 18, top + 62, sums(parts[peer], name), [0, 54, 128, 172, 214])
        body += [
            arrow(LEFT + CARD + 4, top + 83, MIDDLE - 8, top + 83),
            arrow(MIDDLE + CARD + 4, top + 83, RIGHT - 8, 236 + 40 * (at - 0.5)),
        ]
    body += card(RIGHT, 62, 352, "model.json", f"{len(model.coefficients)} weights", accent=False)
    body += weights(model, RIGHT + 18, 118)
    worst = max(model.estimate.outlooks, key=lambda outlook: outlook.caution)
    body += [
        tag("line", x1=RIGHT + 18, x2=RIGHT + CARD - 18, y1=340, y2=340, stroke=LIGHT.line),
        text(f"Expect {model.estimate.error:.1%} error, {worst.error:.1%} at worst.", RIGHT + 18, 366),
        text("No id, no matching, no joined row.", RIGHT + 18, 390, "quiet"),
    ]
    head = tag(
        "marker",
        tag("path", d="M0 0 L8 4 L0 8 z", fill=LIGHT.accent),
        id="head",
        viewBox="0 0 8 8",
        refX=6,
        refY=4,
        markerWidth=7,
        markerHeight=7,
        orient="auto",
    )
    total = size(sum(part.nbytes for part in parts.values()))
    svg = tag(
        "svg",
        tag("title", f"Two tables of {ROWS:,} rows stay, {total} of sums leave, one model comes back"),
        tag("defs", head),
        body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        font_family=", ".join([*FONTS, "sans-serif"]),
    )
    indent(svg, " ")
    return tostring(svg, encoding="unicode") + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
