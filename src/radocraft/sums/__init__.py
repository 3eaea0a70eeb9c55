"""Numbers by block: a peer's tally, and cells in the model's units.

In come sums of bounded rows, as whole numbers on a grid, from `rows`. Out go sums by block and second moments by
label. This room sees no row.

To add a number to the tally: a field in `_tally.py`.
"""

from radocraft.sums._bounds import GRID, Bounding, Bounds, Steps
from radocraft.sums._cells import (
    ROLLED,
    Cells,
    Levels,
    assemble,
    encoded_sums,
    hidden_sums,
    locate,
    of_label,
    standardise,
)
from radocraft.sums._pieces import Bound, Piece, Range
from radocraft.sums._proportions import Method, guess_by_label, with_labels
from radocraft.sums._scores import (
    BINS,
    CLIP_GROUP,
    CLIP_SPREAD,
    CLIP_SUM,
    EDGES,
    TOP,
    UNIT,
    ScoreCells,
    ScoreLevels,
    count_groups,
)
from radocraft.sums._tally import Tally

__all__ = [
    "BINS",
    "CLIP_GROUP",
    "CLIP_SPREAD",
    "CLIP_SUM",
    "EDGES",
    "GRID",
    "ROLLED",
    "TOP",
    "UNIT",
    "Bound",
    "Bounding",
    "Bounds",
    "Cells",
    "Levels",
    "Method",
    "Piece",
    "Range",
    "ScoreCells",
    "ScoreLevels",
    "Steps",
    "Tally",
    "assemble",
    "count_groups",
    "encoded_sums",
    "guess_by_label",
    "hidden_sums",
    "locate",
    "of_label",
    "standardise",
    "with_labels",
]
