"""Every place a row can have: the codes of its shared features and its label, as one whole number.

Engines group by one number faster than by several columns, and block sums can be
kept in one array. Where there are too many places for one number, there are
several numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import prod

import numpy as np
from sqlglot import exp

from radocraft.arrays import Ints
from radocraft.contract import moment_labels
from radocraft.rows._encoding import Reader
from radocraft.rows._expressions import whole

_MOST = 2**31 - 1


@dataclass(frozen=True)
class Grid:
    """Places by the codes of the shared features, then the label or none; one more is for rows with no reading."""

    reader: Reader

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many codes there are of each shared feature, and how many of the label, none included."""
        labels = max(*self.reader.label_codes(), self.unlabelled) - self._low + 1
        return (*(len(shared.codes) for shared in self.reader.contract.shared), labels)

    @property
    def size(self) -> int:
        """How many places there are."""
        return prod(self.shape) + 1

    @cached_property
    def unlabelled(self) -> int:
        """The code of rows without an agreed label: the lowest that no label has."""
        return next(code for code in count(self._low) if code not in self.reader.label_codes())

    @cached_property
    def _low(self) -> int:
        return min(self.reader.label_codes())

    @cached_property
    def _runs(self) -> list[slice]:
        """Which coordinates go into each number: as many as fit."""
        runs, start = [], 0
        for end in range(1, len(self.shape) + 1):
            if end == len(self.shape) or prod(self.shape[start : end + 1]) >= _MOST:
                runs.append(slice(start, end))
                start = end
        return runs

    @cached_property
    def misread(self) -> int:
        """The first number of rows with a cell that has no reading."""
        return prod(self.shape[self._runs[0]])

    def numbers(self) -> list[exp.Expr]:
        """A row's place, as engine expressions: one number, or several where one is too small."""
        coordinates = [self.reader.code(shared) for shared in self.reader.contract.shared]
        coordinates.append(self.reader.label(self.unlabelled, self._low))
        first, *rest = (_in_one(coordinates[run], self.shape[run]) for run in self._runs)
        if (misread := self.reader.misread()) is not None:
            first = exp.Case().when(misread, whole(self.misread)).else_(first)
        return [exp.cast(number, "INT") for number in (first, *rest)]

    def matrices(self) -> Ints:
        """For each coordinate of the label, the last of a place, the number of its matrix of moments."""
        known = [*moment_labels(self.reader.contract, self.reader.peer)]
        codes = [at + self._low for at in range(self.shape[-1])]
        kind = np.uint8 if len(known) < 256 else np.int64
        return np.array([known.index(code) if code in known else 0 for code in codes], dtype=kind).astype(kind)

    def blocks(self, numbers: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Codes and labels of some places."""
        each = zip(numbers, self._runs, strict=True)
        *codes, label = (code for number, run in each for code in np.unravel_index(number, self.shape[run]))
        width = len(self.shape) - 1
        return np.array(codes, dtype=np.int64).reshape(width, len(label)).T, label + self._low


def _in_one(coordinates: list[exp.Expr], sizes: tuple[int, ...]) -> exp.Expr:
    """Several coordinates as one number, which keeps their order."""
    number, *rest = coordinates
    for size, coordinate in zip(sizes[1:], rest, strict=True):
        number = exp.Add(this=exp.Mul(this=exp.paren(number), expression=whole(size)), expression=exp.paren(coordinate))
    return number
