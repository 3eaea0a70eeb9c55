"""Our end for others to call: one Flight service with mutual TLS, the same for a peer and for the mailbox.

What it does is up to its `Handler`: replies to messages, files it hands out and
files it takes. A call is authenticated first. An error raised on
purpose is then reported in one sentence, any other without details.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow.flight as fl

from radocraft.errors import ContractMismatch, FileError, IdentityError, NetworkError, RadocraftError
from radocraft.net._authentication import HEADERS, Authenticator, Headers
from radocraft.net._chunks import SCHEMA, Busy, Incoming, cut
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import LONGEST, Delivery, Fetch, Message
from radocraft.net._metrics import Metrics, parse_port

log = logging.getLogger("radocraft.net")


class Handler(Protocol):
    """What a service does for those who are let in."""

    def reply(self, member: Member, kind: str, body: bytes) -> Message:
        """Answer a message."""

    def hand_out(self, member: Member, fetch: Fetch) -> Path:
        """The file that is asked for."""

    def take_in(self, member: Member, delivery: Delivery) -> Incoming:
        """Where to put the file that comes."""

    def taken(self, member: Member, delivery: Delivery, incoming: Incoming) -> None:
        """All bytes have come: check them and give the file its name."""

    def not_taken(self, member: Member, error: RadocraftError) -> None:
        """The file could not be written here, or is not what was asked for."""


class Service(fl.FlightServerBase):  # type: ignore[misc]
    """Listens as soon as it is made, until `shutdown`."""

    def __init__(
        self, listen: str, identity: Identity, authenticator: Authenticator, handler: Handler, metrics: Metrics
    ) -> None:
        self._authenticator, self._handler, self._metrics = authenticator, handler, metrics
        host, port = parse_port(listen)
        try:
            super().__init__(
                fl.Location.for_grpc_tls(host, port),
                tls_certificates=[(identity.chain, identity.private)],
                verify_client=True,
                root_certificates=identity.authority,
                middleware={HEADERS: Headers()},
            )
        except (fl.FlightError, OSError) as error:
            raise NetworkError(f"Cannot listen on {listen}: is the port taken? ({error})") from error

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """A message and its reply."""
        with self._call(context, "message") as member:
            if action.body is None or action.body.size > LONGEST:
                raise NetworkError(f"A message may have {LONGEST:,} bytes at most.")
            reply = self._handler.reply(member, action.type, action.body.to_pybytes())
        return iter([fl.Result(reply.encode())])

    def do_get(self, context: Any, ticket: Any) -> Any:
        """A file that somebody fetches."""
        with self._call(context, "fetch") as member:
            fetch = Fetch.decode(ticket.ticket)
            path = self._handler.hand_out(member, fetch)
        return fl.GeneratorStream(SCHEMA, self._pieces(member, path, fetch.offset))

    def _pieces(self, member: Member, path: Path, offset: int) -> Iterator[Any]:
        with self._call(None, "stream", member), self._authenticator.stream(member):
            for batch in cut(path, offset):
                yield batch
                self._metrics.sent.inc(batch.nbytes)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """A file that somebody delivers."""
        with self._call(context, "delivery") as member, self._authenticator.stream(member):
            delivery = Delivery.decode(descriptor.command or b"")
            if delivery.size > member.part_bytes:
                raise NetworkError(f"A file of {delivery.size:,} bytes is more than {member.part_bytes:,}.")
            incoming = self._handler.take_in(member, delivery)
            before = delivery.offset
            try:
                for have in incoming.take((piece.data for piece in reader), delivery.offset):
                    self._metrics.received.inc(have - before)
                    before = have
                self._handler.taken(member, delivery, incoming)
            except (FileError, ContractMismatch) as error:
                self._handler.not_taken(member, error)
                raise

    @contextmanager
    def _call(self, context: Any, kind: str, member: Member | None = None) -> Iterator[Member]:
        try:
            yield member or self._authenticator.enter(context)
            self._metrics.calls.labels(kind, "ok").inc()
        except fl.FlightError:
            self._metrics.calls.labels(kind, "turned away").inc()
            raise
        except IdentityError as error:
            self._metrics.calls.labels(kind, "turned away").inc()
            raise fl.FlightUnauthorizedError(str(error)) from error
        except Busy as error:
            self._metrics.calls.labels(kind, "busy").inc()
            raise fl.FlightUnavailableError(str(error)) from error
        except NetworkError as error:
            self._metrics.calls.labels(kind, "refused").inc()
            raise fl.FlightServerError(str(error)) from error
        except RadocraftError as error:
            self._metrics.calls.labels(kind, "failed").inc()
            log.exception("a call failed")
            raise fl.FlightServerError(f"It failed ({type(error).__name__}); our log says more.") from None
        except Exception:
            self._metrics.calls.labels(kind, "failed").inc()
            log.exception("a call failed in an unforeseen way")
            raise fl.FlightServerError("It failed; our log says more.") from None
