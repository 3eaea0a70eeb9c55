"""The figures of the study, as PNG files.

As in the paper: delta and q over (p, dim J) for every domain and setting, with
the line delta = 0; error against bins on ionosphere; DRL and matching against
the oracle on sonar; tuned against dummy Gamma on firmteacher and mice. Ours:
one page for every domain, and one overview.

On the page of a domain both stand under the same choices; in the other figures
DRL is shown under choices like the paper's, expected matching under ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radocraft.errors import StudyError
from radocraft.storage import writing
from radocraft.study.cell import Record
from radocraft.study.compare import errors_by_bins, like_the_paper
from radocraft.study.domains import DOMAINS
from radocraft.study.metrics import LEVEL
from radocraft.study.panels import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILION, Frame, diagonal, surface, tidy
from radocraft.study.summary import merge_seeds, usual

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAUTION = 0.25
_TITLES = {
    "vertical": "every row at every peer (VP)",
    "duplicates": "VP, and copies, $p_s$ = 0.2",
    "one-peer": "every row at one peer, $p_s$ = 0.2",
}

_CHOICES = {True: "choices like the paper's", False: "our choices"}


def draw_figures(records: Sequence[Record], folder: str | Path) -> list[Path]:
    """Draw every figure the results have cells for; gives the files written."""
    _check_matplotlib()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Figure | None] = {f"domain-{name}": domain_page(records, name) for name in DOMAINS}
    figures["overview"] = overview(records)
    figures["bins-ionosphere"] = bins_figure(records)
    figures["oracle-sonar"] = oracle_figure(records, "sonar")
    figures["gamma"] = gamma_figure(records, ("firmteacher", "mice"))
    written = []
    for name, figure in figures.items():
        if figure is not None:
            with writing(target / f"{name}.png") as file:
                figure.savefig(file, dpi=150, format="png", facecolor="white")
            written.append(target / f"{name}.png")
    if not written:
        raise StudyError("The results hold no cell for any figure. Run `radocraft study run --preset quick` first.")
    return written


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
        and like_the_paper(record) == paper
    ]


def domain_page(records: Sequence[Record], domain: str) -> Figure | None:
    """Delta and q of DRL and of matching over (p, dim J), one row for every setting and set of choices."""
    ours = usual(records)
    rows = {}
    for setting, paper in product(_TITLES, (True, False)):
        row = [pick(ours, name, domain=domain, setting=setting, paper=paper) for name in ("drl", "matching")]
        if all(row):
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
            bar = figure.colorbar(surface(where, cells, measure, frame), ax=where, fraction=0.05, pad=0.02)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=7, length=0)


def overview(records: Sequence[Record]) -> Figure | None:
    """Mean error of everyone on every domain, our choices, one panel for every setting."""
    cells = [r for r in merge_seeds(usual(records)) if not like_the_paper(r) and r["min_rows"] == 1]
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
        axes.plot([min(errors.values()), max(errors.values())], [row, row], color="#CCCCCC", linewidth=1.5, zorder=1)
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
        errors = errors_by_bins([r for r in records if like_the_paper(r) == paper], algorithm, caution)
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
        cells = pick(usual(records), algorithm, domain=domain, paper=paper)
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
            {_place(r): 100 * r["error"] for r in pick(usual(records), name, domain=domain, paper=True)}
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


def _place(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("peers", "shared", "setting", "share", "seed", "columns", "binarisation"))
