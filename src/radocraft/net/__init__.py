"""Peers on a network: requests, parts and models over Arrow Flight with mutual TLS.

In come requests and parts, never code. Out go parts that took the one road. Read in this order: `_messages` (what is
said), `_identity` and `_authority` (who says it), `_authentication` (who is let in), `_service` and `_channel` (the
two ends of a connection), `_jobs` (what a peer does with a request), `_peer` and `_push` (called, or dialling out),
`_collection`, `_mailbox` and `_collector` (the learner's side). This room can reach rows only through `peer`.

To add a message of the network: a class in `_messages.py`; peers answer it in `_peer.py`, the
    collector in `_mailbox.py`.
"""

from radocraft.net._authority import init_authority, issue, revoke, rotate
from radocraft.net._collection import Wanted
from radocraft.net._collector import Collector
from radocraft.net._doctor import examine
from radocraft.net._identity import Identity, adopt
from radocraft.net._members import Member
from radocraft.net._metrics import serve_metrics
from radocraft.net._peer import PeerNode
from radocraft.net._push import Pusher

__all__ = [
    "Collector",
    "Identity",
    "Member",
    "PeerNode",
    "Pusher",
    "Wanted",
    "adopt",
    "examine",
    "init_authority",
    "issue",
    "revoke",
    "rotate",
    "serve_metrics",
]
