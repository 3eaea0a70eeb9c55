"""Three peers and a collector, each with its folder, certificate and, when started, a process of its own."""

import os
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.integration.net.nursery import Nursery
from tests.ports import free_port

from radocraft.contract._contract import Contract
from radocraft.demo._example import CONTRACT, example_people
from radocraft.net._authority import init_authority, issue

PEERS = ("bank", "insurer", "shop")
SHOP = """
[peers.shop.features]
visits = "numeric"
basket = { kind = "numeric", centre = 40, scale = 20 }
"""
POLICY = """
min_rows = 10
review = {review}
ledger = "ledger"
table = "customers"
"""
EXACT = 'mode = "exact"\ngives_away_rows = true'


def tables(rows: int, seed: int = 0) -> dict[str, pa.Table]:
    """What each of the three holds."""
    people = example_people(rows, seed)
    visits = pa.array([(7 * at) % 13 for at in range(rows)])
    basket = pa.array([float((at * at) % 97) for at in range(rows)])
    people = people.append_column("visits", visits).append_column("basket", basket)
    contract = Contract.parse(CONTRACT + SHOP)
    held = {}
    for peer, entry in contract.peers.items():
        names = [contract.label.column, *(shared.name for shared in contract.shared), *entry.features]
        held[peer] = people.select(names).rename_columns([contract.column_of(peer, name) for name in names])
    return held


@dataclass
class Running:
    """A command in a process of its own."""

    nursery: Nursery
    pid: int
    code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            self.code = self.nursery.poll(self.pid)
        return self.code

    def kill(self, how: int = signal.SIGKILL) -> None:
        if self.poll() is None:
            os.kill(self.pid, how)

    def wait(self, seconds: float = 60) -> int:
        """How it ends."""
        late = time.monotonic() + seconds
        while (code := self.poll()) is None:
            assert time.monotonic() < late, "it does not end"
            time.sleep(0.01)
        return code

    def end(self, how: int = signal.SIGTERM) -> int:
        """Ask it to end, and wait until it does."""
        self.kill(how)
        return self.wait()


@dataclass
class World:
    """A folder with everything in it."""

    folder: Path
    nursery: Nursery | None = None
    running: list[Running] = field(default_factory=list)
    spaces: dict[str, tuple[str, str]] = field(default_factory=dict)  # network namespace and address of each

    def host(self, who: str) -> str:
        return self.spaces[who][1] if who in self.spaces else "127.0.0.1"

    @classmethod
    def make(cls, folder: Path, nursery: Nursery | None = None, rows: int = 600) -> "World":
        """Contract, authority, identities, tables and policies."""
        (folder / "contract.toml").write_text(CONTRACT + SHOP)
        init_authority(folder / "authority")
        issue(folder / "authority", "collector", folder / "collector")
        made = cls(folder, nursery)
        for peer in PEERS:
            (folder / peer).mkdir()
            issue(folder / "authority", peer, folder / peer / "identity", trust=("collector",))
            (folder / peer / "policy.toml").write_text(POLICY.format(review="false"))
        made.fill(rows)
        return made

    def fill(self, rows: int) -> None:
        """Give every peer a table of so many rows in place of the one it has."""
        for peer, table in tables(rows).items():
            pq.write_table(table, self.folder / peer / "table.parquet")

    @property
    def contract(self) -> Contract:
        return Contract.load(self.folder / "contract.toml")

    def rule(self, peer: str, line: str) -> None:
        """One more line in a peer's policy."""
        with (self.folder / peer / "policy.toml").open("a") as file:
            file.write(line + "\n")

    def ask_a_person(self, peer: str) -> None:
        """From now on a person of the peer decides."""
        policy = self.folder / peer / "policy.toml"
        policy.write_text(policy.read_text().replace("review = false", "review = true"))

    def start(self, *words: object, log: str) -> Running:
        """A radocraft command in a process of its own, what it says in a file."""
        assert self.nursery is not None
        space = self.spaces[log.removesuffix(".log")][0] if self.spaces else None
        pid = self.nursery.start([str(word) for word in words], self.folder, self.folder / log, space)
        self.running.append(Running(self.nursery, pid))
        return self.running[-1]

    def peer_words(self, peer: str) -> tuple[object, ...]:
        where = self.folder / peer
        given = ("-c", "contract.toml", "-p", peer, "--policy", where / "policy.toml", "-i", where / "identity")
        return (where / "table.parquet", *given, "--jobs", where / "jobs", "--exact")

    def serve(
        self, *peers: str, port: int | None = None, more: tuple[object, ...] = ()
    ) -> dict[str, tuple[Running, int]]:
        """Peers that are asked, and the ports they listen on."""
        before = {peer: self.size(peer) for peer in peers}
        started = {}
        for peer in peers:
            listen = ("--listen", f"{self.host(peer)}:{port or free_port()}")
            started[peer] = self.start("peer", "serve", *self.peer_words(peer), *listen, *more, log=f"{peer}.log")
        pattern = r"listens on [\d.]+:(\d+)"
        return {peer: (run, int(self.read(run, peer, pattern, before[peer]))) for peer, run in started.items()}

    def push(self, peer: str, port: int, *more: object) -> Running:
        """A peer that dials out."""
        to = ("--to", f"collector={self.host('collector')}:{port}")
        return self.start("peer", "push", *self.peer_words(peer), *to, *more, log=f"{peer}.log")

    def collect(self, places: Mapping[str, object], *more: object, job: str = "job") -> Running:
        """The collector."""
        said = ",".join(f"{peer}={at if at == 'mailbox' else f'{self.host(peer)}:{at}'}" for peer, at in places.items())
        given = ("-c", "contract.toml", "--from", said, "-i", "collector", "-o", "model.json", "--job", job)
        return self.start("collect", *given, *more, log="collector.log")

    def read(self, process: Running, who: str, pattern: str, before: int = 0) -> str:
        """Wait for a line in a log."""
        for _ in range(1200):
            text = self.log(who, before)
            if found := re.search(pattern, text):
                return found[1]
            assert process.poll() is None, f"it ended with {process.code}: {text}"
            time.sleep(0.02)
        raise AssertionError(f"never said: {text}")

    def mailbox_port(self, process: Running, before: int = 0) -> int:
        return int(self.read(process, "collector", r"mailbox listens on [\d.]+:(\d+)", before))

    def size(self, who: str) -> int:
        path = self.folder / f"{who}.log"
        return path.stat().st_size if path.exists() else 0

    def log(self, who: str, before: int = 0) -> str:
        """What a process has said, on one line."""
        path = self.folder / f"{who}.log"
        return " ".join(path.read_bytes()[before:].decode().split()) if path.exists() else ""

    def close(self) -> None:
        for process in self.running:
            process.end(signal.SIGKILL)
