"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from radocraft.errors import FileError


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path`` that takes its place only when all went well.

    A full disk, a killed process or an error inside the block leaves ``path``
    as it was.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise FileError(f"Cannot write '{target}': {error.strerror or error}. Choose another place.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except OSError as error:
        raise FileError(
            f"Cannot write '{target}': {error.strerror or error}. Nothing was changed; free some space and try again."
        ) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
