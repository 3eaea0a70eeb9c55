"""Files written whole or not at all, records kept in them as JSON, and text from files made harmless to show."""

from __future__ import annotations

import filecmp
import os
import re
import secrets
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from radocraft.errors import FileError

if TYPE_CHECKING:
    from pydantic import BaseModel

__version__ = "0.1.0"
"""The version, which every file names that is written."""

Kept = TypeVar("Kept", bound="BaseModel")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def check_place(path: str | Path) -> None:
    """Refuse a place where no file can be written; asked before long work, and before the ledger hears of it."""
    target = Path(path).resolve()
    if target.is_dir():
        raise FileError(f"Cannot write '{path}': it is a folder. Name a file inside it.")
    if not target.parent.is_dir():
        raise FileError(f"Cannot write '{path}': there is no folder '{Path(path).parent}'. Create it first.")
    if not (target.exists() and not target.is_file()) and not os.access(target.parent, os.W_OK):
        raise FileError(f"Cannot write '{path}': its folder is not writable. Choose another place.")


def check_free(path: str | Path) -> None:
    """Refuse to write over a file that is there already."""
    if Path(path).is_file():
        raise FileError(f"'{path}' already exists. Name another file, or overwrite it with --force.")


def check_apart(places: Iterable[str | Path | None]) -> None:
    """Refuse two outputs at one place."""
    seen: set[Path] = set()
    for path in (Path(place) for place in places if place is not None):
        if path.resolve() in seen and (path.is_file() or not path.exists()):
            raise FileError(f"Two outputs would be written to '{path}'. Name a different file for each.")
        seen.add(path.resolve())


@contextmanager
def writing(path: str | Path, *, private: bool = False, replace: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path`` that takes its place only when all went well.

    A full disk, a killed process or an error inside the block leaves ``path``
    as it was. A link stays a link; a device or a pipe is written to directly. A
    private file can be read by its owner alone. Without ``replace`` a file that
    is there already must be the same, byte for byte.
    """
    check_place(path)
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
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
                flush(file)
            if not replace and not (target.exists() and filecmp.cmp(name, target, shallow=False)):
                check_free(path)
            os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def flush(file: IO[bytes]) -> None:
    """Put on disk what was written so far."""
    file.flush()
    os.fsync(file.fileno())


def read_text(path: str | Path, name: str) -> str:
    """Read a file that somebody wrote by hand; messages call it ``name``."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"Cannot read the {name} '{path}': {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"The {name} '{path}' is not UTF-8 text. Save it as UTF-8, or check the path.") from error


def write_json(record: BaseModel, path: str | Path) -> None:
    """Write a record to a JSON file, whole or not at all."""
    with writing(path) as file:
        file.write(record.model_dump_json(indent=1).encode())


def read_json(kind: type[Kept], path: str | Path, name: str, remedy: str) -> Kept:
    """Read a record back; messages call it ``name`` and end with the remedy."""
    try:
        return kind.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"Cannot read the {name} '{path}': {error.strerror}. Check the path.") from error
    except ValueError as error:
        raise FileError(
            f"'{path}' is not a {name} this version of radocraft ({__version__}) can read. {remedy}"
        ) from error


def read_stored(path: str | Path, largest: dict[str, int]) -> dict[str, bytes]:
    """The entries of a zip that holds just these, not packed, none larger than it may be.

    Raises
    ------
    ValueError
        If it is something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {info.filename: info for info in archive.infolist()}
            if {*entries} != {*largest} or any(info.compress_type != zipfile.ZIP_STORED for info in entries.values()):
                raise ValueError("it has other entries, or packed ones")
            if any(info.file_size > largest[name] for name, info in entries.items()):
                raise ValueError("an entry is too large")
            return {name: archive.read(name) for name in largest}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, struct.error) as error:
        raise ValueError(str(error)) from error


@contextmanager
def _explaining(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(
            f"Cannot write '{path}': {error.strerror or error}. Nothing was changed; make room or choose another place."
        ) from error


def harmless(text: str) -> bool:
    r"""Whether a terminal shows a text on one line as it is: no control characters, none that turn the direction.

    Examples
    --------
    >>> harmless("Bern"), harmless("Be\trn"), harmless("\x1b[2J")
    (True, False, False)
    """
    return not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or ord(sign) in _DIRECTIONS for sign in text)


def plain(text: str) -> str:
    r"""A text without characters that steer a terminal, or turn the direction of reading.

    Examples
    --------
    >>> plain("bank\x1b[2J of\u202e Bern")
    'bank[2J of Bern'
    """
    return _CONTROL.sub("", text)


def plain_json(text: str) -> str:
    r"""A JSON document with such characters spelled out.

    Examples
    --------
    >>> plain_json('{"name": "a\x9bb"}')
    '{"name": "a\\u009bb"}'
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def size(count: float) -> str:
    """A number of bytes.

    Examples
    --------
    >>> size(640), size(13_200)
    ('640 B', '13.2 kB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")
