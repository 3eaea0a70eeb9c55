"""Where commands may write: never over an input, and over another file only with --force."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from radocraft.errors import FileError
from radocraft.files import check_apart, check_free, check_place

Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write the result.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file; never an input.")]


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str | Path | None], *, force: bool) -> None:
    """Refuse outputs at places where they would destroy something; asked before any work.

    Parameters
    ----------
    outputs
        The files that the command would write.
    inputs
        What it reads: files, folders, patterns and addresses. A file that is read is refused by whatever name
        or link it is called.
    force
        Whether other files may be written over.
    """
    places = [path for path in outputs if path is not None]
    for path in places:
        check_place(path)
    check_apart(places)
    read = {_inode(file) for place in inputs if place is not None for file in _files_at(place)}
    for path in places:
        if path.is_file() and _inode(path) in read:
            raise FileError(
                f"'{path}' is an input of this command, which never overwrites its inputs. Name another file."
            )
        if not force:
            check_free(path)


def same_content(path: Path, other: Path) -> bool:
    """Whether two files are there and the same, byte for byte."""
    return path.is_file() and other.is_file() and filecmp.cmp(path, other, shallow=False)


def _files_at(place: str | Path) -> Iterator[Path]:
    """The files that a path, a folder or a pattern names; none for an address."""
    path = Path(place)
    if "://" in str(place):
        return
    if path.is_dir():
        yield from (file for file in path.rglob("*") if file.is_file())
    elif path.exists():
        yield path
    elif any(mark in path.name for mark in "*?["):
        yield from (file for file in path.parent.glob(path.name) if file.is_file())


def _inode(path: Path) -> tuple[int, int]:
    """By which a file is the same under every name and link."""
    known = path.stat()
    return known.st_dev, known.st_ino
