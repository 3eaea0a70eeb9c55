"""The tally: a peer's sums by block and second moments by label. It never leaves the peer.

Tallies add up: the tally of a table is the sum of the tallies of its pieces,
so a peer crafts new rows onto yesterday's tally, and a cluster in pieces.

Per block (signature and label) it holds the number of rows, and per private
column the sum of its values and how many were present. For every label it holds
the moments of (values, present): with ``v`` the values, 0 where missing, and
``e`` the indicators of presence, the sum over its rows of ``(v, e) (v, e)^T``.
The moments of the shared features need no room of their own: a shared feature
is constant in a block, so block sums give them exactly.

Values are kept as ``(x - origin) / unit``. In a tally of bounded rows, the usual
one, they are whole numbers, ``origin`` is the column's centre and ``unit`` its scale
in steps of the grid (`bounds`); a missing value counts as the centre, so all are
present. In an exact one, for columns whose centre and scale come from the data,
the origin is a guess from a sample, which only keeps large numbers from
cancelling; `Tally.rebased` moves it without touching a row.

The file is one NumPy archive with a JSON header and the hash of all it holds, written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from radocraft.arrays import Floats, Ints, Numbers, add_up, first_of_each, number_rows
from radocraft.contract import Constants, Contract
from radocraft.errors import ContractMismatch, FileError, Tampered
from radocraft.files import writing
from radocraft.sums._bounds import Bounds
from radocraft.sums._pieces import Piece

_VERSION = 5
_BLOCKS = ("codes", "labels", "rows", "sums", "present")
_ARRAYS = (*_BLOCKS, "moments", "origin", "unit")


@dataclass(frozen=True)
class Tally:
    """Sums by block and moments by label of one peer's table.

    Parameters
    ----------
    fingerprint, peer
        The contract it was made under, and whose it is.
    columns
        Names of the private columns.
    codes, labels, rows
        Per block: the code of each shared feature, the label's code, number of rows.
    sums, present
        Per block and column: sum of the values, number of values present.
    moments
        Per label, in the order of `encoding.moment_labels`: second moments of (values, present).
    origin, unit
        A value is kept as (x - origin) / unit.
    bounds
        How much of a row was summed; None for exact sums.
    constants
        What the contract leaves to the peer's data; see `Constants`.
    units_rho
        The rho that was spent on these constants; 0 where they were given, or are exact.
    pieces
        The files, tables or ranges of rows that are in; see `pieces`.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> tally = rc.craft(tables["bank"], contract, "bank")
    >>> tally.total, tally.columns[:2]
    (2000, ('balance', 'has_mortgage'))
    """

    fingerprint: str
    peer: str
    columns: tuple[str, ...]
    codes: Ints
    labels: Ints
    rows: Ints
    sums: Floats
    present: Ints
    moments: Floats
    origin: Floats
    unit: Floats
    bounds: Bounds | None = None
    constants: Constants = field(default_factory=dict)
    units_rho: float = 0.0
    pieces: tuple[Piece, ...] = ()

    @property
    def total(self) -> int:
        """Rows in all."""
        return int(self.rows.sum())

    def rebased(self, origin: Floats, unit: Floats) -> Tally:
        """The same tally with values kept as (x - origin) / unit."""
        stretch, shift = self.unit / unit, (self.origin - origin) / unit
        change, width = np.eye(2 * len(shift)), len(shift)
        change[:width] = np.hstack([np.diag(stretch), np.diag(shift)])
        return replace(
            self,
            sums=self.sums * stretch + self.present * shift,
            moments=change @ self.moments @ change.T,
            origin=origin,
            unit=unit,
        )

    def __add__(self, other: Tally) -> Tally:
        self._check_alike(other)
        Piece.check_new(self.pieces, other.pieces)
        other = other if self.bounds else other.rebased(self.origin, self.unit)
        keys = np.vstack([np.column_stack([t.codes, t.labels]) for t in (self, other)])
        block = number_rows(keys)
        first = first_of_each(block)

        def pooled(mine: Numbers, theirs: Numbers) -> Numbers:
            return add_up(np.concatenate([mine, theirs]), block, len(first))

        return replace(
            self,
            codes=keys[first, :-1],
            labels=keys[first, -1],
            rows=pooled(self.rows, other.rows),
            sums=pooled(self.sums, other.sums),
            present=pooled(self.present, other.present),
            moments=self.moments + other.moments,
            units_rho=self.units_rho + other.units_rho,
            pieces=self.pieces + other.pieces,
        )

    def _check_alike(self, other: Tally) -> None:
        if self.fingerprint != other.fingerprint:
            raise ContractMismatch(
                "The two tallies were crafted under different contracts; craft both again under the same contract."
            )
        if self.peer != other.peer:
            raise ContractMismatch(
                f"The tallies are of two peers, '{self.peer}' and '{other.peer}'; they cannot be added."
            )
        if self.bounds != other.bounds:
            raise ContractMismatch(
                "The two tallies have different bounds on rows; craft both again with the same bounds."
            )
        if self.bounds is not None:
            self.bounds.check_adding()
        moved = not (np.array_equal(self.origin, other.origin) and np.array_equal(self.unit, other.unit))
        if self.constants != other.constants or (self.bounds and moved):
            raise ContractMismatch("The two tallies took knots or units from different data; craft one onto the other.")

    def digest(self) -> str:
        """SHA-256 over all that a release is made of, whatever order the blocks are in.

        Of bounded rows it is the same on every engine.
        """
        head = [self.fingerprint, self.peer, self.columns, self.bounds and self.bounds.to_json(), self.constants]
        out = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
        order = np.lexsort([self.labels, *self.codes.T[::-1]])
        blocks = [getattr(self, name)[order] for name in _BLOCKS if name != "present" or self.bounds is None]
        for array in (*blocks, self.moments, self.origin, self.unit):
            kind = "<f8" if array.dtype.kind == "f" else "<i8"
            out.update(f"{kind} {array.shape}".encode())
            out.update((np.ascontiguousarray(array, dtype=kind) + 0).tobytes())  # which makes 0 of -0
        return out.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the tally to a file of the peer's own."""
        header = {"version": _VERSION, "fingerprint": self.fingerprint, "peer": self.peer, "columns": self.columns}
        header |= {"bounds": self.bounds and self.bounds.to_json(), "units_rho": self.units_rho}
        header |= {"constants": self.constants, "pieces": [piece.to_json() for piece in self.pieces]}
        text, arrays = json.dumps(header), {name: getattr(self, name) for name in _ARRAYS}
        with writing(path, private=True) as file:
            np.savez_compressed(file, header=np.array(text), sha256=np.array(_hash(text, arrays)), **arrays)

    @classmethod
    def load(cls, path: str | Path, contract: Contract) -> Tally:
        """Read a tally back; it must belong to ``contract``."""
        header, arrays = _read(path)
        if header["version"] != _VERSION:
            raise FileError(
                f"'{path}' is a tally of format {header['version']}; this version reads {_VERSION}. "
                "Craft the whole table anew."
            )
        if header["fingerprint"] != contract.fingerprint:
            raise ContractMismatch(
                f"'{path}' was crafted under another contract ({header['fingerprint'][:12]}) than this one "
                f"({contract.fingerprint[:12]}). Craft the whole table anew."
            )
        return cls(
            header["fingerprint"],
            header["peer"],
            tuple(header["columns"]),
            **arrays,
            bounds=Bounds(**header["bounds"]) if header["bounds"] else None,
            constants={name: tuple(values) for name, values in header["constants"].items()},
            units_rho=header["units_rho"],
            pieces=tuple(Piece.from_json(kept) for kept in header["pieces"]),
        )


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tally file's header and arrays, as they were written."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            text, arrays = str(archive["header"]), {name: archive[name] for name in _ARRAYS}
            whole = str(archive["sha256"]) == _hash(text, arrays)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise FileError(f"Cannot read the tally '{path}': {error.strerror}. Check the path.") from error
    except Exception as error:  # NumPy reads headers with Python's own parser, and raises all that one can
        raise FileError(
            f"'{path}' is not a readable tally: it is truncated, or another kind of file. Craft it again."
        ) from error
    if not whole:
        raise Tampered(f"The content of '{path}' does not match its hash: it was changed or damaged. Craft it anew.")
    return json.loads(text), arrays


def _hash(header: str, arrays: dict[str, Any]) -> str:
    """SHA-256 over all that the file holds."""
    out = hashlib.sha256(header.encode())
    for name, array in arrays.items():
        out.update(f"{name} {array.dtype.str} {array.shape}".encode())
        out.update(np.ascontiguousarray(array).data)
    return out.hexdigest()
