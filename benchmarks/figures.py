"""The figures of docs/benchmarks.md, from what the benchmarks printed: python benchmarks/figures.py artefacts/bench.

The folder holds craft.json, linkage.json and growth.json, each the output of the
script of that name. One figure is drawn of each, and one of bytes sent.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from radocraft.pages._theme import BLUE, FONTS, GREEN, GREY, LIGHT, ORANGE, SKY, VERMILION

OUTPUT = Path(__file__).parents[1] / "docs" / "figures"
LOOK = {
    "font.family": "sans-serif",
    "font.sans-serif": FONTS,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LIGHT.line,
    "axes.labelcolor": LIGHT.muted,
    "text.color": LIGHT.ink,
    "xtick.color": LIGHT.muted,
    "ytick.color": LIGHT.muted,
    "legend.frameon": False,
    "savefig.bbox": "tight",
    "savefig.dpi": 160,
}
METHODS = {"radocraft": BLUE, "radocraft, caution 0": SKY, "zip": GREY, "splink": VERMILION, "recordlinkage": ORANGE}
NAMES = {"rows": "rows", "width": "private columns", "blocks": "blocks", "peers": "peers"}


def craft(found: list[dict[str, Any]]) -> Figure:
    """Time of crafting as a multiple of the quickest bare scan, for every shape of table and each codec."""
    codecs = list(dict.fromkeys(one["codec"] for one in found))
    figure, panels = plt.subplots(1, len(codecs), figsize=(7.2, 3.4), sharey=True, layout="constrained", squeeze=False)
    kinds = {"grouped": (LIGHT.line, "DuckDB's GROUP BY"), "sums": (SKY, "block sums"), "whole": (BLUE, "and moments")}
    for axes, codec in zip(panels[0], codecs, strict=True):
        own = [one for one in found if one["codec"] == codec]
        for offset, (kind, (colour, label)) in enumerate(kinds.items(), start=-1):
            places, ratios = [at + 0.28 * offset for at in range(len(own))], [one[f"{kind}_ratio"] for one in own]
            axes.barh(places, ratios, height=0.25, color=colour, label=label)
            for at, ratio in zip(places, ratios, strict=True):
                axes.annotate(f"{ratio:.1f}", (ratio, at), (3, 0), textcoords="offset points", va="center", fontsize=7)
        axes.axvline(1, color=LIGHT.ink, linewidth=0.8)
        axes.set_yticks(range(len(own)), [f"{o['rows']:,} x {o['width']}\n{o['blocks']:,} blocks" for o in own])
        axes.set_title(codec, loc="left", fontsize=9)
        axes.set_xlabel("in bare scans of the same file")
    panels[0][0].invert_yaxis()
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def linkage(found: dict[str, Any]) -> Figure:
    """Processor time, memory, bytes and error against rows, for every method."""
    figure, panels = plt.subplots(2, 2, figsize=(7.2, 5.0), layout="constrained")
    measures: tuple[tuple[str, Callable[[dict[str, Any]], float]], ...] = (
        ("processor time (s)", lambda run: run["cost"]["cpu"]),
        ("peak memory (GB)", lambda run: run["cost"]["peak"] / 1e9),
        ("sent (MB)", lambda run: run["sent"] / 1e6),
        ("test error (%)", lambda run: 100 * run["error"]),
    )
    for axes, (title, value) in zip(panels.flat, measures, strict=True):
        for method, colour in METHODS.items():
            runs = [run for run in found["runs"] if run["method"] == method and run["cost"]["finished"]]
            axes.plot([run["rows"] for run in runs], list(map(value, runs)), "o-", color=colour, label=method, ms=4)
        axes.set_xscale("log")
        axes.set_yscale("linear" if "error" in title else "log")
        axes.set_xlabel("rows at each peer")
        axes.set_title(title, loc="left", fontsize=9)
        if "error" not in title:
            _plain(axes, "y")
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def growth(found: list[dict[str, Any]]) -> Figure:
    """Processor time and memory against each size, with the fitted exponents."""
    figure, panels = plt.subplots(1, len(found), figsize=(2.4 * len(found), 2.6), layout="constrained")
    for axes, curve in zip(panels, found, strict=True):
        _line(axes, curve, "cpu", BLUE, label=f"time, exponent {curve['time_exponent']:.2f}", unit=1.0)
        _line(axes, curve, "peak", ORANGE, label=f"memory, exponent {curve['memory_exponent']:.2f}", unit=1e-9)
        axes.set_xlabel(NAMES[curve["against"]])
        axes.set_title("learn" if curve["against"] == "peers" else "craft", loc="left", fontsize=9)
        axes.legend(fontsize=7, loc="upper left")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * 4)
        axes.set_xticks(curve["sizes"], [_short(size) for size in curve["sizes"]])
        axes.minorticks_off()
        _plain(axes, "y")
    panels[0].set_ylabel("seconds, gigabytes")
    return figure


def _line(axes: Axes, curve: dict[str, Any], measure: str, colour: str, *, label: str, unit: float) -> None:
    values = [cost[measure] * unit for cost in curve["costs"]]
    axes.loglog(curve["sizes"], values, "o-", color=colour, label=label, ms=4)


def _plain(axes: Axes, side: str) -> None:
    """Numbers as people write them on a logarithmic axis, at 1, 2 and 5."""
    axis = axes.xaxis if side == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _short(size: int) -> str:
    return f"{size // 1_000_000}M" if size >= 1_000_000 else f"{size // 1000}k" if size >= 1000 else str(size)


def sent(found: list[dict[str, Any]]) -> Figure:
    """Bytes of the part against bytes of the table."""
    figure, axes = plt.subplots(figsize=(4.2, 2.8))
    for curve, colour in zip([c for c in found if c["against"] in ("rows", "width")], (BLUE, GREEN), strict=True):
        held, gone = ([value / 1e6 for value in curve[name]] for name in ("held", "sent"))
        axes.loglog(held, gone, "o-", color=colour, label=f"more {NAMES[curve['against']]}", ms=4)
    for side in ("x", "y"):
        _plain(axes, side)
    axes.set_xlabel("the table (MB)")
    axes.set_ylabel("the part (MB)")
    axes.legend()
    return figure


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "artefacts/bench")
    drawings = {"craft": craft, "linkage": linkage, "growth": growth, "sent": sent}
    mpl.use("Agg")
    with mpl.rc_context(LOOK):
        for name, draw in drawings.items():
            source = folder / f"{'growth' if name == 'sent' else name}.json"
            if source.exists():
                draw(json.loads(source.read_text())).savefig(OUTPUT / f"bench-{name}.png")


if __name__ == "__main__":
    main()
