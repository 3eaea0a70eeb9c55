"""Peers made up from one table: the example, the demonstration, and the scikit-learn face.

In comes one table, public or invented; out goes what peers with its columns would have learned together, beside what
each could do alone.
"""

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
from radocraft.demo._estimator import RadocraftClassifier
from radocraft.demo._example import example_peers, example_people, write_example

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
