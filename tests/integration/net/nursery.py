"""Processes that start at once: one process has everything imported and forks the others.

Starting Python and importing scikit-learn takes seconds, and these tests start
dozens of processes. What is forked is a process like any other: it can be killed.
"""

import ctypes
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NETWORK = 0x40000000  # CLONE_NEWNET


class Nursery:
    """The process that forks."""

    def __init__(self) -> None:
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, __file__], env=env, text=True, **pipes)  # type: ignore[call-overload]

    def _say(self, **what: object) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what, default=str) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, words: list[str], folder: Path, log: Path, space: str | None = None) -> int:
        """Run a radocraft command, in a network namespace if given; gives the process' id."""
        return int(str(self._say(words=words, folder=folder, log=log, space=space)))

    def poll(self, pid: int) -> int | None:
        """How a process ended, None if it has not."""
        code = self._say(poll=pid)
        return None if code is None else int(str(code))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@contextmanager
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    try:
        yield made
    finally:
        made.close()


def _run(words: list[str], folder: str, log: str, space: str | None) -> None:
    """In the fork: become the command."""
    os.chdir(folder)
    if space is not None and ctypes.CDLL(None).setns(os.open(f"/var/run/netns/{space}", os.O_RDONLY), _NETWORK):
        os._exit(99)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["radocraft", *words]
    code = 1
    try:
        runpy.run_module("radocraft", run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _poll(pid: int) -> int | None:
    with suppress(ChildProcessError):
        done, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if done else None
    return None


def _main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if "poll" in order:
            answer = _poll(order["poll"])
        else:
            answer = os.fork()
            if answer == 0:
                _run(order["words"], order["folder"], order["log"], order["space"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import radocraft.cli  # noqa: F401

    _main()
