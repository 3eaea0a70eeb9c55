"""A part of scores on the terminal: what its sums mean, and what leaves besides its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from radocraft.cli._terminal import out
from radocraft.parts import Part

SCORE_SUMS = ("sum of scores", "sum of distances")
"""How the two summed columns of a score are shown."""
GIVEN_THE_MODEL = (
    "The epsilon covers these sums, given the peer's model. A row that the model was fitted on also moved the "
    "scores of other rows; this epsilon does not count that. A model fitted earlier, on other rows, has no such gap."
)
"""What the epsilon of a part of scores does not cover."""


def print_units(part: Part) -> None:
    """What a score is here."""
    centre, unit = part.metadata["centre"][0], part.metadata["scale"][0]
    out.print(
        f"A row's score is the log-odds that the model of {part.peer} gives it, centred at {centre:.3g} and divided by "
        f"{unit:g}. Its distance is from the mean score of the row's cell, divided by {unit:g}."
    )


def print_tables(part: Part, count: int) -> None:
    """Histograms whole, long tables by their first numbers."""
    tables = part.score_tables()
    _print_numbers("Rows by distance from the cell's mean score, from far below to far above", tables.histogram, 10**9)
    _print_numbers("Rows by score, from far below the base rate's to far above", tables.margins, 10**9)
    signatures = {label: [f"{rows:,.0f}" for rows in each] for label, each in tables.counts.items()}
    _print_numbers("Rows by agreed signature, in the contract's order", signatures, count)
    if any(tables.groups.values()):
        _print_numbers("Distances, in deviations, summed by group of the key", tables.groups, count)
    if part.metadata["policy"]["mode"] == "noise":
        out.print(GIVEN_THE_MODEL)


def _print_numbers(title: str, numbers: Mapping[str, Sequence[float | str]], count: int) -> None:
    grid = Table("label", "numbers", title=title, title_justify="left")
    for label, each in numbers.items():
        shown = [number if isinstance(number, str) else f"{number:,.4g}" for number in each[:count]]
        more = f" ... and {len(each) - len(shown):,} more" if len(each) > len(shown) else ""
        grid.add_row(label, " ".join(shown) + more)
    out.print(grid)
