"""Peers made up from one table: the example, the demonstration, and the scikit-learn face.

In comes one table, public or invented; out goes what peers with its columns would have learned together, beside what
each could do alone.
"""

from radocraft.demo._demo import World, demo, wine_folds
from radocraft.demo._estimator import RadocraftClassifier
from radocraft.demo._example import example_peers, example_people, write_example

__all__ = [
    "RadocraftClassifier",
    "World",
    "demo",
    "example_peers",
    "example_people",
    "wine_folds",
    "write_example",
]
