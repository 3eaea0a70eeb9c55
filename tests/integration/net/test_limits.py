"""Messages larger than they may be: who calls hangs up before it reads them, who is called throws them away after."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from tests.integration.net.live import live
from tests.integration.net.test_refused import bare, put, say
from tests.integration.net.world import World

from radocraft.errors import NetworkError
from radocraft.net._channel import Channel, Interrupted
from radocraft.net._chunks import LARGEST, SCHEMA, Incoming
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import LONGEST, Delivery, Fetch, Hello, Nothing, Receipt

HUGE = LARGEST + LONGEST + 1000


class Flooding(fl.FlightServerBase):
    """A peer with a good certificate that answers everything with far too much, and counts its calls."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(
            "grpc+tls://127.0.0.1:0",
            tls_certificates=[(identity.chain, identity.private)],
            verify_client=True,
            root_certificates=identity.authority,
        )

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        return iter([fl.Result(bytes(HUGE))])

    def do_get(self, context: Any, ticket: Any) -> Any:
        pieces = (bytes(1000), bytes(HUGE))
        batches = (pa.record_batch([pa.array([piece], pa.binary())], schema=SCHEMA) for piece in pieces)
        return fl.GeneratorStream(SCHEMA, batches)


def test_who_calls_does_not_read_a_message_that_is_too_large(world: World) -> None:
    own = Identity.load(world.folder / "collector")
    with Flooding(Identity.load(world.folder / "bank" / "identity")) as bank:
        place = f"127.0.0.1:{bank.port}"
        given = {"cert_chain": own.chain, "private_key": own.private, "override_hostname": "bank"}
        with fl.FlightClient(f"grpc+tls://{place}", tls_root_certs=own.authority, **given) as unlimited:
            (result,) = unlimited.do_action(fl.Action("hello", b"{}"))
            assert result.body.size == HUGE  # what Flight does by itself
        with Channel.open(own, Member(name="bank"), place) as channel:
            with pytest.raises(Interrupted, match="cut off"):
                channel.act("hello", Nothing(), Hello)
            incoming = Incoming(world.folder / "file", 1000 + HUGE, "0" * 64)
            with pytest.raises(Interrupted, match="cut off"):
                channel.fetch(Fetch(what="part", job="0" * 64), incoming, lambda have: None)
    assert incoming.offset <= 1000


def test_who_is_called_reads_it_and_goes_on(world: World) -> None:
    """Flight gives a service no limit to set: it is refused as soon as we see it, and nothing of it is kept."""
    mine = world.folder / "collector"
    with live(world) as bank:
        flight, token = bare(bank, mine), Identity.read(mine).token
        for size in (LONGEST + 1, HUGE):
            with pytest.raises(fl.FlightServerError, match="at most"):
                say(flight, token, "request", bytes(size))
        assert Hello.decode(say(flight, token)).name == "bank"
        options = fl.FlightCallOptions(timeout=10, headers=[(b"authorization", f"Bearer {token}".encode())])
        with pytest.raises(fl.FlightServerError, match="the longest allowed is"):
            next(flight.do_get(fl.Ticket(b" " * HUGE), options))
        assert [line["kind"] for line in bank.audit()] == ["start"]


def test_a_header_that_is_too_large_never_gets_through(world: World) -> None:
    """gRPC's own limit, on the service's side."""
    mine = world.folder / "collector"
    with live(world) as bank:
        with pytest.raises((fl.FlightError, pa.ArrowException)):
            say(bare(bank, mine), "x" * 100_000)
        assert Hello.decode(say(bare(bank, mine), Identity.read(mine).token)).name == "bank"


def test_files_that_never_come_whole_do_not_fill_the_disk(world: World) -> None:
    """A member announces one file after the other, and each breaks off: one beginning at most is kept."""
    with live(world) as bank, bank.call() as channel:
        request = bank.request()
        answer = bank.ask(channel, request)
        channel.act("received", Receipt(job=request.job, sha256=str(answer.sha256)), Nothing)
        for at in range(5):
            with pytest.raises(NetworkError, match="ended after"):
                put(channel, Delivery(what="model", job=request.job, size=100, sha256=f"{at}" * 64), [bytes(50)])
        kept = [*(world.folder / "bank" / "jobs" / request.job).glob("*.partial")]
    assert [path.stat().st_size for path in kept] == [50]
