"""Numbers by block: a peer's tally, cells in the model's units, and what adds up of them.

In come bounded rows as whole numbers on a grid, from `rows`; out go sums by block and second moments by label.
Nothing here sees a row.
"""

from radocraft.sums._bounds import GRID, Bounding, Bounds, Steps
from radocraft.sums._cells import (
    ROLLED,
    Cells,
    Levels,
    assemble,
    constant_features,
    encoded_sums,
    hidden_columns,
    hidden_sums,
    locate,
    of_label,
    standardise,
    taken_apart,
)
from radocraft.sums._label_differences import label_differences
from radocraft.sums._pieces import Bound, Piece, Range
from radocraft.sums._proportions import Method, by_label, match_sums, overlap, proportions, with_labels
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
    base_log_odds,
    cell_deviations,
    cell_means,
    count_groups,
    group_shares,
    smoothed_log_odds,
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
    "base_log_odds",
    "by_label",
    "cell_deviations",
    "cell_means",
    "constant_features",
    "count_groups",
    "encoded_sums",
    "group_shares",
    "hidden_columns",
    "hidden_sums",
    "label_differences",
    "locate",
    "match_sums",
    "of_label",
    "overlap",
    "proportions",
    "smoothed_log_odds",
    "standardise",
    "taken_apart",
    "with_labels",
]
