"""The one road out of a peer: sum, pass the gate, write to the ledger, wait for review if required, write the file.

In come the peer's own table and policy. Out go parts and counts of scores, each with a line in the ledger. After a
crash work continues where it stopped. Requests from the network take the same road.

To add a kind of file that leaves: `_file_kinds.py`.
"""

from radocraft.peer._counts import share_counts
from radocraft.peer._decision import Conclusion, conclude, destination
from radocraft.peer._pending import Pending
from radocraft.peer._responder import Responder
from radocraft.peer._sharing import scorer_beside, share, table_name_of

__all__ = [
    "Conclusion",
    "Pending",
    "Responder",
    "conclude",
    "destination",
    "scorer_beside",
    "share",
    "share_counts",
    "table_name_of",
]
