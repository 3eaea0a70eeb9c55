"""The collector's mailbox: each peer sees its own request alone, and only a sound part of its own counts."""

import random
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.flight as fl
import pytest
from tests.integration.net.test_refused import put
from tests.integration.net.world import World, tables

from radocraft import share
from radocraft.errors import ContractMismatch, IdentityError, NetworkError, Tampered
from radocraft.net._channel import Channel, Interrupted
from radocraft.net._chunks import Incoming, sha256_of
from radocraft.net._collection import Wanted
from radocraft.net._collector import Collector
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Assignment, Delivery, Fetch, Nothing, Receipt
from radocraft.parts._part import Part, _hash
from radocraft.parts._sign import public_key


@pytest.fixture
def collector(world: World) -> Iterator[Collector]:
    places = {"bank": None, "shop": None}
    with Collector(
        Identity.load(world.folder / "collector"),
        Wanted.parts(world.contract),
        world.folder / "job",
        places,
        listen="127.0.0.1:0",
        wait=timedelta(minutes=5),
    ) as made:
        yield made


def call(world: World, collector: Collector, who: str) -> Channel:
    own = Identity.load(world.folder / who / "identity")
    return Channel.open(own, Member(name="collector"), f"127.0.0.1:{collector.port}")


def part_of(world: World, peer: str, contract_text: str | None = None) -> Path:
    contract = world.contract if contract_text is None else type(world.contract).parse(contract_text)
    path = world.folder / f"{peer}.made.parquet"
    share(tables(600)[peer], contract, peer, output=path)
    return path


def bring(channel: Channel, job: str, path: Path) -> None:
    facts = {"job": job, "size": path.stat().st_size, "sha256": sha256_of(path)}
    channel.act("answer", Answer(state="ready", **facts), Assignment)
    put(channel, Delivery(what="part", **facts), [path.read_bytes()])


def test_a_sound_part_counts_once(world: World, collector: Collector) -> None:
    with call(world, collector, "bank") as bank:
        assignment = bank.act("ask", Nothing(), Assignment)
        assert (assignment.request.peer, assignment.received, assignment.model) == ("bank", None, None)
        path = part_of(world, "bank")
        bring(bank, assignment.request.job, path)
        assert bank.act("ask", Nothing(), Assignment).received == sha256_of(path)
        assert (world.folder / "job" / "bank.part.parquet").read_bytes() == path.read_bytes()
        with pytest.raises(NetworkError, match="it has arrived"):
            put(bank, Delivery(what="part", job=assignment.request.job, size=1, sha256="0" * 64), [b"x"])
        with pytest.raises(NetworkError, match="no model to fetch"):
            fetch_model(bank, assignment.request.job)


def fetch_model(channel: Channel, job: str) -> None:
    with channel._explaining():
        channel.flight.do_get(fl.Ticket(Fetch(what="model", job=job).encode()), channel._options(10)).read_all()


def test_anothers_job_and_anothers_part(world: World, collector: Collector) -> None:
    with call(world, collector, "bank") as bank, call(world, collector, "shop") as shop:
        theirs = shop.act("ask", Nothing(), Assignment).request.job
        mine = bank.act("ask", Nothing(), Assignment).request.job
        path = part_of(world, "bank")
        for attempt in (
            lambda: bring(bank, theirs, path),
            lambda: bank.act("received", Receipt(job=theirs, sha256="0" * 64), Nothing),
            lambda: put(bank, Delivery(what="part", job=theirs, size=1, sha256="0" * 64), [b"x"]),
        ):
            with pytest.raises(NetworkError, match="not the job"):
                attempt()
        with pytest.raises(NetworkError, match="ContractMismatch"):
            bring(bank, mine, part_of(world, "shop"))
        other = (world.folder / "contract.toml").read_text().replace("[30, 45, 60]", "[30, 45]")
        with pytest.raises(NetworkError, match="ContractMismatch"):
            bring(bank, mine, part_of(world, "bank", other))
        assert not list((world.folder / "job").glob("*.parquet*"))


def test_a_stream_beside_another_may_try_again(world: World, collector: Collector) -> None:
    """A peer that was killed and is back before its old stream is noticed to be gone, or that is out of step."""
    path = part_of(world, "bank")
    with call(world, collector, "bank") as bank:
        job = bank.act("ask", Nothing(), Assignment).request.job
        facts = {"job": job, "size": path.stat().st_size, "sha256": sha256_of(path)}
        bank.act("answer", Answer(state="ready", **facts), Assignment)
        old = Incoming(world.folder / "job" / "bank.part.parquet", facts["size"], facts["sha256"])
        with old._alone(0), pytest.raises(Interrupted, match="in another stream"):
            put(bank, Delivery(what="part", **facts), [path.read_bytes()])
        with pytest.raises(Interrupted, match="0 bytes are here, not 5"):
            put(bank, Delivery(what="part", offset=5, **facts), [path.read_bytes()[5:]])
        bring(bank, job, path)
    assert collector.collection.arrived("bank")


def test_a_changed_part_is_thrown_away(world: World, collector: Collector) -> None:
    path = part_of(world, "bank")
    part = Part.read(path)
    replace(part, table=part.table.slice(1)).write(path)
    with call(world, collector, "bank") as bank:
        job = bank.act("ask", Nothing(), Assignment).request.job
        with pytest.raises(NetworkError, match="Tampered"):
            bring(bank, job, path)
        assert not list((world.folder / "job").glob("*.parquet*"))
        bring(bank, job, part_of(world, "bank"))
    assert (world.folder / "job" / "bank.part.parquet").exists()


def test_a_part_of_a_liar_is_thrown_away_with_the_reason(world: World, collector: Collector) -> None:
    """Its hash is right, and what it says cannot be."""
    path = part_of(world, "bank")
    part = Part.read(path)
    place = part.table.column_names.index("sum:income")
    lie = part.table.set_column(place, "sum:income", pc.multiply(part.table.column("sum:income"), -5.0))
    digest = _hash(((name, lie.column(name)) for name in lie.column_names), part.metadata)
    replace(part, table=lie, metadata={**part.metadata, "hash": digest}).write(path)
    with call(world, collector, "bank") as bank:
        job = bank.act("ask", Nothing(), Assignment).request.job
        with pytest.raises(NetworkError, match="FileError"):
            bring(bank, job, path)
    assert not list((world.folder / "job").glob("*.parquet*"))
    assert "the part of bank" in str(collector.collection.trouble["bank"])
    assert "received" not in [line["kind"] for line in collector.audit.chain.entries()]


def test_a_part_counts_only_with_the_signature_the_contract_asks_for(world: World) -> None:
    keys = {who: Identity.load(world.folder / who / "identity").private for who in ("bank", "shop")}
    text = (world.folder / "contract.toml").read_text() + f'[peers.bank]\npublic_key = "{public_key(keys["bank"])}"\n'
    contract, path = type(world.contract).parse(text), world.folder / "part"
    check = Wanted.parts(contract).check
    for sign in (None, keys["shop"]):
        share(tables(600)["bank"], contract, "bank", output=path, sign=sign)
        with pytest.raises(Tampered, match="not signed"):
            check(path, "bank")
    share(tables(600)["bank"], contract, "bank", output=path, sign=keys["bank"])
    check(path, "bank")


def test_without_a_certificate_or_with_anothers_token(world: World, collector: Collector) -> None:
    roots = (world.folder / "authority" / "authority.pem").read_bytes()
    given = {"tls_root_certs": roots, "override_hostname": "collector"}
    place, hello = f"grpc+tls://127.0.0.1:{collector.port}", fl.Action("ask", b"{}")
    with fl.FlightClient(place, **given) as nobody, pytest.raises(fl.FlightUnavailableError):
        list(nobody.do_action(hello, fl.FlightCallOptions(timeout=10)))
    bank, shop = (Identity.load(world.folder / peer / "identity") for peer in ("bank", "shop"))
    with fl.FlightClient(place, cert_chain=bank.chain, private_key=bank.private, **given) as thief:
        options = fl.FlightCallOptions(timeout=10, headers=[shop.header])
        with pytest.raises(fl.FlightUnauthenticatedError, match="does not belong"):
            list(thief.do_action(hello, options))
    assert collector.audit.chain.entries()[-1]["reason"] == "wrong token"


def test_noise_and_a_hundred_half_open_connections(world: World, collector: Collector) -> None:
    noise, opened = random.Random(2), list[socket.socket]()
    try:
        for _ in range(100):
            opened.append(socket.create_connection(("127.0.0.1", int(collector.port or 0)), timeout=10))
            opened[-1].sendall(noise.choice([b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n", noise.randbytes(9)]))
        with call(world, collector, "bank") as bank:
            bring(bank, bank.act("ask", Nothing(), Assignment).request.job, part_of(world, "bank"))
    finally:
        for raw in opened:
            raw.close()
    assert collector.collection.arrived("bank")


def test_who_was_not_asked_is_not_let_in(world: World, collector: Collector) -> None:
    with call(world, collector, "insurer") as insurer, pytest.raises(IdentityError, match="not in our members"):
        insurer.act("ask", Nothing(), Assignment)


def test_a_folder_of_another_job(world: World, collector: Collector) -> None:
    own = Identity.load(world.folder / "collector")
    with pytest.raises(ContractMismatch, match="with other peers"):
        Collector(own, Wanted.parts(world.contract), world.folder / "job", {"bank": "127.0.0.1:1"})
    with pytest.raises(NetworkError, match="say where to listen"):
        Collector(own, Wanted.parts(world.contract), world.folder / "another", {"bank": None})
