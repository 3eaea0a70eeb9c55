"""Peers made up from one table: the example, the demonstration, and the scikit-learn classifier.

In comes one table, public or invented. Out goes what peers with its columns would have learned together, compared with
what each could do alone.

To add something to compare with: `_baselines.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from radocraft.demo._baselines import (
    FINE_GAMMAS,
    PAPER_GAMMAS,
    Linear,
    PeerTable,
    Scaling,
    fit_ridge,
    in_units,
    units_of,
    zip_rows,
)
from radocraft.demo._demo import World, demo, wine_folds
from radocraft.demo._example import example_peers, example_people, write_example

if TYPE_CHECKING:
    from radocraft.demo._estimator import RadocraftClassifier

__all__ = [
    "FINE_GAMMAS",
    "PAPER_GAMMAS",
    "Linear",
    "PeerTable",
    "RadocraftClassifier",
    "Scaling",
    "World",
    "demo",
    "example_peers",
    "example_people",
    "fit_ridge",
    "in_units",
    "units_of",
    "wine_folds",
    "write_example",
    "zip_rows",
]


def __getattr__(name: str) -> Any:
    """The scikit-learn face, when it is asked for: scikit-learn is slow to import."""
    if name != "RadocraftClassifier":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from radocraft.demo._estimator import RadocraftClassifier  # noqa: PLC0415

    return RadocraftClassifier
