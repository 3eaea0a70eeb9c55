"""A peer that dials out: the loop behind ``radocraft peer push``, for peers that nobody can call."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from radocraft.errors import IdentityError, NetworkError
from radocraft.net._channel import Channel, Interrupted, Pauses
from radocraft.net._desk import Desk
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Delivery, Fetch, Nothing, Receipt, Request, Task

Say = Callable[[str], None]


class Pusher:
    """Asks a collector's mailbox for requests and brings it the answers."""

    def __init__(self, identity: Identity, member: Member, address: str, desk: Desk, say: Say) -> None:
        self._identity, self._member, self._address, self._desk = identity, member, address, desk
        self._said, self._say = "", say

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
                self._tell(f"{error} Trying again.")
            pauses.wait(stop.wait)

    def _visit(self, channel: Channel, stop: Event) -> str:
        """Work on one task until it has come to its end, and say to which; nothing if we are to stop."""
        pauses, before = Pauses(), ""
        while not stop.is_set():
            task = channel.act("ask", Nothing(), Task)
            state = self._close(channel, task) if task.received else self._bring(channel, task.request)
            self._tell(f"job {task.request.job[:12]}: {state}")
            if state != before:
                pauses.again()
                before = state
            if state in {"done", "refused", "failed"}:
                return f"{task.request.job} {state}"
            pauses.wait(stop.wait)
        return ""

    def _bring(self, channel: Channel, request: Request) -> str:
        """Answer a request, and bring what was asked for if it is ready."""
        answer = self._answer(request)
        task = channel.act("answer", answer, Task)
        if answer.state != "ready" or task.received or answer.size is None or answer.sha256 is None:
            return answer.state
        path = self._desk.hand_out(self._member, Fetch(what=request.kind, job=request.job, offset=task.offset))
        facts = {"job": request.job, "size": answer.size, "sha256": answer.sha256, "offset": task.offset}
        channel.deliver(Delivery(what=request.kind, **facts), path)
        return "brought"

    def _answer(self, request: Request) -> Answer:
        try:
            return self._desk.answer(self._member, request)
        except (IdentityError, NetworkError) as error:
            return Answer(job=request.job, state="refused", reason=str(error), exit_code=1)

    def _close(self, channel: Channel, task: Task) -> str:
        """The answer has arrived: close the job, and take the model if there is one for us."""
        job = task.request.job
        self._desk.received(self._member, Receipt(job=job, sha256=str(task.received)))
        if task.model is None:
            return "done" if task.closed else "arrived"
        if not self._desk.has_model(job, task.model):
            incoming = self._desk.model(self._member, job, task.model)
            channel.fetch(Fetch(what="model", job=job, offset=incoming.offset), incoming, lambda done: None)
            self._desk.keep_model(self._member, job, incoming)
        channel.act("received", Receipt(job=job, sha256=task.model.sha256), Nothing)
        return "done"

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._say(text)
            self._said = text
