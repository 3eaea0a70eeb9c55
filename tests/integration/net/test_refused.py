"""Who and what is refused, over real sockets with real TLS; each time a good caller still gets through."""

import json
import random
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from tests.integration.net.live import Live, another, live
from tests.integration.net.world import World

from radocraft.errors import IdentityError, NetworkError
from radocraft.net._authority import init_authority, issue, revoke, rotate
from radocraft.net._channel import Channel, Interrupted, look
from radocraft.net._chunks import SCHEMA
from radocraft.net._identity import Identity, adopt, digest
from radocraft.net._members import Member
from radocraft.net._messages import LONGEST, Answer, Delivery, Fetch, Hello, Nothing, Receipt, Request


@pytest.fixture
def bank(world: World) -> Iterator[Live]:
    with live(world) as started:
        yield started
        with started.call() as channel:  # whatever the test did, a good caller gets through
            assert channel.act("hello", Nothing(), Hello).name == "bank"


def bare(bank: Live, who: Path | None, **more: object) -> fl.FlightClient:
    """Flight without any of our own checks."""
    given = {} if who is None else {"cert_chain": (who / "certificate.pem").read_bytes()}
    if who is not None:
        given["private_key"] = (who / "key.pem").read_bytes()
    roots = (bank.world.folder / "authority" / "authority.pem").read_bytes()
    return fl.FlightClient(
        f"grpc+tls://{bank.address}", tls_root_certs=roots, override_hostname="bank", **given, **more
    )


def say(client: fl.FlightClient, token: str = "", kind: str = "hello", body: bytes = b"{}") -> bytes:
    options = fl.FlightCallOptions(timeout=10, headers=[(b"authorization", f"Bearer {token}".encode())])
    (result,) = client.do_action(fl.Action(kind, body), options)
    return bytes(result.body.to_pybytes())


def test_no_certificate(bank: Live) -> None:
    with pytest.raises(fl.FlightUnavailableError):
        say(bare(bank, None), Identity.read(bank.world.folder / "collector").token)


def test_no_tls_at_all(bank: Live) -> None:
    with pytest.raises(fl.FlightUnavailableError):
        say(fl.FlightClient(f"grpc://{bank.address}"))


def test_another_authority(bank: Live) -> None:
    init_authority(bank.world.folder / "elsewhere")
    stranger = another(bank.world, "collector", authority="elsewhere")
    with pytest.raises(fl.FlightUnavailableError):
        say(bare(bank, stranger), Identity.read(stranger).token)
    with pytest.raises(IdentityError, match=r"certificate of 'bank' .* is not valid"):
        bank.call(stranger.name)
    shutil.copy(bank.world.folder / "authority" / "authority.pem", stranger / "authority.pem")
    with pytest.raises(IdentityError, match="does not accept our certificate"):
        bank.call(stranger.name)


def test_expired(bank: Live) -> None:
    old = another(bank.world, "collector", days=-1)
    with pytest.raises(IdentityError, match=r"expired on .* radocraft identity rotate"):
        Identity.load(old)
    with pytest.raises(fl.FlightUnavailableError):
        say(bare(bank, old), Identity.read(old).token)
    with pytest.raises(IdentityError, match="does not accept our certificate"):
        bank.call(old.name)


def test_an_expired_peer_is_not_believed(world: World) -> None:
    shutil.rmtree(world.folder / "bank" / "identity")
    issue(world.folder / "authority", "bank", world.folder / "bank" / "identity", days=-1, trust=("collector",))
    with live(world) as bank, pytest.raises(IdentityError, match="has expired"):
        bank.call()


def test_revoked_while_the_service_runs(bank: Live) -> None:
    thief = another(bank.world, "collector")
    with bank.call(thief.name) as channel:
        channel.act("hello", Nothing(), Hello)
        serial = Identity.read(bank.world.folder / "collector").certificate.serial_number
        assert revoke(bank.world.folder / "authority", "collector", keep=serial)
        shutil.copy(bank.world.folder / "authority" / "revoked.pem", bank.world.folder / "bank" / "identity")
        with pytest.raises(IdentityError, match="revoked"):
            channel.act("hello", Nothing(), Hello)
    assert bank.audit()[-1]["reason"] == "revoked"


def test_a_job_goes_on_under_a_rotated_certificate(bank: Live) -> None:
    """The collector's certificate and token are changed in the middle of a job; the old ones let nobody in."""
    folder, request = bank.world.folder, bank.request()
    shutil.copytree(folder / "collector", folder / "old")
    with bank.call("old") as channel:
        answer = bank.ask(channel, request)
        rotate(folder / "authority", "collector", folder / "collector")
        shutil.copy(folder / "authority" / "revoked.pem", folder / "bank" / "identity")
        with pytest.raises(IdentityError, match="revoked"):
            bank_part(channel, request)
    with bank.call() as channel:
        assert bank.ask(channel, request) == answer
        assert len(bank_part(channel, request)) == answer.size
    assert [line.kind for line in bank.ledger()] == ["release"]


def test_a_revoked_peer_is_not_believed(bank: Live) -> None:
    rotate(bank.world.folder / "authority", "bank", bank.world.folder / "new")
    shutil.copytree(bank.world.folder / "collector", bank.world.folder / "knowing")
    shutil.copy(bank.world.folder / "authority" / "revoked.pem", bank.world.folder / "knowing" / "revoked.pem")
    with pytest.raises(IdentityError, match="was revoked"):
        bank.call("knowing")


def test_a_list_of_revoked_that_nobody_signed_lets_nobody_in(world: World) -> None:
    init_authority(world.folder / "elsewhere")
    shutil.copy(world.folder / "elsewhere" / "revoked.pem", world.folder / "bank" / "identity" / "revoked.pem")
    with live(world) as bank, bank.call() as channel, pytest.raises(IdentityError, match="not signed by our authority"):
        channel.act("hello", Nothing(), Hello)


def test_right_certificate_with_anothers_token(bank: Live) -> None:
    mine, other = bank.world.folder / "collector", another(bank.world, "collector")
    for token in (Identity.read(other).token, "", digest(Identity.read(mine).token)):
        with pytest.raises(fl.FlightUnauthenticatedError, match="does not belong to this certificate"):
            say(bare(bank, mine), token)
    with pytest.raises(fl.FlightUnauthenticatedError, match="does not belong"):
        list(bare(bank, mine).do_action(fl.Action("hello", b"{}")))
    assert bank.audit()[-1]["reason"] == "wrong token"
    assert Hello.decode(say(bare(bank, mine), Identity.read(mine).token)).name == "bank"


def test_a_certificate_of_ours_that_is_no_member(bank: Live) -> None:
    stranger = another(bank.world, "insurer")
    with bank.call(stranger.name) as channel, pytest.raises(IdentityError, match="not in our members"):
        channel.act("request", bank.request(), Answer)
    assert not bank.ledger()


def test_another_name_than_was_called(bank: Live) -> None:
    with pytest.raises(IdentityError, match=r"not valid: .*insurer"):
        bank.call(name="insurer")


def test_an_unknown_contract(bank: Live) -> None:
    refused(bank, "we do not know the contract", 3, fingerprint="f" * 64)


def test_a_request_to_another_peer(bank: Live) -> None:
    refused(bank, "we are 'bank', not 'shop'", 1, peer="shop")


def test_a_request_out_of_its_time(bank: Live) -> None:
    refused(bank, "earlier time", 1, until=datetime.now(UTC) - timedelta(seconds=1))


def test_a_request_of_a_clock_that_is_ahead(bank: Live) -> None:
    now = datetime.now(UTC)
    refused(bank, "clocks is wrong", 1, made=now + timedelta(hours=2), until=now + timedelta(hours=3))


def refused(bank: Live, said: str, code: int, **changes: object) -> None:
    """A request with these changes is refused, and nothing is begun."""
    with bank.call() as channel:
        answer = bank.ask(channel, bank.request(**changes))
    assert (answer.state, said in str(answer.reason), answer.exit_code) == ("refused", True, code)
    assert not bank.ledger()
    assert not [path for path in (bank.world.folder / "bank" / "jobs").iterdir() if path.is_dir()]
    assert [line["kind"] for line in bank.audit()] == ["start", "turned away"]


def test_a_contract_the_policy_does_not_allow(world: World) -> None:
    policy = world.folder / "bank" / "policy.toml"
    policy.write_text(policy.read_text() + f'contracts = ["{"e" * 64}"]\n')
    with live(world) as bank, bank.call() as channel:
        assert "do not know the contract" in str(bank.ask(channel, bank.request()).reason)
        assert channel.act("hello", Nothing(), Hello).contracts == ()


def test_the_policys_reason_stays_at_the_peer(world: World) -> None:
    policy = world.folder / "bank" / "policy.toml"
    policy.write_text(policy.read_text() + "lifetime_epsilon = 0.125\n")
    with live(world) as bank, bank.call() as channel:
        request = bank.request()
        answer = bank.ask(channel, request)
        assert (answer.state, answer.exit_code) == ("refused", 4)
        assert not [word for word in ("0.125", "lifetime", "epsilon") if word in str(answer.reason)]
        assert [type(entry).__name__ for entry in bank.ledger()] == ["Withheld"]  # what the noisy counts cost
        assert bank.ask(channel, request) == answer
        with pytest.raises(NetworkError, match="no part of this job"):
            bank_part(channel, request)


def bank_part(channel: Channel, request: Request, offset: int = 0) -> bytes:
    options = channel._options(30)
    ticket = fl.Ticket(Fetch(what="part", job=request.job, offset=offset).encode())
    with channel._explaining():
        return b"".join(value.as_py() for value in channel.flight.do_get(ticket, options).read_all().column("bytes"))


def test_replayed_requests_release_nothing_twice(bank: Live) -> None:
    request = bank.request()
    other = issue(bank.world.folder / "authority", "auditor", bank.world.folder / "auditor").folder
    with bank.call() as channel:
        answer = bank.ask(channel, request)
        assert (answer.state, bank.ask(channel, request)) == ("ready", answer)
        first = bank_part(channel, request)
        assert bank_part(channel, request, 100) == first[100:]
        changed = request.model_copy(update={"until": request.until + timedelta(hours=1)})
        with pytest.raises(IdentityError, match="the request has changed"):
            channel.act("request", changed, Answer)
        with pytest.raises(NetworkError, match="receipt does not match"):
            channel.act("received", Receipt(job=request.job, sha256="0" * 64), Nothing)
        channel.act("received", Receipt(job=request.job, sha256=str(answer.sha256)), Nothing)
        with pytest.raises(IdentityError, match="nothing is sent twice"):
            channel.act("request", request, Answer)
        with pytest.raises(IdentityError, match="nothing is sent twice"):
            bank_part(channel, request)
    with bank.call(other.name) as channel, pytest.raises(IdentityError, match="not in our members"):
        channel.act("request", request, Answer)
    assert [line.kind for line in bank.ledger()] == ["release"]


def test_killed_right_after_the_log_knew_of_a_request(bank: Live) -> None:
    """The folder and the log's line are there, the request's file is not: asked again, it is the same request."""
    request = bank.request()
    with bank.call() as channel:
        assert bank.ask(channel, request).state == "ready"
        (bank.world.folder / "bank" / "jobs" / request.job / "request.json").unlink()
        assert bank.ask(channel, request).state == "ready"
    assert [line["kind"] for line in bank.audit()].count("request") == 1
    assert len(bank.ledger()) == 1


def test_nothing_leaves_beside_a_changed_audit_log(world: World) -> None:
    with live(world) as bank, bank.call() as channel:
        request = bank.request()
        assert bank.ask(channel, request).state == "ready"
        log = world.folder / "bank" / "jobs" / "audit.log"
        sound = log.read_bytes()
        log.write_bytes(sound.replace(b'"who": "collector"', b'"who": "nobody"', 1))
        with pytest.raises(NetworkError, match=r"It failed \(Tampered\)"):
            bank_part(channel, request)
        log.write_bytes(sound)
        assert bank_part(channel, request)


def test_anothers_job_is_nobodys_business(world: World) -> None:
    issue(world.folder / "authority", "auditor", world.folder / "auditor")
    with (world.folder / "bank" / "identity" / "members.toml").open("a") as file:
        file.write("[auditor]\n")
    with live(world) as bank, bank.call() as channel, bank.call("auditor") as auditor:
        request = bank.request()
        assert bank.ask(channel, request).state == "ready"
        for attempt in (lambda: auditor.act("request", request, Answer), lambda: bank_part(auditor, request)):
            with pytest.raises(IdentityError, match=r"belongs to somebody else|You have no such job here"):
                attempt()
        with pytest.raises(IdentityError, match="You have no such job here"):
            auditor.act("received", Receipt(job=request.job, sha256="0" * 64), Nothing)


def test_oversized_messages_and_files(bank: Live) -> None:
    mine = bank.world.folder / "collector"
    flight, token = bare(bank, mine), Identity.read(mine).token
    with pytest.raises(fl.FlightServerError, match="at most"):
        say(flight, token, "request", b"{" + b" " * LONGEST + b"}")
    with bank.call() as channel:
        request = bank.request()
        answer = bank.ask(channel, request)
        channel.act("received", Receipt(job=request.job, sha256=str(answer.sha256)), Nothing)
        facts = {"what": "model", "job": request.job, "sha256": "0" * 64}
        huge = Delivery(size=5_000_000_000, **facts)
        with pytest.raises(NetworkError, match="is more than"):
            put(channel, huge, [b"x"])
        with pytest.raises(NetworkError, match="not a piece of a file"):
            put(channel, Delivery(size=1 << 25, **facts), [bytes(1 << 25)])
        with pytest.raises(NetworkError, match="More bytes arrived"):
            put(channel, Delivery(size=10, **facts), [b"12345", b"123456"])
        with pytest.raises(NetworkError, match="It failed"):
            put(channel, Delivery(size=5, **facts), [b"12345"])
    assert not list((bank.world.folder / "bank" / "jobs").glob("*/model.json"))


def put(channel: Channel, delivery: Delivery, pieces: list[bytes]) -> None:
    with channel._explaining():
        descriptor = fl.FlightDescriptor.for_command(delivery.encode())
        writer, reader = channel.flight.do_put(descriptor, SCHEMA, channel._options(30))
        with writer:
            for piece in pieces:
                writer.write_batch(pa.record_batch([pa.array([piece], pa.binary())], schema=SCHEMA))
            writer.done_writing()
            reader.read()


def test_more_calls_or_requests_than_allowed(world: World) -> None:
    (world.folder / "bank" / "identity" / "members.toml").write_text(
        "[collector]\ncalls_per_minute = 20\njobs_per_day = 2\n"
    )
    with live(world) as bank, bank.call() as channel:
        for id in ("a" * 32, "b" * 32):
            channel.act("request", bank.request(id), Answer)
        with pytest.raises(NetworkError, match="requests per day"):
            channel.act("request", bank.request("c" * 32), Answer)
        with pytest.raises(Interrupted, match="calls per minute"):
            [channel.act("hello", Nothing(), Hello) for _ in range(30)]


def test_noise_on_the_port(bank: Live) -> None:
    noise = random.Random(0)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    shouts = [b"GET / HTTP/1.1\r\nHost: bank\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00", hello]
    shouts += [noise.randbytes(noise.randrange(1, 3000)) for _ in range(60)]
    shouts += [hello + noise.randbytes(noise.randrange(1, 600)) for _ in range(60)]
    for shout in shouts:
        with socket.create_connection(("127.0.0.1", bank.port), timeout=10) as raw:
            raw.sendall(shout)
    with pytest.raises((urllib.error.URLError, OSError)):
        urllib.request.urlopen(f"http://{bank.address}/", timeout=5)
    assert not [line for line in bank.audit() if line["kind"] == "request"]


def test_noise_from_a_member(bank: Live) -> None:
    """After authentication: messages that are not ours, and HTTP inside TLS."""
    noise, mine = random.Random(1), bank.world.folder / "collector"
    flight, token = bare(bank, mine), Identity.read(mine).token
    sound = json.loads(bank.request().encode())
    for at in range(80):
        body = dict(sound)
        body[noise.choice([*sound])] = noise.choice([None, -1, "x" * 300, [], {}, 1e300, "../../etc", True])
        text = json.dumps(body).encode() if at % 2 else noise.randbytes(noise.randrange(200))
        with pytest.raises((fl.FlightServerError, fl.FlightUnauthorizedError)):
            say(flight, token, noise.choice(["request", "received", "no such"]), text)
    options = fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
    for ticket in (b"", b"{}", noise.randbytes(50), b'{"version":1,"what":"part","job":"../../../etc/passwd"}'):
        with pytest.raises(fl.FlightServerError):
            flight.do_get(fl.Ticket(ticket), options).read_all()
    context = ssl.create_default_context(cafile=str(mine / "authority.pem"))
    context.load_cert_chain(mine / "certificate.pem", mine / "key.pem")
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", bank.port)) as raw,
        context.wrap_socket(raw, server_hostname="bank") as tls,
    ):
        tls.sendall(b"GET / HTTP/1.1\r\n\r\n" + noise.randbytes(1000))
    assert not bank.ledger()


def test_a_hundred_half_open_connections(bank: Live) -> None:
    opened = []
    try:
        for at in range(100):
            raw = socket.create_connection(("127.0.0.1", bank.port), timeout=10)
            opened.append(raw)
            if at % 2:
                raw.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake that never goes on
        with bank.call() as channel:
            assert bank.ask(channel, bank.request()).state == "ready"
    finally:
        for raw in opened:
            raw.close()


def test_a_companys_own_certificate_with_its_token_in_members(world: World) -> None:
    """One DNS name, signed by somebody else's tools; what `identity adopt` makes of it gets in."""
    own, folder = corporate(world), world.folder
    identity = adopt(
        folder / "corp.pem", folder / "corp.key", folder / "authority" / "authority.pem", folder / "adopted"
    )
    members = f'[learner]\ncertificate = "{own}"\ntoken = "sha256:{digest(identity.token)}"\n'
    with live(world) as bank, bank.call("adopted") as channel, pytest.raises(IdentityError, match="not in our members"):
        channel.act("hello", Nothing(), Hello)
    (folder / "bank" / "identity" / "members.toml").write_text(f"[learner]\ncertificate = '{own}'\n")
    with live(world) as bank, bank.call("adopted") as channel, pytest.raises(IdentityError, match="token"):
        channel.act("hello", Nothing(), Hello)
    (folder / "bank" / "identity" / "members.toml").write_text(members)
    with live(world) as bank, bank.call("adopted") as channel:
        assert bank.ask(channel, bank.request()).state == "ready"
        assert [line["who"] for line in bank.audit() if line["kind"] == "request"] == ["learner"]


def corporate(world: World) -> str:
    """A certificate as a company's authority would issue it, by openssl."""
    folder, name = world.folder, "learner.example.com"
    made = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=learner"
    signed = "openssl x509 -req -CA authority/authority.pem -CAkey authority/authority.key -days 5"
    steps = f"""
        {made} -keyout corp.key -out corp.csr
        printf 'subjectAltName=DNS:{name}' > san
        {signed} -in corp.csr -extfile san -out corp.pem
    """
    subprocess.run(["bash", "-ec", steps], cwd=folder, check=True, capture_output=True)
    return name


def test_looking_at_a_port_that_is_no_peer(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    identity = Identity.load(world.folder / "collector")
    with pytest.raises(Interrupted, match="Cannot connect to 'bank'"):
        look(identity, Member(name="bank"), "127.0.0.1", port)
