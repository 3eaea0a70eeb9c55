"""A peer that dials out: the loop behind ``radocraft peer push``, for peers that nobody can call."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from radocraft.errors import IdentityError, NetworkError
from radocraft.net._channel import Channel, Interrupted, Pauses
from radocraft.net._identity import Identity
from radocraft.net._jobs import Jobs
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Assignment, Delivery, Fetch, Nothing, Receipt, Request

Say = Callable[[str], None]


class Pusher:
    """Asks a collector's mailbox for requests and brings it the answers."""

    def __init__(self, identity: Identity, member: Member, address: str, jobs: Jobs, say: Say) -> None:
        self._identity, self._member, self._address, self._jobs = identity, member, address, jobs
        self._last_said, self._say = "", say

    def run(self, stop: Event, *, once: bool = False) -> None:
        """Ask until ``stop`` is set or, if ``once``, until one job has come to its end.

        Only who we are, or are not, ends it otherwise; and, if ``once``, what the other end could not do.
        """
        pauses, before = Pauses(), ""
        while not stop.is_set():
            try:
                with Channel.open(self._identity, self._member, self._address) as channel:
                    ended = self._visit(channel, stop)
                if ended and once:
                    return
                if ended != before:
                    pauses.again()
                before = ended
            except IdentityError:
                raise
            except NetworkError as error:
                if once and not isinstance(error, Interrupted):
                    raise
                self._say_once(f"{error} Trying again.")
            pauses.wait(stop.wait)

    def _visit(self, channel: Channel, stop: Event) -> str:
        """Work on one request until it has come to its end, and say to which; nothing if we are to stop."""
        pauses, before = Pauses(), ""
        while not stop.is_set():
            assignment = channel.act("ask", Nothing(), Assignment)
            state = (
                self._close(channel, assignment) if assignment.received else self._bring(channel, assignment.request)
            )
            self._say_once(f"job {assignment.request.job[:12]}: {state}")
            if state != before:
                pauses.again()
                before = state
            if state in {"done", "refused", "failed"}:
                return f"{assignment.request.job} {state}"
            pauses.wait(stop.wait)
        return ""

    def _bring(self, channel: Channel, request: Request) -> str:
        """Answer a request, and bring what was asked for if it is ready."""
        answer = self._answer(request)
        assignment = channel.act("answer", answer, Assignment)
        if answer.state != "ready" or assignment.received or answer.size is None or answer.sha256 is None:
            return answer.state
        path = self._jobs.hand_out(self._member, Fetch(what=request.kind, job=request.job, offset=assignment.offset))
        facts = {"job": request.job, "size": answer.size, "sha256": answer.sha256, "offset": assignment.offset}
        channel.deliver(Delivery(what=request.kind, **facts), path)
        return "brought"

    def _answer(self, request: Request) -> Answer:
        try:
            return self._jobs.answer(self._member, request)
        except (IdentityError, NetworkError) as error:
            return Answer(job=request.job, state="refused", reason=str(error), exit_code=1)

    def _close(self, channel: Channel, assignment: Assignment) -> str:
        """The answer has arrived: close the job, and take the model if there is one for us."""
        job = assignment.request.job
        self._jobs.received(self._member, Receipt(job=job, sha256=str(assignment.received)))
        if assignment.model is None:
            return "done" if assignment.closed else "arrived"
        if not self._jobs.has_model(job, assignment.model):
            incoming = self._jobs.model(self._member, job, assignment.model)
            channel.fetch(Fetch(what="model", job=job, offset=incoming.offset), incoming, lambda done: None)
            self._jobs.keep_model(self._member, job, incoming)
        channel.act("received", Receipt(job=job, sha256=assignment.model.sha256), Nothing)
        return "done"

    def _say_once(self, text: str) -> None:
        if text != self._last_said:
            self._say(text)
            self._last_said = text
