"""A wire between two ends that can be cut, or go dead without a word."""

import socket
import threading
from contextlib import suppress


class Wire:
    """Forwards bytes; after so many of them towards the caller it is cut, or goes dead, once for each entry.

    With ``up`` those from the caller are counted.
    """

    def __init__(self, port: int, cuts: list[int], *, dead: bool = False, up: bool = False) -> None:
        self._to, self._cuts, self._dead, self._up = port, list(cuts), dead, up
        self._ears = socket.create_server(("127.0.0.1", 0))
        self.port = self._ears.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._ears.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open += [near, far]
                for ends in ((near, far, self._up), (far, near, not self._up)):
                    self._threads.append(threading.Thread(target=self._forward, args=ends))
                    self._threads[-1].start()

    def _forward(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        passed = 0
        with suppress(OSError):
            while piece := source.recv(65536):
                passed += len(piece)
                if counted and self._cuts and passed > self._cuts[0]:
                    self._cuts.pop(0)
                    if self._dead:
                        return
                    break
                target.sendall(piece)
            for end in (source, target):
                end.shutdown(socket.SHUT_RDWR)

    @property
    def left(self) -> int:
        """How many cuts are still to come."""
        return len(self._cuts)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._ears.shutdown(socket.SHUT_RDWR)
        self._ears.close()
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(timeout=10)
