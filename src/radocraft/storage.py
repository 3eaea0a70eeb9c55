"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from radocraft.errors import FileError


@contextmanager
def writing(path: str | Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path`` that takes its place only when all went well.

    A full disk, a killed process or an error inside the block leaves ``path``
    as it was. A link stays a link; a device or a pipe is written to directly. A
    private file can be read by its owner alone.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with _explaining(path), target.open("wb") as file:
            yield file
        return
    name = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    try:
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
    except OSError as error:
        raise FileError(f"Cannot write '{path}': {error.strerror or error}. Choose another place.") from error
    try:
        with _explaining(path):
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


@contextmanager
def _explaining(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(
            f"Cannot write '{path}': {error.strerror or error}. Nothing was changed; make room or choose another place."
        ) from error
