"""The two kinds of files that leave, parts and counts of scores, as the road sees them."""

from __future__ import annotations

from typing import IO, Any

from pydantic import ValidationError

from radocraft.errors import FileError
from radocraft.gate import describe_rows
from radocraft.ledger import Ledger, What
from radocraft.parts import BINS, Histograms, Part
from radocraft.peer._outgoing import Facts, FileKind


def _describe_part(part: Part) -> Facts:
    metadata, cells = part.metadata, part.table.num_rows
    rows = int(metadata["rows"])
    return Facts(
        hash=str(metadata["hash"]),
        rows=rows,
        cells=cells,
        guarantee=str(metadata["policy"]["guarantee"]),
        summary=f"sums over {describe_rows(rows, metadata['policy']['mode'])} rows in {cells:,} cells",
    )


def _describe_scores(scores: Histograms) -> Facts:
    counted = describe_rows(scores.total, "noise" if scores.noise else "exact")
    return Facts(
        hash=scores.hash,
        rows=scores.total,
        cells=2 * BINS,
        guarantee=scores.guarantee,
        summary=f"counts of {counted} rows in {2 * BINS} bins",
    )


def _read_scores(file: IO[bytes], name: str) -> Histograms:
    try:
        return Histograms.model_validate_json(file.read())
    except (ValidationError, RecursionError) as error:
        raise FileError(f"'{name}' holds no counts of scores. Count anew, or check the path.") from error


def _write_scores(scores: Histograms, file: IO[bytes]) -> None:
    file.write(scores.encode())


def _keep_scores(scores: Histograms, ledger: Ledger) -> None:
    with ledger.keeping("scores", scores.hash) as file:
        _write_scores(scores, file)


PARTS = FileKind("part", Part.read, Part.stream, Part.keep, _describe_part)
SCORES = FileKind("scores", _read_scores, _write_scores, _keep_scores, _describe_scores)


def kind_of(what: What) -> FileKind[Any]:
    """How to handle this kind of file."""
    return SCORES if what == "scores" else PARTS
