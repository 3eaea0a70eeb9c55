"""radocraft study run|summary|figures|compare."""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import MARKDOWN
from rich.table import Column, Table

from radocraft.cli._outputs import Force
from radocraft.cli._terminal import Json, err, out, print_json, progress
from radocraft.research import (
    PRESETS,
    SummaryRow,
    closest_choices,
    draw_figures,
    preset_named,
    read_results,
    readings,
    run_study,
    summarise,
)
from radocraft.research import compare as compare_claims

app = typer.Typer(help="The paper's experiments: run them, sum them up, draw them, compare.", no_args_is_help=True)

Results = Annotated[Path, typer.Argument(help="The results, a Parquet file.")]
_PRESETS = "Which cells: " + "; ".join(f"{name} ({preset.purpose})" for name, preset in PRESETS.items()) + "."


@app.command()
def run(
    preset: Annotated[str, typer.Option("--preset", "-p", help=_PRESETS)] = "quick",
    output: Annotated[Path, typer.Option("--output", "-o", help="The results file, Parquet.")] = Path("study.parquet"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes at a time.")] = 1,
    domain: Annotated[list[str] | None, typer.Option(help="Only this domain; may be given several times.")] = None,
    as_json: Json = False,
) -> None:
    """Run a grid of experiments; a run that was stopped goes on where it was.

    The tables come from the folder RADOCRAFT_DATA, or from the UCI repository if that is not set.

    Example: radocraft study run --preset quick --jobs 2 -o quick.parquet
    """
    chosen = preset_named(preset)
    cells = chosen.on(domain) if domain else chosen.cells
    with progress(f"study {preset}", hidden=as_json) as report:
        ran, there = run_study(
            cells, output, jobs=jobs, progress=lambda done, total: report(f"{done} of {total}", done, total)
        )
    if as_json:
        print_json({"preset": preset, "results": str(output), "cells_run": ran, "cells_there": there})
    else:
        err.print(f"{ran} cells run, {there} were there. Next: radocraft study summary {output}")


@app.command()
def summary(
    results: Results,
    by_domain: Annotated[bool, typer.Option("--by-domain", help="One row for every domain.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="Which reading of the paper's silent choices comes closest to it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say how often each algorithm beats every peer, and how far from the oracle it stays.

    Example: radocraft study summary quick.parquet
    """
    records = read_results(results)
    if settings:
        print_readings(records, as_json)
        return
    lines = summarise(records, by_domain)
    if as_json:
        print_json([without_nan(asdict(line)) for line in lines])
        return
    for title, group in by_title(lines).items():
        out.print(f"\n{title}\n")
        out.print(domain_table(group) if by_domain else algorithm_table(group))


def by_title(lines: list[SummaryRow]) -> dict[str, list[SummaryRow]]:
    """Lines of the same settings together, under those settings in words."""
    groups: dict[str, list[SummaryRow]] = {}
    for line in lines:
        groups.setdefault(title_of(line), []).append(line)
    return groups


def algorithm_table(lines: list[SummaryRow]) -> Table:
    """One row for every algorithm."""
    table = Table(Column("algorithm", no_wrap=True), box=MARKDOWN)
    for name in ("beats all peers", "mean Δ", "q", "gap to oracle", "level with oracle", "error", "AUC"):
        table.add_column(name, justify="right", min_width=6)
    for line in lines:
        table.add_row(
            line.name,
            f"{line.wins}/{line.cells}",
            points(line.delta),
            "" if isnan(line.q) else f"{line.q:.2f}",
            points(line.oracle_gap),
            "" if isnan(line.q) else percent(line.level_with_oracle),
            f"{100 * line.error:.2f}",
            "" if isnan(line.auc) else f"{line.auc:.3f}",
        )
    return table


_WIDE = 90
_SHOWN = ("best peer", "zip", "drl", "matching 0", "matching 0.25", "oracle")


def domain_table(lines: list[SummaryRow]) -> Table:
    """One row for every domain: mean errors, and in how many cells matching at the default caution beats all peers."""
    table = Table(Column("domain", no_wrap=True), box=MARKDOWN)
    shown = [*_SHOWN, *({"splink"} & {line.name for line in lines})]
    for name in (*shown, "wins 0.25"):
        table.add_column(name if out.width >= _WIDE else name.replace(" ", "\n"), justify="right")
    for domain in dict.fromkeys(str(line.group["domain"]) for line in lines):
        ours = {line.name: line for line in lines if line.group["domain"] == domain}
        errors = [f"{100 * ours[name].error:.1f}" if name in ours else "" for name in shown]
        matching = ours.get("matching 0.25")
        table.add_row(domain, *errors, f"{matching.wins}/{matching.cells}" if matching else "")
    return table


def title_of(line: SummaryRow) -> str:
    """The settings of a group in words."""
    group = line.group
    share = {"duplicates": "p_s", "one-peer": "p_s", "random": "eta"}.get(str(group["setting"]))
    words = [
        str(group["setting"]) + (f", {share} = {group['share']:g}" if share else ""),
        *([f"{group['corruption']:.0%} of {group['corrupted']} wrong at one peer"] if group["corruption"] else []),
        f"{group['scaling']} scaling",
        "intercept" if group["intercept"] else "no intercept",
        f"{group['encoding']} shared features",
        f"{group['gammas']} gammas",
        *(["grouped folds"] if group["grouped"] else []),
        f"min_rows {group['min_rows']}",
    ]
    return "; ".join(words)


def without_nan(values: dict[str, Any]) -> dict[str, Any]:
    """Null where a measure does not apply."""
    return {name: None if isinstance(value, float) and isnan(value) else value for name, value in values.items()}


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.0f} %"


def points(difference: float) -> str:
    """A difference of errors in points."""
    return f"{100 * difference:+.2f}"


def print_readings(records: list[dict[str, Any]], as_json: bool) -> None:
    """Which choices come closest to the paper's best-peer column."""
    found = readings(records)
    overall = closest_choices(found)
    domains = dict.fromkeys(reading.domain for reading in found)
    nearest = [min((r for r in found if r.domain == name), key=lambda r: r.distance) for name in domains]
    if as_json:
        choices = [{"scaling": s, "intercept": i, "encoding": e, "distance": d} for (s, i, e), d in overall]
        print_json({"choices": choices, "domains": [asdict(reading) for reading in nearest]})
        return
    table = Table("domain", "binarisation", "scaling", "intercept", "shared", "ours", "paper", box=MARKDOWN)
    for r in nearest:
        columns = "" if r.columns == "plain" else f" ({r.columns})"
        settings = (r.binarisation + columns, r.scaling, "yes" if r.intercept else "no", r.encoding)
        table.add_row(r.domain, *settings, f"{r.best_peer:.3f}", f"{r.paper:.2f}")
    out.print(table)
    out.print()
    table = Table("scaling", "intercept", "shared", "mean distance to the paper's best peer", box=MARKDOWN)
    for (scaling, intercept, encoding), distance in overall:
        table.add_row(scaling, "yes" if intercept else "no", encoding, f"{100 * distance:.1f}")
    out.print(table)


@app.command()
def compare(results: Results, as_json: Json = False) -> None:
    """Hold the results against the paper's claims, one line each: claim, ours, holds or not.

    Example: radocraft study compare full.parquet
    """
    verdicts = compare_claims(read_results(results))
    if as_json:
        print_json([asdict(verdict) for verdict in verdicts])
        return
    table = Table("claim", "ours", "holds", box=MARKDOWN)
    for verdict in verdicts:
        table.add_row(verdict.claim, verdict.ours, {True: "yes", False: "no", None: "–"}[verdict.holds])
    out.print(table)


@app.command()
def figures(
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write PNG files to.")] = Path("figures"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw the figures: one page for every domain, an overview, and the paper's other four.

    Example: radocraft study figures full.parquet -o figures
    """
    written = draw_figures(read_results(results), output, replace=force)
    if as_json:
        print_json([str(path) for path in written])
    else:
        out.print(f"Wrote {len(written)} figures to {output}.")
