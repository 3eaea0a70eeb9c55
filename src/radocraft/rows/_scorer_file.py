"""A scorer's file: a zip of a description as JSON, the models in skops' format, and the hash of both.

It is readable by its owner alone, and loading it runs no code (`safety`).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from radocraft.errors import FileError, Tampered
from radocraft.files import __version__, read_stored, writing
from radocraft.rows._folds import Lots
from radocraft.rows._safety import load_models, save_models

Kept = TypeVar("Kept")
FORMAT = 1
_SCORER, _MODELS, _HASH = "scorer.json", "models.skops", "sha256"
_LARGEST, _HUGE = 2**28, 2**34


def write_scorer(path: str | Path, described: dict[str, Any], models: Sequence[Any]) -> str:
    """Write a scorer, readable by its owner alone; the SHA-256 of what it holds comes back."""
    import sklearn  # noqa: PLC0415

    kept = save_models(models)
    header = {"format": FORMAT, "radocraft": __version__, "sklearn": sklearn.__version__} | described
    text = json.dumps(header, sort_keys=True, ensure_ascii=True).encode()
    digest = _digest(text, kept)
    with writing(path, private=True) as file, ZipFile(file, "w", ZIP_STORED) as archive:
        for name, content in ((_SCORER, text), (_MODELS, kept), (_HASH, digest.encode())):
            archive.writestr(ZipInfo(name), content)
    return digest


def read_scorer(path: str | Path, trusted: Sequence[str], assemble: Callable[[dict[str, Any], Any], Kept]) -> Kept:
    """What ``put_together`` makes of a scorer's description and its models."""
    text, models = _read(path)
    held = _decoded(text, path)
    _check_versions(held, path)
    try:
        return assemble(held, load_models(models, trusted))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Tampered(f"'{path}' does not hold what a scorer's file should. Fit a scorer anew.") from error


def _read(path: str | Path) -> tuple[bytes, bytes]:
    try:
        entries = read_stored(path, {_SCORER: _LARGEST, _MODELS: _HUGE, _HASH: 64})
    except OSError as error:
        raise FileError(f"Cannot read the scorer '{path}': {error.strerror}. Check the path.") from error
    except ValueError as error:
        raise FileError(f"'{path}' is no scorer's file. Check the path, or fit a scorer.") from error
    described, models, digest = entries[_SCORER], entries[_MODELS], entries[_HASH]
    if _digest(described, models).encode() != digest:
        raise Tampered(f"What '{path}' holds does not match its hash: it was changed or damaged. Fit a scorer anew.")
    return described, models


def _decoded(described: bytes, path: str | Path) -> dict[str, Any]:
    try:
        held = json.loads(described)
    except (ValueError, RecursionError) as error:
        raise Tampered(f"'{path}' does not hold what a scorer's file should. Fit a scorer anew.") from error
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise FileError(f"'{path}' is a scorer of another version of radocraft than {__version__}. Fit one anew.")
    return held


def _check_versions(held: dict[str, Any], path: str | Path) -> None:
    import sklearn  # noqa: PLC0415

    there, here = str(held.get("sklearn")), sklearn.__version__
    if there.split(".")[:2] != here.split(".")[:2]:
        raise FileError(
            f"The scorer '{path}' was fitted with scikit-learn {there}, and {here} is installed here, which may read "
            f"its models differently. Fit it anew, or install scikit-learn {there}."
        )


def _digest(described: bytes, models: bytes) -> str:
    return hashlib.sha256(hashlib.sha256(described).digest() + hashlib.sha256(models).digest()).hexdigest()


def packed(numbers: Lots) -> str:
    """Lots as text."""
    return base64.b64encode(numbers.astype("<u8").tobytes()).decode()


def unpacked(text: str) -> Lots:
    """The lots in such a text."""
    return np.frombuffer(base64.b64decode(text), dtype="<u8").astype(np.uint64)
