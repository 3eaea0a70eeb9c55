"""The figures of the study, as PNG files.

As in the paper: delta and q over (p, dim J) for every domain and setting, with
the line delta = 0; error against bins on ionosphere; DRL and matching against
the oracle on sonar; tuned against dummy Gamma on firmteacher and mice. Ours:
one page for every domain, one overview, and how far probabilities hold.

DRL is shown in the authors' reading where there is one, expected matching under our
choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radocraft.errors import StudyError
from radocraft.files import writing
from radocraft.pages import BLUE, FONTS, GREEN, GREY, LIGHT, ORANGE, SKY, VERMILION
from radocraft.research.study._cell import Record
from radocraft.research.study._claims import errors_by_bins
from radocraft.research.study._compare import as_the_authors_read
from radocraft.research.study._domains import DOMAINS
from radocraft.research.study._metrics import LEVEL
from radocraft.research.study._panels import INK, Frame, diagonal, surface, tidy
from radocraft.research.study._summary import merge_seeds, with_default_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAUTION = 0.25
_TITLES = {
    "vertical": "every row at every peer (VP)",
    "duplicates": "VP, and copies, $p_s$ = 0.2",
    "one-peer": "every row at one peer, $p_s$ = 0.2",
}

_CHOICES = {True: "the authors' reading", False: "our choices"}


def draw_figures(records: Sequence[Record], folder: str | Path, *, replace: bool = True) -> list[Path]:
    """Draw every figure the results have cells for, over others only with ``replace``; gives the files written."""
    _check_matplotlib()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    with _look():
        for name, figure in _drawn(records):
            if figure is not None:
                with writing(target / f"{name}.png", replace=replace) as file:
                    figure.savefig(file, dpi=150, format="png", facecolor=LIGHT.card)
                written.append(target / f"{name}.png")
    if not written:
        raise StudyError("The results hold no cell for any figure. Run `radocraft study run --preset quick` first.")
    return written


def _drawn(all_records: Sequence[Record]) -> Iterator[tuple[str, Figure | None]]:
    records = [record for record in all_records if not record["corruption"]]
    for name in DOMAINS:
        yield f"domain-{name}", domain_page(records, name)
    yield "overview", overview(records)
    yield "bins-ionosphere", bins_figure(records)
    yield "oracle-sonar", oracle_figure(records, "sonar")
    yield "gamma", gamma_figure(records, ("firmteacher", "mice"))
    yield "reliability", reliability_figure(records)
    yield "corruption", corruption_figure(all_records)


def _look() -> AbstractContextManager[None]:
    """The fonts and colours of `report.theme`, while figures are drawn."""
    from matplotlib import font_manager, rc_context  # noqa: PLC0415

    fonts = [name for name in FONTS if name in font_manager.get_font_names()]
    colours = dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), LIGHT.ink)
    quiet = dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor"), LIGHT.muted)
    return rc_context({"font.family": fonts or "sans-serif", **colours, **quiet})


def _check_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401, PLC0415
    except ImportError as error:
        raise StudyError("Figures need matplotlib. Install it with: pip install 'radocraft[study]'") from error


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415  (an extra; only figures need it)

    return Figure(figsize=(width, height), layout="constrained")


def pick(
    records: Sequence[Record], algorithm: str, *, domain: str, setting: str | None = None, paper: bool
) -> list[Record]:
    """Records of one algorithm on one domain, in one setting if given; matching at the default caution."""
    caution = CAUTION if algorithm == "matching" else None
    return [
        record
        for record in records
        if (record["algorithm"], record["caution"], record["domain"]) == (algorithm, caution, domain)
        and setting in (None, record["setting"])
        and record["setting"] != "random"
        and as_the_authors_read(record) == paper
    ]


def domain_page(records: Sequence[Record], domain: str) -> Figure | None:
    """Delta and q of DRL and of matching over (p, dim J), one row for every setting and set of choices."""
    ours = with_default_bins(records)
    rows = {}
    for setting, paper in product(_TITLES, (True, False)):
        row = [pick(ours, name, domain=domain, setting=setting, paper=paper) for name in ("drl", "matching")]
        if any(row):
            rows[f"{_TITLES[setting]}\n{_CHOICES[paper]}"] = row
    if not rows:
        return None
    frame = Frame.around([record for row in rows.values() for cells in row for record in cells])
    height = max(0.26 * len(frame.shared) + 0.9, 2.1)
    figure = _figure(13.0, height * len(rows) + 1.1)
    figure.suptitle(f"{domain}: DRL and expected matching (caution {CAUTION:g})", fontsize=13)
    grid: Any = figure.subplots(len(rows), 4, squeeze=False)
    for (title, row), axes in zip(rows.items(), grid, strict=True):
        _domain_row(figure, axes, row, frame)
        axes[0].set_ylabel(f"{title}\n\nshared dim(J)", fontsize=9)
    titles = ("DRL: Δ in points", "DRL: q", "matching: Δ in points", "matching: q")
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title, fontsize=11, fontweight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("peers p")
    return figure


def _domain_row(figure: Figure, axes: Sequence[Axes], row: list[list[Record]], frame: Frame) -> None:
    for at, cells in enumerate(row):
        for measure, where in (("delta", axes[2 * at]), ("q", axes[2 * at + 1])):
            if not cells:
                where.set_axis_off()
                continue
            bar = figure.colorbar(surface(where, cells, measure, frame), ax=where, fraction=0.05, pad=0.02)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=7, length=0)


def overview(records: Sequence[Record]) -> Figure | None:
    """Mean error of everyone on every domain, our choices, one panel for every setting."""
    cells = [r for r in merge_seeds(with_default_bins(records)) if not as_the_authors_read(r) and r["min_rows"] == 1]
    settings = [s for s in _TITLES if any(r["setting"] == s for r in cells)]
    if not settings:
        return None
    figure = _figure(4.6 * len(settings) + 0.6, 5.6)
    grid: Any = figure.subplots(1, len(settings), squeeze=False, sharey=True, sharex=True)
    names = [name for name in DOMAINS if any(r["domain"] == name for r in cells)][::-1]
    for setting, axes in zip(settings, grid[0], strict=True):
        here = [record for record in cells if record["setting"] == setting]
        for row, name in enumerate(names):
            _overview_row(axes, [record for record in here if record["domain"] == name], row)
        axes.set_title(_TITLES[setting], fontsize=10)
        axes.set_xlabel("mean test error in %")
        axes.set_yticks(range(len(names)), names)
        axes.set_xlim(left=0)
        tidy(axes)
    figure.suptitle(
        "Mean error over all cells of a domain (standard scaling, intercept, one-hot shared features)", fontsize=13
    )
    handles, labels = grid[0][0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=len(unique), frameon=False)
    return figure


_MARKS = (
    ("mean peer", None, SKY, "o", "mean peer"),
    ("drl", None, VERMILION, "X", "DRL"),
    ("best peer", None, BLUE, "s", "best peer"),
    ("zip", None, ORANGE, "^", "zip"),
    ("matching", CAUTION, GREEN, "D", f"matching {CAUTION:g}"),
    ("oracle", None, INK, "|", "oracle"),
)


def _overview_row(axes: Axes, records: list[Record], row: int) -> None:
    errors = {}
    for algorithm, caution, _, _, label in _MARKS:
        ours = [r["error"] for r in records if (r["algorithm"], r["caution"]) == (algorithm, caution)]
        if ours:
            errors[label] = 100 * float(np.mean(ours))
    if errors:
        axes.plot([min(errors.values()), max(errors.values())], [row, row], color=LIGHT.line, linewidth=1.5, zorder=1)
    for _, _, colour, marker, label in _MARKS:
        if label in errors:
            style: dict[str, Any] = (
                {"s": 150, "linewidths": 1.8} if marker == "|" else {"s": 48, "linewidths": 0.5, "edgecolors": "white"}
            )
            axes.scatter(errors[label], row, color=colour, marker=marker, label=label, zorder=3, **style)


def bins_figure(records: Sequence[Record]) -> Figure | None:
    """Error against the number of bins on ionosphere, each (p, dim J) thin, the average bold."""
    panels = []
    for algorithm, caution, paper, title in (("drl", None, True, "DRL"), ("matching", CAUTION, False, "matching")):
        errors = errors_by_bins([r for r in records if as_the_authors_read(r) == paper], algorithm, caution)
        if len(errors) > 1:
            panels.append((title, errors))
    if not panels:
        return None
    figure = _figure(5.0 * len(panels), 4.2)
    grid: Any = figure.subplots(1, len(panels), squeeze=False, sharey=True)
    for (title, errors), axes in zip(panels, grid[0], strict=True):
        bins, table = [*errors], 100 * np.array([*errors.values()])
        axes.plot(bins, table, color=SKY, linewidth=1.0, alpha=0.8)
        axes.plot(bins, table.mean(axis=1), color=BLUE, linewidth=3.0, marker="o", label="average")
        axes.set_title(f"{title} on ionosphere")
        axes.set_xlabel("bins of a shared feature")
        axes.set_xticks(bins)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        tidy(axes)
    grid[0][0].set_ylabel("test error in %")
    return figure


def oracle_figure(records: Sequence[Record], domain: str) -> Figure | None:
    """Error against the oracle's, by significance of the difference."""
    panels = []
    for algorithm, paper, title in (("drl", True, "DRL"), ("matching", False, "matching")):
        cells = pick(with_default_bins(records), algorithm, domain=domain, paper=paper)
        if cells:
            panels.append((title, cells))
    if not panels:
        return None
    figure = _figure(5.2 * len(panels), 5.4)
    grid: Any = figure.subplots(1, len(panels), squeeze=False)
    for (title, cells), axes in zip(panels, grid[0], strict=True):
        _against_oracle(axes, cells)
        axes.set_title(f"{title} on {domain}")
        axes.set_xlabel("oracle's test error in %")
        axes.set_ylabel(f"{title}'s test error in %")
    return figure


_STANDINGS = {
    "significantly worse": (VERMILION, "X"),
    "no significant difference": (GREY, "o"),
    "significantly better": (GREEN, "D"),
}


def _standing(record: Record) -> str:
    if record["oracle_p"] > LEVEL:
        return "no significant difference"
    return "significantly worse" if record["oracle_gap"] > 0 else "significantly better"


def _against_oracle(axes: Axes, cells: list[Record]) -> None:
    for label, (colour, marker) in _STANDINGS.items():
        ours = [record for record in cells if _standing(record) == label]
        x = [100 * (record["error"] - record["oracle_gap"]) for record in ours]
        y = [100 * record["error"] for record in ours]
        style: dict[str, Any] = {"s": 36, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        axes.scatter(x, y, color=colour, marker=marker, label=f"{label} ({len(ours)})", **style)
    diagonal(axes, [100 * (r["error"] - r["oracle_gap"]) for r in cells], [100 * r["error"] for r in cells])
    axes.legend(frameon=False, loc="lower right", fontsize=9)


def gamma_figure(records: Sequence[Record], domains: Sequence[str]) -> Figure | None:
    """Error of DRL with tuned Gamma against Gamma = Id, cell by cell."""
    panels = []
    for domain in domains:
        tuned, dummy = (
            {_place(r): 100 * r["error"] for r in pick(with_default_bins(records), name, domain=domain, paper=True)}
            for name in ("drl", "drl-identity")
        )
        if tuned:
            panels.append((domain, [dummy[key] for key in tuned], [*tuned.values()]))
    if not panels:
        return None
    figure = _figure(5.2 * len(panels), 5.4)
    grid: Any = figure.subplots(1, len(panels), squeeze=False)
    for (domain, dummy_errors, tuned_errors), axes in zip(panels, grid[0], strict=True):
        axes.scatter(dummy_errors, tuned_errors, color=BLUE, s=36, edgecolors="white", linewidths=0.5, zorder=3)
        diagonal(axes, dummy_errors, tuned_errors)
        better = sum(t < d for t, d in zip(tuned_errors, dummy_errors, strict=True))
        axes.set_title(f"{domain}: tuning helps in {better} of {len(tuned_errors)} cells")
        axes.set_xlabel("DRL, Γ = Id: test error in %")
        axes.set_ylabel("DRL, Γ tuned: test error in %")
    return figure


def reliability_figure(records: Sequence[Record]) -> Figure | None:
    """What rows are told against what is so, one panel for every domain, all its (VP) cells together."""
    panels = {}
    for name in DOMAINS:
        cells = pick(with_default_bins(records), "matching", domain=name, setting="vertical", paper=False)
        if found := [np.array(record["reliability"]) for record in cells if record.get("reliability")]:
            panels[name] = (np.vstack(found), float(np.mean([record["calibration_error"] for record in cells])))
    if not panels:
        return None
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = _figure(3.0 * columns, 3.1 * rows)
    grid: Any = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    for (name, (bins, off)), axes in zip(panels.items(), grid.ravel(), strict=False):
        share, predicted, true = bins.T
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.0)
        axes.scatter(predicted, true, s=6 + 220 * share, color=BLUE, alpha=0.55, linewidths=0)
        axes.set_title(f"{name}: off by {off:.3f}", fontsize=10)
        tidy(axes)
    figure.supxlabel("probability told by expected matching, in ten bins (area: share of the rows)", fontsize=10)
    figure.supylabel("share that is positive", fontsize=10)
    return figure


_CORRUPTED = {"signatures": "signatures wrong at one of two peers", "labels": "labels wrong at one of two peers"}


def corruption_figure(records: Sequence[Record]) -> Figure | None:
    """Error against the share of wrong signatures or labels, the mean over all domains that have every share."""
    wrong = [record for record in records if record["corruption"]]
    cells = {(r["domain"], r["seed"]) for r in wrong}
    clean = [r for r in records if not r["corruption"] and r["setting"] == "vertical" and r["algorithms"] == "linkage"]
    clean = [r for r in clean if (r["domain"], r["seed"]) in cells]
    if not wrong or not clean:
        return None
    kinds = [kind for kind in _CORRUPTED if any(r["corrupted"] == kind for r in wrong)]
    figure = _figure(5.0 * len(kinds), 4.4)
    grid: Any = figure.subplots(1, len(kinds), squeeze=False, sharey=True)
    for kind, axes in zip(kinds, grid[0], strict=True):
        shown = merge_seeds([*clean, *(r for r in wrong if r["corrupted"] == kind)])
        shares = sorted({r["corruption"] for r in shown})
        for algorithm, caution, colour, marker, label in (*_MARKS, ("splink", None, GREY, "v", "Splink")):
            ours = [r for r in shown if (r["algorithm"], r["caution"]) == (algorithm, caution)]
            if label in {"DRL", "mean peer"} or not ours:
                continue
            means = [100 * float(np.mean([r["error"] for r in ours if r["corruption"] == at])) for at in shares]
            dotted = ":" if label == "oracle" else "-"
            axes.plot([100 * at for at in shares], means, dotted, color=colour, marker=marker, label=label)
        axes.set_title(_CORRUPTED[kind], fontsize=11)
        axes.set_xlabel("share wrong in %")
        axes.set_xticks([100 * share for share in shares], [f"{100 * share:g}" for share in shares])
        tidy(axes)
    grid[0][0].set_ylabel("test error in %, mean over domains")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _place(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("peers", "shared", "setting", "share", "seed", "columns", "binarisation"))
