"""Ports for services that are started late, or started again: nothing else is given them in between.

A port that the system hands out for an instant may be handed to somebody else a moment later. These lie below the range
it hands out from, and each belongs to one process of the tests until that process ends, however many run at once.
"""

import fcntl
import os
import socket
import tempfile
from pathlib import Path

_RANGE = range(20_000, 32_000)
_FOLDER = Path(tempfile.gettempdir()) / f"radocraft-test-ports-{os.getuid()}"


def free_port() -> int:
    """A port of this machine that nobody listens on, for this process alone."""
    _FOLDER.mkdir(exist_ok=True)
    for port in _RANGE:
        claim = os.open(_FOLDER / str(port), os.O_CREAT | os.O_RDWR)  # stays open: its lock is the claim
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as trial:
                trial.bind(("127.0.0.1", port))
        except OSError:
            os.close(claim)
        else:
            return port
    raise AssertionError("no port is free")
