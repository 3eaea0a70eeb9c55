"""radocraft study run|summary|figures|compare|fedsim."""

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
    FEDSIM_REMARK,
    NOISE_OF_KEYS,
    PRESETS,
    SummaryRow,
    best_peers,
    draw_figures,
    preset_named,
    read_results,
    run_fedsim,
    run_study,
    standings,
    summarise,
)
from radocraft.research import compare as compare_claims

app = typer.Typer(help="The paper's experiments: run, summarise, plot and compare them.", no_args_is_help=True)

Results = Annotated[Path, typer.Argument(help="The results file, Parquet.")]
_PRESETS = "Which cells: " + "; ".join(f"{name} ({preset.purpose})" for name, preset in PRESETS.items()) + "."


@app.command()
def run(
    preset: Annotated[str, typer.Option("--preset", "-p", help=_PRESETS)] = "quick",
    output: Annotated[Path, typer.Option("--output", "-o", help="The results file, Parquet.")] = Path("study.parquet"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of parallel processes.")] = 1,
    domain: Annotated[list[str] | None, typer.Option(help="Only this domain; may be repeated.")] = None,
    again: Annotated[
        str | None,
        typer.Option(help="Run cells of these algorithms anew, such as `ours` when the code has changed."),
    ] = None,
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
            cells,
            output,
            jobs=jobs,
            again=again,
            progress=lambda done, total: report(f"{done} of {total}", done, total),
        )
    if as_json:
        print_json({"preset": preset, "results": str(output), "cells_run": ran, "cells_there": there})
    else:
        err.print(f"{ran} cells run, {there} were there. Next: radocraft study summary {output}")


@app.command()
def summary(
    results: Results,
    by_domain: Annotated[bool, typer.Option("--by-domain", help="One row per domain.")] = False,
    as_json: Json = False,
) -> None:
    """Say how often each algorithm beats every peer, and how far from the oracle it stays.

    Example: radocraft study summary quick.parquet
    """
    records = read_results(results)
    table = standings(records)
    lines = [] if table else summarise(records, by_domain)
    if as_json:
        print_json([without_nan(asdict(line)) for line in table or lines])
        return
    show_standings(records)
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


def show_standings(records: list[dict[str, Any]]) -> None:
    """The main table: one row for every method and gate."""
    lines = standings(records)
    for over in dict.fromkeys(line.over for line in lines):
        members = [line for line in lines if line.over == over]
        table = Table(Column("method", no_wrap=True), Column("gate", no_wrap=True), box=MARKDOWN)
        for name in ("error", "AUC", "log\nloss", "gap"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("wins", no_wrap=True)
        for line in members:
            loss = "" if isnan(line.log_loss) else f"{line.log_loss:.3f}"
            wins = ", ".join(map(str, line.wins))
            figures = (f"{100 * line.error:.2f}", f"{line.auc:.3f}", loss, points(line.gap), wins)
            table.add_row(line.algorithm, line.gate or "", *figures)
        out.print(f"\n**{over}: {members[0].cells} cells**\n")
        out.print(table)
    if lines:
        out.print("gap: error above that of boosting on the joined table, in points")
        out.print("wins: cells in which the best peer's boosting is beaten in error, AUC, log loss")


_WIDE = 90
_SHOWN = ("majority", "best peer", "zip", "drl", "drl-identity", "matching 0", "matching 0.25", "oracle")
_WINNERS = ("drl", "matching 0.25")


def domain_table(lines: list[SummaryRow]) -> Table:
    """One row for every domain: mean errors, and in how many cells DRL and matching beat all peers."""
    table = Table(Column("domain", no_wrap=True), box=MARKDOWN)
    there = {line.name for line in lines}
    shown = [name for name in (*_SHOWN, "splink") if name in there]
    winners = [name for name in _WINNERS if name in there]
    for name in (*shown, *(f"{name} wins" for name in winners)):
        table.add_column(name if out.width >= _WIDE else name.replace(" ", "\n"), justify="right")
    for domain in dict.fromkeys(str(line.group["domain"]) for line in lines):
        ours = {line.name: line for line in lines if line.group["domain"] == domain}
        errors = [f"{100 * ours[name].error:.1f}" if name in ours else "" for name in shown]
        wins = [f"{ours[name].wins}/{ours[name].cells}" if name in ours else "" for name in winners]
        table.add_row(domain, *errors, *wins)
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
        *([f"rados scored by {group['rado_score']}"] if group["rado_score"] != "drawn" else []),
        *([f"Gamma scaled by {group['gamma_scale']}"] if group["gamma_scale"] != "columns" else []),
        *(["an order of features for each cell"] if group["feature_order"] == "per-cell" else []),
        *(["only binnable features shared"] if group["shareable"] == "binnable" else []),
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


@app.command()
def compare(results: Results, as_json: Json = False) -> None:
    """Hold the results against the paper's claims, claim by claim, over all orders of features.

    Then the paper's column of best peers, beside ours and the error of always answering the commoner label.

    Example: radocraft study compare authors.parquet
    """
    records = read_results(results)
    verdicts, peers = compare_claims(records), best_peers(records)
    if as_json:
        print_json({"claims": [asdict(v) for v in verdicts], "best_peers": [asdict(line) for line in peers]})
        return
    out.print(claim_table(records))
    if peers:
        out.print()
        out.print(peer_table(records))


def claim_table(records: list[dict[str, Any]]) -> Table:
    """One row for every claim."""
    table = Table("claim", "ours", "holds", "orders", "best known", box=MARKDOWN)
    for verdict in compare_claims(records):
        holds = {True: "yes", False: "no", None: "–"}[verdict.holds]
        orders = f"{verdict.holding}/{verdict.orders}" if verdict.orders > 1 else ""
        table.add_row(verdict.claim, verdict.ours, holds, orders, verdict.best)
    return table


def peer_table(records: list[dict[str, Any]]) -> Table:
    """The paper's column of best peers beside ours."""
    table = Table(Column("domain", no_wrap=True), box=MARKDOWN)
    for name in ("commoner label", "best peer, paper", "least of an order", "mean of cells"):
        table.add_column(name, justify="right")
    for line in best_peers(records):
        least = f"{100 * line.least:.1f} ± {100 * line.spread:.1f}"
        table.add_row(
            line.domain, f"{100 * line.majority:.1f}", f"{100 * line.paper:.0f}", least, f"{100 * line.mean:.1f}"
        )
    return table


@app.command()
def fedsim(
    runs: Annotated[int, typer.Option(min=1, help="Splits into training and test rows; their mean counts.")] = 5,
    as_json: Json = False,
) -> None:
    """Set ours and local models beside the published table of FedSim (NeurIPS 2022) on its data set "frog".

    The files come from the folder `fedsim` of RADOCRAFT_DATA.

    Example: radocraft study fedsim --runs 1
    """
    with progress("fedsim", hidden=as_json) as report:
        lines = run_fedsim(runs, report)
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    table = Table(Column("accuracy at noise in B's keys of", no_wrap=True), Column("by", no_wrap=True), box=MARKDOWN)
    for level in NOISE_OF_KEYS:
        table.add_column(level, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(line.method, line.source, *(f"{value:.3f}" for value in line.accuracy))
    out.print(table)
    out.print(FEDSIM_REMARK)


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
