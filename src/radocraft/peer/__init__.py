"""The one road out of a peer: sum, pass the gate, tell the ledger, wait for a person where the policy says so, write.

What comes in is the peer's own table and policy; what goes out are parts and counts of scores, each with a line in the
ledger. A crash is picked up where it left things, and requests from the network are answered by the same road.
"""

from radocraft.peer.decision import Conclusion, conclude, destination
from radocraft.peer.pending import Pending, pending_path
from radocraft.peer.responder import Responder
from radocraft.peer.scores import share_scores
from radocraft.peer.sharing import share, table_name_of

__all__ = [
    "Conclusion",
    "Pending",
    "Responder",
    "conclude",
    "destination",
    "pending_path",
    "share",
    "share_scores",
    "table_name_of",
]
