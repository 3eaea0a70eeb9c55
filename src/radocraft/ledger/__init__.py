"""The ledger: what left, what it cost, who approved it, and what remains.

A file of typed lines that are added and never changed, each bound to the one before by a hash. In come lines, from
`peer` alone. Out go the same lines, and the total of what they spent.

To add a column of the ledger: a field in `_lines.py`; it is shown by `cli/_ledger.py`.
"""

from radocraft.ledger._budget import Budget
from radocraft.ledger._chain import Chain
from radocraft.ledger._history import History, Stage
from radocraft.ledger._ledger import Ledger
from radocraft.ledger._lines import Decision, Leaving, Limits, Line, Verdict, What, Withheld

__all__ = [
    "Budget",
    "Chain",
    "Decision",
    "History",
    "Leaving",
    "Ledger",
    "Limits",
    "Line",
    "Stage",
    "Verdict",
    "What",
    "Withheld",
]
