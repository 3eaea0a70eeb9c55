"""The ledger: what left, what it cost, who let it go, and what remains.

A file of typed lines that are added and never changed, each bound to the one before it. What comes in are lines, from
`peer/` alone; what goes out are those lines again, and the sums of what they spent.
"""

from radocraft.ledger.budget import Budget, check_budget
from radocraft.ledger.history import History, Stage, mark_of
from radocraft.ledger.ledger import Ledger
from radocraft.ledger.lines import Decision, Leaving, Limits, Line, Verdict, What

__all__ = [
    "Budget",
    "Decision",
    "History",
    "Leaving",
    "Ledger",
    "Limits",
    "Line",
    "Stage",
    "Verdict",
    "What",
    "check_budget",
    "mark_of",
]
