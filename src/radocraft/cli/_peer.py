"""radocraft peer serve|push."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from radocraft.cli._terminal import err
from radocraft.contract import Contract
from radocraft.errors import IdentityError
from radocraft.gate import Policy
from radocraft.net import Identity, Member, PeerNode, Pusher
from radocraft.peer import Responder, table_name_of
from radocraft.rows import open_source

app = typer.Typer(help="A peer on the network, which answers requests under its own policy.", no_args_is_help=True)

Tables = Annotated[list[str], typer.Argument(help="The peer's table, as for `radocraft craft`.")]
Contracts = Annotated[list[Path], typer.Option("--contract", "-c", help="A contract to answer for; may be repeated.")]
Peer = Annotated[str, typer.Option("--peer", "-p", help="Which peer of the contract the table belongs to.")]
PolicyFile = Annotated[Path, typer.Option("--policy", help="The peer's policy; it must name a ledger.")]
IdentityFolder = Annotated[Path, typer.Option("--identity", "-i", help="The folder of `radocraft identity issue`.")]
Jobs = Annotated[Path, typer.Option("--jobs", help="Where jobs and the audit log are kept.")]
TableName = Annotated[str | None, typer.Option("--table", help="Which table, if the file is a database.")]
MemoryLimit = Annotated[str | None, typer.Option(help="The most memory to use, e.g. 2GB.")]
ScorerFile = Annotated[
    Path | None,
    typer.Option(
        "--scorer",
        help="For a contract of scores: where the peer's own model is saved. [PEER.scorer beside the ledger]",
    ),
]
Secret = Annotated[Path | None, typer.Option("--secret", help="The file with the secret for hashing keys.")]
Exact = Annotated[bool, typer.Option("--exact", help="The same result to the bit on every run, on one core.")]
MetricsPort = Annotated[
    str | None, typer.Option("--metrics", metavar="HOST:PORT", help="Serve /metrics and /health here.")
]


@app.command()
def serve(
    table: Tables,
    contract: Contracts,
    peer: Peer,
    policy: PolicyFile,
    identity: IdentityFolder,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen.")] = "127.0.0.1:8815",
    jobs: Jobs = Path("jobs"),
    name: TableName = None,
    memory_limit: MemoryLimit = None,
    exact: Exact = False,
    scorer: ScorerFile = None,
    secret: Secret = None,
    metrics: MetricsPort = None,
) -> None:
    """Wait to be asked: a collector named in members.toml pulls the part.

    Example: radocraft peer serve bank.parquet -c contract.toml -p bank --policy policy.toml -i bank-identity
    """
    ours = Identity.load(identity)
    work = replace(_work(table, contract, peer, policy, name, memory_limit, exact, ours), scorer=scorer, secret=secret)
    if not ours.members():
        raise IdentityError(f"Nobody is allowed to ask: add e.g. [collector] to '{identity / 'members.toml'}'.")
    with PeerNode(ours, peer, work, jobs, metrics) as node, _stopping() as stop:
        port = node.serve(listen)
        err.print(f"{ours.name} listens on {listen.rpartition(':')[0]}:{port} for {', '.join(sorted(ours.members()))}.")
        stop.wait()


@app.command()
def push(
    table: Tables,
    contract: Contracts,
    peer: Peer,
    policy: PolicyFile,
    identity: IdentityFolder,
    to: Annotated[str, typer.Option(metavar="NAME=HOST:PORT", help="The collector's mailbox.")],
    once: Annotated[bool, typer.Option("--once", help="Stop when one job is finished.")] = False,
    jobs: Jobs = Path("jobs"),
    name: TableName = None,
    memory_limit: MemoryLimit = None,
    exact: Exact = False,
    scorer: ScorerFile = None,
    secret: Secret = None,
    metrics: MetricsPort = None,
) -> None:
    """Dial out to the collector's mailbox, for a peer that nobody can call.

    Example: radocraft peer push shop.csv -c contract.toml -p shop --policy policy.toml -i me --to learner=10.0.0.7:8815
    """
    ours = Identity.load(identity)
    work = replace(_work(table, contract, peer, policy, name, memory_limit, exact, ours), scorer=scorer, secret=secret)
    who, address = split(to)
    member = ours.members().get(who, Member(name=who))
    with PeerNode(ours, peer, work, jobs, metrics) as node, _stopping() as stop:
        Pusher(ours, member, address, node.jobs, err.print).run(stop, once=once)


def split(text: str) -> tuple[str, str]:
    """``NAME=ADDRESS`` as a pair."""
    who, equals, address = text.partition("=")
    if not equals or not who or not address:
        raise typer.BadParameter(f"'{text}': write it as NAME=HOST:PORT.")
    return who, address


def _work(
    table: list[str],
    contracts: list[Path],
    peer: str,
    policy: Path,
    name: str | None,
    memory_limit: str | None,
    exact: bool,
    ours: Identity,
) -> Responder:
    data = table[0] if len(table) == 1 else list(table)
    return Responder(
        peer,
        Policy.load(policy),
        tuple(Contract.load(path) for path in contracts),
        lambda: open_source(data, table=name, memory_limit=memory_limit, exact=exact),
        name or table_name_of(table, peer),
        ours.private,
    )


@contextmanager
def _stopping() -> Iterator[Event]:
    """An event that is set when the process is asked to end."""
    stop = Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
