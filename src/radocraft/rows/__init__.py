"""All code that can see a row or writes SQL: engines, reading, cleaning, summing, a peer's own scorer.

In come a peer's table and a contract. Out goes a tally, or scored rows; both stay at the peer. The rows stay where
they are.

To add an engine: a file beside `engines/_postgres.py` that does what `engines/_base.py` asks; open it in
    `engines/_opening.py`.
To add a model that a peer fits by itself: `_estimators.py`.
"""

from radocraft.rows._checks import check_labels, listed
from radocraft.rows._columns import read_columns
from radocraft.rows._craft import craft, craft_rows
from radocraft.rows._labelling import label_rows
from radocraft.rows._profile import profile
from radocraft.rows._scored import ScoredRows
from radocraft.rows._scorer import Scorer
from radocraft.rows._scoring_rows import score_rows
from radocraft.rows._view import View
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._opening import open_source

__all__ = [
    "ROWS",
    "ScoredRows",
    "Scorer",
    "Source",
    "View",
    "check_labels",
    "craft",
    "craft_rows",
    "label_rows",
    "listed",
    "open_source",
    "profile",
    "read_columns",
    "score_rows",
]
