"""What a part of scores contains beyond a part of columns, and what must be true of it.

Its table has the sums ``sum:NAME`` and ``sum:NAME~spread``, and its metadata a field
``scores`` in place of moments: a histogram of residuals, one of scores, and sums by group
of the key for each label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, number_rows
from radocraft.contract import ANY, Contract
from radocraft.errors import ContractMismatch
from radocraft.parts._check import broken, check_keys
from radocraft.parts._metadata import pack, unpack, unpack_all
from radocraft.parts._sign import check_signature
from radocraft.parts._table import codes_of, labels_of, matrix_of
from radocraft.sums import BINS, CLIP_GROUP, CLIP_SPREAD, CLIP_SUM, ScoreCells, ScoreLevels, count_groups

_SDS = 6.0
_CLOSE = 1e-9


@dataclass(frozen=True)
class ScoreTables:
    """What a part of scores holds beside its cells, by label.

    Parameters
    ----------
    counts
        Rows of every agreed signature, in the contract's order.
    histogram
        Rows by bin of residuals.
    margins
        Rows by bin of scores.
    groups
        Sums of residuals by group of the key; none without a key.
    """

    counts: dict[str, list[float]]
    histogram: dict[str, list[float]]
    margins: dict[str, list[float]]
    groups: dict[str, list[float]]

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> ScoreTables:
        """As they stand in the file, whatever the contract is."""
        given = metadata["scores"]
        counts = {label: unpack_all(text).tolist() for label, text in given["counts"].items()}
        return cls(counts, given["histogram"], given["margins"], given["groups"])


def score_columns(name: str) -> list[str]:
    """The two columns that are summed of a score.

    Examples
    --------
    >>> score_columns("risk")
    ['risk', 'risk~spread']
    """
    return [name, f"{name}~spread"]


def tabulate_scores(cells: ScoreCells, contract: Contract) -> pa.Table:
    """The table of a peer's scores: one row per cell."""
    columns: dict[str, pa.Array] = {}
    for at, shared in enumerate(contract.shared):
        words = pa.array([*shared.codes, ANY])
        columns[f"shared:{shared.name}"] = words.take(pa.array(cells.codes[:, at] % len(words))).dictionary_encode()
    names = contract.label_codes(cells.peer)
    columns["label"] = pa.array([names[code] for code in cells.labels.tolist()], pa.string()).dictionary_encode()
    columns["rows"] = pa.array(cells.rows.astype(np.int64))
    for name, values in zip(score_columns(contract.score_of(cells.peer)[0]), (cells.sums, cells.spreads), strict=True):
        columns[f"sum:{name}"] = pa.array(values)
    return pa.table(columns)


def describe_scores(cells: ScoreCells, contract: Contract) -> dict[str, Any]:
    """The metadata's field ``scores``."""
    names, levels = [*dict(sorted(contract.label_codes(cells.peer).items())).values()], cells.levels
    return {
        "counts": {name: pack(rows) for name, rows in zip(names, cells.counts, strict=True)},
        "histogram": dict(zip(names, cells.histogram.tolist(), strict=True)),
        "margins": dict(zip(names, cells.margins.tolist(), strict=True)),
        "groups": {name: sums.tolist() for name, sums in zip(names, cells.groups, strict=True)},
        "levels": {
            "spreads": levels.spreads,
            "bins": levels.bins,
            "groups": dict(zip(names, levels.groups, strict=True)),
            "margins": dict(zip(names, levels.margins, strict=True)),
        },
    }


def read_scores(table: pa.Table, metadata: dict[str, Any], contract: Contract) -> ScoreCells:
    """The numbers of a part of scores, checked and read under its contract."""
    peer = metadata["peer"]
    if metadata["fingerprint"] != contract.fingerprint:
        raise ContractMismatch(
            f"The part of '{peer}' was made under another contract than this one. Have the peer craft it anew."
        )
    if peer not in contract.peers:
        raise ContractMismatch(f"The contract has no peer '{peer}'. Its peers are: {', '.join(contract.peers)}.")
    if (public := contract.peers[peer].public_key) is not None:
        check_signature(metadata["hash"], metadata.get("signature"), public, peer)
    name, _ = contract.score_of(peer)
    wanted = {"label", "rows", *(f"sum:{column}" for column in score_columns(name))}
    if metadata["columns"] != score_columns(name):
        raise broken(peer, "its score is not the contract's")
    if {*table.column_names} != wanted | {f"shared:{shared.name}" for shared in contract.shared}:
        raise broken(peer, "its table has other columns than the contract's")
    codes, labels = codes_of(table, contract, peer), labels_of(table, contract, peer)
    check_keys(codes, labels, contract, peer)
    names = dict(sorted(contract.label_codes(peer).items()))
    if {*labels.tolist()} != {*names}:
        raise broken(peer, "it lacks a label's cells")
    given = metadata["scores"]
    by_label = [given[field] for field in ("counts", "histogram", "margins", "groups")]
    levels_by_label = [given["levels"][field] for field in ("groups", "margins")]
    if any({*numbers} != {*names.values()} for numbers in (*by_label, *levels_by_label)):
        raise broken(peer, "it does not have counts, histograms and groups for each label")
    sums, spreads = matrix_of(table, [f"sum:{column}" for column in score_columns(name)]).T
    levels = metadata["levels"]
    cells = ScoreCells(
        peer,
        codes,
        labels,
        table.column("rows").to_numpy().astype(np.float64),
        sums,
        spreads,
        _counts(given["counts"], names, contract, peer),
        np.array([given["histogram"][label] for label in names.values()], dtype=np.float64),
        np.array([given["margins"][label] for label in names.values()], dtype=np.float64),
        tuple(np.array(given["groups"][label], dtype=np.float64) for label in names.values()),
        ScoreLevels(
            float(levels["rows"]),
            float(levels["sums"]),
            float(given["levels"]["spreads"]),
            float(given["levels"]["bins"]),
            tuple(float(given["levels"]["groups"][label]) for label in names.values()),
            tuple(float(given["levels"]["margins"][label]) for label in names.values()),
        ),
    )
    _check_groups(cells, contract)
    check_scores(cells)
    return cells


def _counts(given: dict[str, str], names: dict[int, str], contract: Contract, peer: str) -> Floats:
    """Rows of every agreed signature, by label."""
    size = math.prod(len(shared.codes) for shared in contract.shared)
    try:
        return np.array([unpack(given[label], size) for label in names.values()])
    except ValueError as error:
        raise broken(peer, f"its counts are not those of the agreed signatures ({error})") from error


def look_at_scores(table: pa.Table, metadata: dict[str, Any]) -> None:
    """What can be checked without the contract."""
    peer, names = metadata["peer"], metadata["columns"]
    if len(names) != 2 or names != score_columns(names[0]) or metadata["moments"] or metadata["hidden"]:
        raise broken(peer, "it is neither of columns nor of scores")
    if missing := sorted({"label", "rows", *(f"sum:{name}" for name in names)} - {*table.column_names}):
        raise broken(peer, f"its table has no column '{missing[0]}'")
    try:
        ScoreTables.of(metadata)
    except ValueError as error:
        raise broken(peer, f"its counts cannot be read ({error})") from error
    rows = table.column("rows").to_numpy().astype(np.float64)
    sums, spreads = matrix_of(table, [f"sum:{name}" for name in names]).T
    levels = metadata["levels"]
    spread = metadata["scores"]["levels"]["spreads"]
    _check_sums(peer, _most(rows, levels["rows"]), (sums, spreads), (levels["sums"], spread))


def check_scores(cells: ScoreCells) -> None:
    """Sums, histograms and groups must be such as some rows have, as far as noise lets tell."""
    levels, peer = cells.levels, cells.peer
    if number_rows(np.column_stack([cells.codes, cells.labels])).max() + 1 < len(cells.rows):
        raise broken(peer, "a cell is there twice")
    most = _most(cells.rows, levels.rows)
    _check_sums(peer, most, (cells.sums, cells.spreads), (levels.sums, levels.spreads))
    for label in (0, 1):
        own = cells.which == label
        rows = float(cells.rows[own].sum())
        room = _SDS * (levels.bins * BINS**0.5 + levels.rows * _breadth(cells.rows)) + len(cells.rows)
        tables = (
            ("residuals", cells.histogram[label], levels.bins),
            ("scores", cells.margins[label], levels.margins[label]),
        )
        for name, counted, noise in tables:
            most = room + _SDS * noise * BINS**0.5 + _CLOSE * rows
            if abs(float(counted.sum()) - rows) > most or (counted < -_SDS * noise - _CLOSE).any():
                raise broken(peer, f"its histogram of {name} does not fit its rows")
        signatures = cells.counts[label]
        if abs(float(signatures.sum()) - rows) > _SDS * levels.rows * len(signatures) ** 0.5 + room + _CLOSE * rows:
            raise broken(peer, "its counts of signatures do not fit its rows")
        sums = np.abs(cells.groups[label])
        if float(sums.sum()) > CLIP_GROUP * rows + room + _SDS * levels.groups[label] * max(len(sums), 1):
            raise broken(peer, "its sums by group are larger than its rows can have")


def _breadth(rows: Floats) -> float:
    """Root of how many noisy counts a cell's rows may be the sum of: not stated, so as many as cells, or 16."""
    return math.sqrt(max(len(rows), 16))


def _most(rows: Floats, noise: float) -> Floats:
    """How many rows cells may have in truth."""
    return np.asarray((rows + _SDS * noise * _breadth(rows)) * (1 + _CLOSE))


def _check_sums(peer: str, most: Floats, sums: tuple[Floats, Floats], noise: tuple[float, float]) -> None:
    scores, spreads = sums
    if (np.abs(scores) > CLIP_SUM * most + _SDS * noise[0]).any():
        raise broken(peer, "a sum of scores is larger than so many rows can have")
    if (spreads < -_SDS * noise[1]).any() or (spreads > CLIP_SPREAD * most + _SDS * noise[1]).any():
        raise broken(peer, "the variance of its scores is negative or impossibly large")


def _check_groups(cells: ScoreCells, contract: Contract) -> None:
    """As many groups as the rows of a label allow, and none without a key."""
    for label, sums in enumerate(cells.groups):
        if not len(sums):
            continue
        if contract.key is None:
            raise broken(cells.peer, "it has groups, and the contract has no key")
        most = float(cells.rows[cells.which == label].sum()) * 2.0 + _SDS * cells.levels.rows * _breadth(cells.rows)
        if len(sums) != contract.key.values and len(sums) & (len(sums) - 1):
            raise broken(cells.peer, "its groups are not those of the contract's key")
        if len(sums) > max(count_groups(most, contract.key.values), 1) or not np.isfinite(cells.levels.groups[label]):
            raise broken(cells.peer, "it has more groups than its rows allow")
