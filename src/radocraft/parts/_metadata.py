"""A part's metadata: every field, and which values are valid."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from radocraft.arrays import Floats, Ints
from radocraft.contract import Record
from radocraft.files import harmless
from radocraft.gate import Release
from radocraft.sums import BINS

FORMAT = 2
LARGEST = 1e100
"""No number of a part is larger: squares and sums of such numbers are finite."""
_NAMES = 1_000_000


def _harmless(text: str) -> str:
    if not harmless(text):
        raise ValueError("text holds a control character")
    return text


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Text = Annotated[str, Field(max_length=10_000), AfterValidator(_harmless)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Packed = Annotated[str, Field(pattern="^[A-Za-z0-9+/]*={0,2}$")]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Size = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Positive = Annotated[float, Field(ge=1 / LARGEST, le=LARGEST, allow_inf_nan=False)]
Bound = Annotated[float, Field(ge=1e-3, le=1e6)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class _Strict(Record):
    model_config = ConfigDict(strict=True)


class PolicyWords(_Strict):
    """What the part says of the policy it left under."""

    mode: Literal["noise", "exact"]
    """Whether there is noise at all; without it the next four, and the bounds, are null."""
    noise: Size | None
    """The noise asked for, as a share of the sampling error; null where epsilon was asked for."""
    epsilon: Size | None
    """What the release costs at this delta ..."""
    delta: Annotated[float, Field(ge=0, le=1)] | None
    """... the chance that epsilon does not hold ..."""
    rho: Size | None
    """... and the same cost as it adds up."""
    min_rows: Count
    """Blocks with fewer rows, by noisy counts, are rolled up."""
    bound: Bound | None
    """Columns are clipped at so many standard deviations."""
    row_bound: Bound | None
    """Rows are scaled down to this norm, times the square root of the number of columns."""
    unit: Literal["row", "person"]
    """Whom the noise protects."""
    rows_per_person: Annotated[int, Field(ge=1, le=2**53)]
    """How many rows of a person entered."""
    guarantee: Text
    """What all of this promises, in a sentence."""
    rolled_up: Count
    """Agreed blocks that left only inside coarser cells."""


class LevelWords(_Strict):
    """Standard deviations of the noise; see `radocraft.cells.Levels`."""

    rows: Size
    """In each count of rows."""
    sums: Size
    """In each sum."""
    hidden: Size
    """In each product that rolled-up cells do not tell."""
    moments: Size
    """In each second moment."""


class ScoreLevelWords(_Strict):
    """Standard deviations of the noise in a part of scores, beside those of its sums."""

    spreads: Size
    """In each sum of absolute residuals."""
    bins: Size
    """In each count of a bin."""
    groups: dict[Text, Size]
    """In each group's sum, by label."""
    margins: dict[Text, Size]
    """In each count of a bin of scores, by label."""


class ScoreWords(_Strict):
    """What a part of scores holds in place of moments, by label."""

    counts: dict[Text, Packed]
    """Rows of every agreed signature, in the order of the contract's codes."""
    histogram: dict[Text, Annotated[list[Number], Field(min_length=BINS, max_length=BINS)]]
    """Rows by bin of residuals, in deviations of their cells."""
    margins: dict[Text, Annotated[list[Number], Field(min_length=BINS, max_length=BINS)]]
    """Rows by bin of scores, about the log-odds of the base rate."""
    groups: dict[Text, Annotated[list[Number], Field(max_length=100_000)]]
    """Sums of residuals by group of the contract's key; empty without one."""
    levels: ScoreLevelWords
    """How much noise there is."""


class Metadata(_Strict):
    """All fields of a part's metadata."""

    format: Literal[2]
    """This format."""
    radocraft: Text
    """The version that wrote it."""
    created: Annotated[str, Field(max_length=40), AfterValidator(_moment)]
    """When."""
    contract: Text
    """The contract's name ..."""
    fingerprint: Hash
    """... and fingerprint."""
    peer: Text
    """Whose part it is."""
    rows: Annotated[int, Field(ge=1, le=2**53)]
    """Rows of all cells, noise included."""
    policy: PolicyWords
    """The policy it left under."""
    levels: LevelWords
    """How much noise there is."""
    notes: Annotated[list[Text], Field(max_length=1000)]
    """What a reader should know."""
    columns: list[Text]
    """Private columns, in order ..."""
    centre: list[Number]
    """... and their units: raw value = centre + scale * value."""
    scale: list[Positive]
    """The scales."""
    constants: dict[Text, list[Number]]
    """What the contract leaves to the peer's data: knots, or centre and scale of a factor."""
    moments: dict[Text, Packed]
    """By label, second moments of the private columns: the upper triangle, row by row."""
    hidden: dict[Text, Packed]
    """By label with rolled-up cells: products of the shared columns hidden there with the private ones, row by row,
    then the upper triangle of their products with each other."""
    scores: ScoreWords | None = None
    """In a part of scores, what stands in place of moments."""
    ledger: Hash | None
    """Head of the peer's ledger before this release; null where there is none (exact mode)."""
    hash: Hash
    """SHA-256 over all of this but the signature, and the table."""
    signature: Annotated[str, Field(max_length=200, pattern="^[A-Za-z0-9+/]+={0,2}$")] | None = None
    """The peer's signature over the hash, if it signed."""


def policy_words(release: Release[Any]) -> dict[str, Any]:
    """What the part says of the policy that a release passed by."""
    policy = release.policy
    noisy, rho = policy.mode == "noise", release.spend.rho
    epsilon = release.epsilon if noisy else math.inf
    return {
        "mode": policy.mode,
        "noise": policy.noise if noisy and policy.epsilon is None else None,
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "delta": policy.delta if noisy else None,
        "rho": rho if noisy else None,
        "min_rows": policy.min_rows,
        "bound": policy.bound if noisy else None,
        "row_bound": policy.row_bound if noisy else None,
        "unit": policy.unit,
        "rows_per_person": policy.rows_per_person,
        "guarantee": release.guarantee,
        "rolled_up": release.rolled_up,
    }


def parse(content: bytes) -> dict[str, Any]:
    """The JSON object in these bytes; raises `ValueError` for one no part can have, and for anything else."""
    if content.count(b",") + content.count(b"[") + content.count(b"{") > _NAMES:
        raise ValueError("far too many values")
    metadata = json.loads(content, object_pairs_hook=_once, parse_constant=_refuse)
    if not isinstance(metadata, dict):
        raise ValueError("not an object")
    return metadata


def check_fields(metadata: dict[str, Any]) -> str | None:
    """What is wrong with a field, if anything is."""
    try:
        checked = Metadata.model_validate(metadata)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(step)[:40] for step in first["loc"] if not isinstance(step, int))
        return f"its metadata has a '{ascii(place)[1:-1]}' that is invalid ({first['msg']})"
    if not len(checked.columns) == len(checked.centre) == len(checked.scale):
        return "its metadata does not have one centre and one scale per column"
    exact, levels = checked.policy.mode == "exact", checked.levels
    if exact == any((levels.rows, levels.sums, levels.hidden, levels.moments)):
        return "its metadata contradicts itself about the noise"
    if exact != (checked.policy.bound is None) or exact != (checked.policy.row_bound is None):
        return "its metadata contradicts itself about the bounds"
    if not exact and checked.ledger is None:
        return "no ledger stands for it"
    return None


def pack_by_label(private: Floats, hidden: Floats, columns: dict[str, Ints]) -> dict[str, dict[str, str]]:
    """The metadata's moments and hidden products; ``columns`` are by label the hidden shared columns."""
    width, out = private.shape[1], {}
    for index, (label, places) in enumerate(columns.items()):
        if len(places):
            inside = hidden[index][np.ix_(places, width + places)]
            out[label] = pack(np.concatenate([hidden[index][places, :width].ravel(), _upper(inside)]))
    return {"moments": {label: pack(_upper(private[index])) for index, label in enumerate(columns)}, "hidden": out}


def unpack_by_label(
    metadata: dict[str, Any], columns: dict[str, Ints], width: int, shared: int
) -> tuple[Floats, Floats]:
    """Back from `pack_by_label`; `ValueError` if there are more or fewer numbers, or one is not finite.

    Examples
    --------
    >>> private, hidden = np.eye(2)[None], np.zeros((1, 1, 3))
    >>> packed = pack_by_label(private, hidden, {"any": np.array([0])})
    >>> [matrix.shape for matrix in unpack_by_label(packed, {"any": np.array([0])}, 2, 1)]
    [(1, 2, 2), (1, 1, 3)]
    """
    if {*metadata["moments"]} != {*columns} or {*metadata["hidden"]} != {
        name for name in columns if len(columns[name])
    }:
        raise ValueError("other labels")
    private, hidden = np.empty((len(columns), width, width)), np.zeros((len(columns), shared, width + shared))
    for index, (label, places) in enumerate(columns.items()):
        private[index] = _symmetric(unpack(metadata["moments"][label], _size(width)), width)
        if count := len(places):
            numbers = unpack(metadata["hidden"][label], count * width + _size(count))
            hidden[index][places, :width] = numbers[: count * width].reshape(count, width)
            hidden[index][np.ix_(places, width + places)] = _symmetric(numbers[count * width :], count)
    return private, hidden


def unpack_private(metadata: dict[str, Any]) -> dict[str, Floats]:
    """By label, second moments of the private columns; `ValueError` as for `unpack_by_label`."""
    width = len(metadata["columns"])
    return {label: _symmetric(unpack(text, _size(width)), width) for label, text in metadata["moments"].items()}


def pack(numbers: Floats) -> str:
    """Numbers as base64 of little-endian doubles."""
    return base64.b64encode(numbers.astype("<f8").tobytes()).decode()


def unpack(text: str, count: int) -> Floats:
    """Back from `pack`; `ValueError` if there are more or fewer, or one is not finite."""
    out = unpack_all(text)
    if len(out) != count:
        raise ValueError(f"{len(out)} numbers, not {count}")
    return out


def unpack_all(text: str) -> Floats:
    """All there are; `ValueError` if one is not finite."""
    out = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64)
    if not (np.abs(out) <= LARGEST).all():
        raise ValueError("not finite, or far too large")
    return out


def _size(width: int) -> int:
    return width * (width + 1) // 2


def _upper(matrix: Floats) -> Floats:
    return matrix[np.triu_indices(len(matrix))]


def _symmetric(triangle: Floats, size: int) -> Floats:
    out = np.zeros((size, size))
    out[np.triu_indices(size)] = triangle
    return out + np.triu(out, 1).T


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a key is there twice")
    return out


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
