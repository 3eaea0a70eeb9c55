"""A peer's service in this process, with a real port and real TLS, and those who call it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.integration.net.world import World

from radocraft.gate._policy import Policy
from radocraft.ledger._ledger import Ledger
from radocraft.ledger._lines import Decision, Leaving
from radocraft.net._authority import issue
from radocraft.net._channel import Channel
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Request
from radocraft.net._peer import PeerNode
from radocraft.peer._responder import Responder
from radocraft.rows.engines._opening import open_source


@dataclass
class Live:
    """A peer that listens."""

    world: World
    peer: str
    node: PeerNode
    port: int

    def call(self, who: str = "collector", name: str | None = None) -> Channel:
        """A connection of somebody whose folder is ``who``."""
        return Channel.open(Identity.read(self.world.folder / who), Member(name=name or self.peer), self.address)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def request(self, id: str = "a" * 32, **changes: object) -> Request:
        contract = self.world.contract
        made = Request.now(self.peer, contract.name, contract.fingerprint, timedelta(hours=1), id=id)
        return made.model_copy(update=changes)

    def ask(self, channel: Channel, request: Request) -> Answer:
        """Ask until the work is done."""
        while (answer := channel.act("request", request, Answer)).state == "working":
            time.sleep(0.05)  # asking without a pause would use up the calls of a minute
        return answer

    def ledger(self) -> list[Leaving | Decision]:
        return [line.entry for line in Ledger(self.world.folder / self.peer / "ledger").lines()]

    def audit(self) -> list[dict[str, object]]:
        return self.node.audit.chain.entries()


@contextmanager
def live(world: World, peer: str = "bank", metrics: str | None = None, secret: Path | None = None) -> Iterator[Live]:
    """Start a peer's service."""
    where = world.folder / peer
    own, table = Identity.read(where / "identity"), where / "table.parquet"
    policy, agreed = Policy.load(where / "policy.toml"), (world.contract,)
    work = Responder(peer, policy, agreed, lambda: open_source(table), "t", own.private, secret=secret)
    with PeerNode(own, peer, work, where / "jobs", metrics) as node:
        yield Live(world, peer, node, node.serve("127.0.0.1:0"))


def another(world: World, name: str, *, days: int = 365, authority: str = "authority") -> Path:
    """One more identity."""
    return issue(world.folder / authority, name, world.folder / f"{name}-{days}-{authority}", days=days).folder
