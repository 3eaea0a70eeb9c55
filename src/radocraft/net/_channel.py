"""Our end of a connection to somebody else's service.

Before the first call the other end's certificate is looked at: signed by our
authority, of the name we want, in its time, not revoked. Flight then accepts
that very certificate and no other. Looking first costs one handshake and gives
an error a person can act on.
"""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as fl
from cryptography import x509

from radocraft.errors import IdentityError, NetworkError, RadocraftError
from radocraft.net._chunks import LARGEST, SCHEMA, Incoming, cut
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import LONGEST, Delivery, Fetch, Message
from radocraft.net._metrics import parse_port
from radocraft.net._revoked import Revoked

Reply = TypeVar("Reply", bound=Message)
CALL_SECONDS = 30.0
STALLED_SECONDS = 30.0
_SLOWEST = 200_000  # bytes a second; a stream slower than this is given up and taken up again
_GRACE = 2.0  # seconds for gRPC to end a call by itself, once its time is over
_LONGEST_PAUSE = 15.0
_LOOKS = 3
_LIMITS = [("grpc.max_receive_message_length", LARGEST + LONGEST)]  # gRPC hangs up before it reads more


class Interrupted(NetworkError):
    """The connection broke or the other end is busy; trying again may help."""


@dataclass(frozen=True)
class Channel:
    """Calls to one member at one address; `close` it, or use it in a ``with``."""

    identity: Identity
    member: Member
    address: str
    flight: Any

    @classmethod
    def open(cls, identity: Identity, member: Member, address: str) -> Channel:
        """Connect; raises `Interrupted` where another try may help, `IdentityError` where it will not."""
        host, port = parse_port(address)
        presented = look(identity, member, host, port)
        flight = fl.FlightClient(
            fl.Location.for_grpc_tls(host, port),
            tls_root_certs=ssl.DER_cert_to_PEM_cert(presented),
            cert_chain=identity.chain,
            private_key=identity.private,
            override_hostname=member.subject,
            generic_options=_LIMITS,
        )
        return cls(identity, member, address, flight)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        with suppress(Exception):
            self.flight.close()

    def act(self, kind: str, message: Message, reply: type[Reply]) -> Reply:
        """One call, one reply."""
        with self._explaining():
            results = list(self.flight.do_action(fl.Action(kind, message.encode()), self._options(CALL_SECONDS)))
        if len(results) != 1:
            raise NetworkError(f"'{self.member.name}' did not reply to '{kind}'.")
        return reply.decode(results[0].body.to_pybytes())

    def fetch(self, fetch: Fetch, incoming: Incoming, progress: Callable[[int], None]) -> None:
        """Take the rest of a file from the other end."""
        options = self._options(_stream_seconds(incoming.size - fetch.offset))
        with self._explaining():
            reader = self.flight.do_get(fl.Ticket(fetch.encode()), options)
            with _watched(reader) as beat:
                for have in incoming.take((piece.data for piece in reader), fetch.offset):
                    beat()
                    progress(have)

    def deliver(self, delivery: Delivery, path: Path) -> None:
        """Give the rest of a file to the other end.

        A write to a wire that is dead may outlast the time of its call, and nobody
        can call it off: it is left behind, until the system gives the wire up.
        """
        seconds = _stream_seconds(delivery.size - delivery.offset)
        with self._explaining():
            if not _ends_within(seconds + _GRACE, lambda: self._write(delivery, path, seconds)):
                raise fl.FlightTimedOutError("no bytes are arriving.")

    def _write(self, delivery: Delivery, path: Path, seconds: float) -> None:
        descriptor = fl.FlightDescriptor.for_command(delivery.encode())
        writer, reader = self.flight.do_put(descriptor, SCHEMA, self._options(seconds))
        with writer:
            for batch in cut(path, delivery.offset):
                writer.write_batch(batch)
            writer.done_writing()
            while reader.read() is not None:
                pass

    def _options(self, seconds: float) -> Any:
        return fl.FlightCallOptions(timeout=seconds, headers=[self.identity.header])

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn what Flight raises into one of ours."""
        who = f"'{self.member.name}' at {self.address}"
        try:
            yield
        except RadocraftError:
            raise
        except (fl.FlightUnauthenticatedError, fl.FlightUnauthorizedError) as error:
            raise IdentityError(f"{who} rejected us: {reason_of(error)}") from error
        except (fl.FlightUnavailableError, fl.FlightTimedOutError, fl.FlightCancelledError) as error:
            raise Interrupted(f"{who} does not answer: {reason_of(error)}") from error
        except fl.FlightServerError as error:
            raise NetworkError(f"{who} could not do it: {reason_of(error)}") from error
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise Interrupted(f"The connection to {who} broke: {reason_of(error)}") from error


def _stream_seconds(size: int) -> float:
    """The longest a stream of so many bytes may take."""
    return CALL_SECONDS + size / _SLOWEST


def _ends_within(seconds: float, work: Callable[[], None]) -> bool:
    """Whether work in a thread of its own ends in time; raises what it raises."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return not thread.is_alive()


@contextmanager
def _watched(reader: Any) -> Iterator[Callable[[], None]]:
    """Cancel a stream in which nothing comes for a while; call what is yielded whenever something does."""
    beat, done = Event(), Event()

    def watch() -> None:
        while beat.wait(STALLED_SECONDS):
            beat.clear()
            if done.is_set():
                return
        reader.cancel()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield beat.set
    except BaseException:
        reader.cancel()  # else the other end goes on waiting for us to read
        raise
    finally:
        done.set()
        beat.set()
        watcher.join()


def reason_of(error: Exception) -> str:
    """What the other end said, without what gRPC puts around it."""
    text = str(error).split(". Detail:")[0].split(". gRPC client debug context")[0]
    if text.rstrip().endswith("cancelled call, with message:"):  # gRPC says no more when our limit cuts a call off
        return f"the call was cut off, by the network or because a message had more than {LARGEST + LONGEST:,} bytes."
    return text.removeprefix("Flight returned unavailable error, with message: ").strip()[:300]


def look(identity: Identity, member: Member, host: str, port: int) -> bytes:
    """Shake hands and look at the other end's certificate; gives it in DER form."""
    where = f"'{member.name}' at {host}:{port}"
    pauses = Pauses()
    for _ in range(_LOOKS):
        if (presented := _shake_hands(identity, member, host, port)) is not None:
            break
        pauses.wait()
    else:
        raise IdentityError(
            f"{where} does not accept our certificate: it hangs up after the handshake. Both ends need the same "
            "authority, and ours must not have expired; see `radocraft doctor`."
        )
    if x509.load_der_x509_certificate(presented).serial_number in _revoked(identity):
        raise IdentityError(f"The certificate of {where} was revoked. Ask who runs it for the new one.")
    return presented


def _shake_hands(identity: Identity, member: Member, host: str, port: int) -> bytes | None:
    """The certificate of the other end; None if it hangs up, as Flight does on a certificate it does not take."""
    where = f"'{member.name}' at {host}:{port}"
    context = ssl.create_default_context(cadata=identity.authority.decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(identity.folder / "certificate.pem", identity.folder / "key.pem")
    try:
        with (
            socket.create_connection((host, port), timeout=CALL_SECONDS) as raw,
            context.wrap_socket(raw, server_hostname=member.subject) as secured,
        ):
            presented = secured.getpeercert(binary_form=True)
            return presented if secured.recv(1) else None  # its verdict on ours comes after the handshake
    except ssl.SSLCertVerificationError as error:
        raise IdentityError(f"The certificate of {where} is not valid: {error.verify_message}.") from error
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            return None
        raise Interrupted(f"No handshake with {where}: {error.reason or error}.") from error
    except ConnectionResetError:
        return None
    except OSError as error:
        raise Interrupted(f"Cannot connect to {where}: {error.strerror or error}.") from error


def _revoked(identity: Identity) -> frozenset[int]:
    return Revoked(identity.folder / "revoked.pem", identity.authority).serials()


class Pauses:
    """How long to wait before the next try: longer each time, up to a quarter of a minute, never in step."""

    def __init__(self, first: float = 0.1) -> None:
        self._first = self._next = first

    def again(self) -> None:
        """Start from the shortest."""
        self._next = self._first

    def wait(self, sleep: Callable[[float], object] = time.sleep) -> None:
        """Wait, longer than the last time."""
        sleep(self._next * random.uniform(0.75, 1.25))
        self._next = min(self._next * 1.6, _LONGEST_PAUSE)
