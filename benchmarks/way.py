"""Modules in which a function runs between a command and its file: python benchmarks/way.py.

Counted are the package's own modules, from the call of `radocraft craft` (and of `radocraft learn`) on the example's
tables to its end; what runs while modules are imported does not count.
"""

import contextlib
import io
import os
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tables import arguments, show

import radocraft
from radocraft.cli import main as run_command
from radocraft.demo import write_example

SOURCE = Path(radocraft.__file__).parent
FUNCTION = 1  # the flag of a function's code, which that of a class or module lacks
COMMANDS = {
    "craft": ["craft", "--contract", "contract.toml", "--peer", "bank", "bank.csv", "-o", "bank.part.parquet"],
    "the other peer's craft": [
        *("craft", "--contract", "contract.toml", "--peer", "insurer", "insurer.parquet"),
        *("-o", "insurer.part.parquet"),
    ],
    "learn": [
        *("learn", "--contract", "contract.toml", "bank.part.parquet", "insurer.part.parquet"),
        *("-o", "model.json"),
    ],
}


def modules_on_the_way(words: list[str]) -> set[str]:
    found: set[str] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_flags & FUNCTION and SOURCE in path.parents and not importing(frame):
            found.add(path.relative_to(SOURCE).as_posix())

    sys.argv = ["radocraft", *words]
    sys.setprofile(watch)
    threading.setprofile(watch)
    try:
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            run_command()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and SOURCE in Path(frame.f_code.co_filename).parents:
            return True
        frame = frame.f_back
    return False


def main() -> None:
    given = arguments(__doc__).parse_args()
    found = {}
    with TemporaryDirectory() as folder:
        write_example(Path(folder))
        os.chdir(folder)
        for name, words in COMMANDS.items():
            found[name] = sorted(modules_on_the_way(words))
        os.chdir("/")
    show(given, found, ("command", "modules"), [(name, str(len(modules))) for name, modules in found.items()])


if __name__ == "__main__":
    main()
