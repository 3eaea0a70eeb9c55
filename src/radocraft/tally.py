"""The tally: a peer's exact block sums and moments. It never leaves the peer.

Tallies add up: the tally of a table is the sum of the tallies of its pieces,
so a peer crafts new rows onto yesterday's tally, and a cluster in pieces.

Per block (signature and label) it holds the number of rows, and per private
column the sum of its values and how many were present. Over the whole table it
holds the moments of (values, present, usual): with ``v`` the values, 0 where
missing, ``e`` the indicators of presence, and ``u`` those of the usual value, for
the columns that have one (see `usual`), the matrix sum over rows of
``(v, e, u) (v, e, u)^T``. Of such a column it knows, per block, how many rows have
another value; the moments say in how many rows two columns have. The moments of
the shared features need no room of their own: a shared feature is constant in a
block, so block sums give them exactly.

Values are kept as ``(x - origin) / unit``. For columns whose centre and scale
come from the data the origin is a guess from a sample, which only keeps large
numbers from cancelling; `Tally.rebased` moves it without touching a row.

The file is one NumPy archive with a JSON header, written whole or not at all.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, Numbers, add_up, first_of_each, number_rows
from radocraft.contract import Contract
from radocraft.encoding import Constants
from radocraft.errors import ContractMismatch, FileError
from radocraft.moments import beside_usual, second_moments
from radocraft.pieces import Piece, check_new
from radocraft.storage import writing
from radocraft.usual import next_values, other_than, usual_values

_VERSION = 3
_ALIKE = 1e-9
_BLOCKS = ("codes", "labels", "rows", "sums", "present", "others")
_ARRAYS = (*_BLOCKS, "moments", "origin", "unit", "usual", "next", "next_rows")


@dataclass(frozen=True)
class Tally:
    """Exact sums by block and moments of one peer's table.

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
    others
        Per block and column: number of present values that are not the usual one.
    moments
        Over the table: second moments of (values, present, usual), the last of columns with a usual value alone.
    origin, unit
        A value is kept as (x - origin) / unit.
    usual
        Per column the value x that most rows have, NaN if there is none.
    next, next_rows
        Per column of two or three values the next value, NaN for other columns, and how many rows have it.
    constants
        What the contract leaves to the peer's data; see `settle`.
    pieces
        The files, tables or ranges of rows that are in; see `pieces`.
    """

    fingerprint: str
    peer: str
    columns: tuple[str, ...]
    codes: Ints
    labels: Ints
    rows: Ints
    sums: Floats
    present: Ints
    others: Ints
    moments: Floats
    origin: Floats
    unit: Floats
    usual: Floats
    next: Floats
    next_rows: Ints
    constants: Constants = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()

    @classmethod
    def of_rows(
        cls, contract: Contract, peer: str, columns: tuple[str, ...], *, codes: Ints, labels: Ints, values: Floats
    ) -> Tally:
        """The tally of coded rows in memory: per row its codes, its label and its raw values, NaN where missing."""
        present = ~np.isnan(values)
        origin: Floats = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        shifted, usual = values - origin, usual_values(values)
        indicators = (values == usual)[:, ~np.isnan(usual)]
        keys = np.column_stack([codes, labels])
        block = number_rows(keys)
        first = first_of_each(block)
        return cls(
            fingerprint=contract.fingerprint,
            peer=peer,
            columns=columns,
            codes=codes[first],
            labels=labels[first],
            rows=np.bincount(block).astype(np.int64),
            sums=add_up(np.where(present, shifted, 0.0), block, len(first)),
            present=add_up(present.astype(np.int64), block, len(first)),
            others=add_up(other_than(values, usual).astype(np.int64), block, len(first)),
            moments=beside_usual(second_moments(np.hstack([shifted, indicators])), len(columns)),
            origin=origin,
            unit=np.ones(len(columns)),
            usual=usual,
            next=(following := next_values(values, usual)),
            next_rows=(values == following).sum(axis=0),
        )

    @property
    def total(self) -> int:
        """Rows in all."""
        return int(self.rows.sum())

    @property
    def lines(self) -> Ints:
        """Per column the line of the moments where the indicator of its usual value stands, -1 if it has none."""
        counted = ~np.isnan(self.usual)
        out: Ints = np.where(counted, 2 * len(self.columns) + np.cumsum(counted) - 1, -1)
        return out

    @property
    def second(self) -> Floats:
        """Per column the value that all rows have which do not have the usual one; NaN if they differ."""
        return self._alike(self.usual, np.zeros(len(self.columns)), self.others.sum(axis=0))

    @property
    def third(self) -> Floats:
        """Per column the value that all rows have which have neither the usual one nor the next; NaN if they differ."""
        return self._alike(self.next, self.next_rows, self.others.sum(axis=0) - self.next_rows)

    def _alike(self, value: Floats, rows: Floats | Ints, rest: Ints) -> Floats:
        """What the rest have beside rows with the usual value and some with this one; NaN if they differ.

        With z the rest's distance to the value, (sum z)^2 = rest * sum z^2 exactly if all are equal.
        """
        width, base, step = len(self.columns), *((at - self.origin) / self.unit for at in (self.usual, value))
        squares, both, present = (np.diag(self.moments[lines, others]) for lines, others in _corners(width))
        known = self.present.sum(axis=0) - rows - rest
        first = self.sums.sum(axis=0) - known * base - (rows + rest) * step
        square = squares - 2.0 * step * both + step**2 * present - known * (base - step) ** 2
        alike = (rest > 0) & (np.abs(first**2 - rest * square) <= _ALIKE * rest * square)
        return np.where(alike, value + self.unit * first / np.maximum(rest, 1), np.nan)

    def counted_from(self, usual: Floats) -> Tally:
        """The same tally with other usual values; where they cannot be told from the rest, without."""
        same = (self.usual == usual) | (np.isnan(self.usual) & np.isnan(usual))
        turned = ~same & (np.abs(self.second - usual) <= _ALIKE * np.abs(self.usual - usual))
        never = ~same & (self.others.sum(axis=0) == 0)  # all rows have what was usual so far
        others = np.where(turned, self.present - self.others, np.where(same, self.others, self.present))
        usual, kept = np.where(same | turned | never, usual, np.nan), same.astype(np.float64) - turned
        tally = self.recounted(usual, others, (np.zeros_like(kept), turned.astype(np.float64), kept))
        after = np.where(np.isnan(usual), np.nan, np.where(same, self.next, self.usual))
        rows = np.where(same, self.next_rows, others.sum(axis=0))
        return replace(tally, next=after, next_rows=np.where(np.isnan(after), 0, rows))

    def next_from(self, value: Floats) -> Tally:
        """The same tally with other next values; where they cannot be told from the rest, without."""
        others, third = self.others.sum(axis=0), self.third
        rest = others - self.next_rows
        last = np.abs(third - value) <= _ALIKE * np.abs(self.next - value)
        told = (others == 0) | (self.next == value) | (~np.isnan(self.next) & ((rest == 0) | ~np.isnan(third)))
        rows = np.where(self.next == value, self.next_rows, np.where(last, rest, 0))
        return replace(self, next=np.where(told, value, np.nan), next_rows=np.where(told, rows, 0))

    def recounted(self, usual: Floats, others: Ints, by: tuple[Floats, Floats, Floats]) -> Tally:
        """The same tally with other usual values; their indicators are a v + b e + c u, where ``by`` is (a, b, c)."""
        width, counted, lines = len(self.columns), np.flatnonzero(~np.isnan(usual)), self.lines
        change = np.zeros((len(counted), len(self.moments)))
        for line, at in zip(change, counted, strict=True):
            line[[at, width + at]] = by[0][at], by[1][at]
            if lines[at] >= 0:
                line[lines[at]] = by[2][at]
        new = csr_array(np.vstack([np.eye(2 * width, len(self.moments)), change]))
        return replace(self, usual=usual, others=others, moments=new @ self.moments @ new.T)

    def rebased(self, origin: Floats, unit: Floats) -> Tally:
        """The same tally with values kept as (x - origin) / unit."""
        stretch, shift = self.unit / unit, (self.origin - origin) / unit
        change, width = np.eye(len(self.moments)), len(shift)
        change[:width, : 2 * width] = np.hstack([np.diag(stretch), np.diag(shift)])
        return replace(
            self,
            sums=self.sums * stretch + self.present * shift,
            moments=change @ self.moments @ change.T,
            origin=origin,
            unit=unit,
        )

    def __add__(self, other: Tally) -> Tally:
        if self.fingerprint != other.fingerprint:
            raise ContractMismatch("The two tallies were crafted under different contracts; craft both anew under one.")
        if self.peer != other.peer:
            raise ContractMismatch(f"The tallies are of two peers, '{self.peer}' and '{other.peer}'; they do not add.")
        if self.constants != other.constants:
            raise ContractMismatch("The two tallies took knots or units from different data; craft one onto the other.")
        check_new(self.pieces, other.pieces)
        other = other.rebased(self.origin, self.unit)
        agreed = other.counted_from(self.usual).usual
        agreed = np.where(np.isnan(agreed), self.counted_from(other.usual).usual, agreed)
        mine, other = self.counted_from(agreed), other.counted_from(agreed)
        after = other.next_from(mine.next).next
        after = np.where(np.isnan(after), mine.next_from(other.next).next, after)
        mine, other = mine.next_from(after), other.next_from(after)
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
            others=pooled(mine.others, other.others),
            usual=other.usual,
            next=after,
            next_rows=mine.next_rows + other.next_rows,
            moments=mine.moments + other.moments,
            pieces=self.pieces + other.pieces,
        )

    def save(self, path: str | Path) -> None:
        """Write the tally to a file of the peer's own."""
        header = {"version": _VERSION, "fingerprint": self.fingerprint, "peer": self.peer, "columns": self.columns}
        header |= {"constants": self.constants, "pieces": [piece.to_json() for piece in self.pieces]}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with writing(path, private=True) as file:
            np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)

    @classmethod
    def load(cls, path: str | Path, contract: Contract) -> Tally:
        """Read a tally back; it must belong to ``contract``."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                header = json.loads(str(archive["header"]))
                arrays = {name: archive[name] for name in _ARRAYS}
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            raise FileError(f"Cannot read the tally '{path}': {error.strerror}. Check the path.") from error
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise FileError(
                f"'{path}' is not a readable tally: it is cut short or something else. Craft it anew."
            ) from error
        if header["version"] != _VERSION:
            raise FileError(f"'{path}' is a tally of format {header['version']}; this version reads {_VERSION}.")
        if header["fingerprint"] != contract.fingerprint:
            raise ContractMismatch(
                f"'{path}' was crafted under another contract ({header['fingerprint'][:12]}) than this one "
                f"({contract.fingerprint[:12]}). Craft the whole table anew."
            )
        constants = {name: tuple(values) for name, values in header["constants"].items()}
        pieces = tuple(Piece.from_json(kept) for kept in header["pieces"])
        columns = tuple(header["columns"])
        return cls(header["fingerprint"], header["peer"], columns, **arrays, constants=constants, pieces=pieces)


def _corners(width: int) -> tuple[tuple[slice, slice], ...]:
    """Where the moments of values, of values with presence, and of presence stand."""
    value, presence = slice(0, width), slice(width, 2 * width)
    return (value, value), (value, presence), (presence, presence)
