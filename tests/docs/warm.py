"""`radocraft` without the second it takes to start: one process has imported it, and forks for every command.

`python warm.py SOCKET` is that process. `warm_command` puts a `radocraft` into a folder that asks it; the child
takes over the asker's folder, environment, input and output, and runs the command as the real one does.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ASK = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({place!r})
    told = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(asked, [len(told).to_bytes(8, "big")], [0, 1, 2])
    asked.sendall(told)
    sys.exit(int(asked.recv(16) or b"1"))
"""


def serve(place: str) -> None:
    """Answer until the process is ended."""
    import radocraft.cli  # noqa: PLC0415

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            asked, _ = listening.accept()
            with asked:
                answer(asked, radocraft.cli.main)


def answer(asked: socket.socket, main: object) -> None:
    length, handles, _, _ = socket.recv_fds(asked, 8, 3)
    told = b""
    while len(told) < int.from_bytes(length, "big"):
        told += asked.recv(1 << 16)
    words, folder, environment = json.loads(told)
    child = os.fork()
    if child == 0:
        for own, given in enumerate(handles):
            os.dup2(given, own)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["radocraft", *words]
        code = 1
        try:
            main()  # type: ignore[operator]
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    for handle in handles:
        os.close(handle)
    _, status = os.waitpid(child, 0)
    asked.sendall(str(os.waitstatus_to_exitcode(status)).encode())


@contextmanager
def warm_command(folder: Path) -> Iterator[Path]:
    """A folder whose `radocraft` starts at once."""
    place = str(folder / "socket")
    command = [sys.executable, __file__, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        (folder / "radocraft").write_text(ASK.format(python=sys.executable, place=place))
        (folder / "radocraft").chmod(0o755)
        yield folder
        server.terminate()


if __name__ == "__main__":
    serve(sys.argv[1])
