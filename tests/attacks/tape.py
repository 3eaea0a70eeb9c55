"""Noise on tape: two tables, one row apart, made to give the very same noisy numbers.

What leaves is to be a function of noisy numbers alone. So the gate is run on one table, and every number is
recorded as it is when its noise is on it. Then it is run on the other table, with whatever noise makes the
same numbers of that one. Now all that leaves must be the same, to the last bit: what differs is a side door.
And the noise that was put on must be worth what the release says it costs: with D the difference of the exact
numbers and s the deviation of their noise, the sum of D^2 / (2 s^2) is at most its rho.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from radocraft.gate._noise import Noise


@dataclass
class Tape:
    """Every number as it left, with its exact value and the deviation of its noise."""

    noisy: list[np.ndarray] = field(default_factory=list)
    exact: list[np.ndarray] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    spent: float = 0.0


class Recording(Noise):
    """Noise as it is, and what comes of it on the tape."""

    def __init__(self, tape: Tape, *key: object) -> None:
        super().__init__(Noise.seeded(*key)._stream.update(bytes(32)))
        self._tape = tape

    def draw(self, shape: Any, sd: float) -> Any:
        drawn = super().draw(shape, sd)
        if shape == 1:  # a total, of rows
            self._tape.totals.append(float(drawn[0]))
            return drawn
        return _Added(lambda exact: self._keep(exact, drawn))

    def _keep(self, exact: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        noisy = exact + drawn.astype(exact.dtype)
        self._tape.exact.append(exact.astype(np.float64))
        self._tape.noisy.append(noisy)
        return noisy


class Replaying(Noise):
    """Whatever noise makes the same numbers of another table, which has ``fewer`` rows less."""

    def __init__(self, tape: Tape, fewer: int = 1) -> None:
        super().__init__(bytes(32))
        self._tape, self._fewer, self._place, self._total = tape, fewer, 0, 0

    def draw(self, shape: Any, sd: float) -> Any:
        if shape == 1:
            self._total += 1
            self._tape.spent += 0.5 * (self._fewer / sd) ** 2
            return np.array([self._tape.totals[self._total - 1] + self._fewer])
        place, self._place = self._place, self._place + 1
        return _Added(lambda exact: self._same(place, exact, sd))

    def _same(self, place: int, exact: np.ndarray, sd: float) -> np.ndarray:
        apart = np.ravel(self._tape.exact[place] - exact)
        self._tape.spent += 0.5 * float(apart @ apart) / sd**2
        return self._tape.noisy[place].copy()


class _Added:
    """Stands for drawn noise until it is added to what it hides; it can be used for nothing else."""

    def __init__(self, add: Any) -> None:
        self._add = add

    def astype(self, kind: Any) -> _Added:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if ufunc is not np.add or method != "__call__" or named or inputs[1] is not self:
            raise TypeError("noise is there to be added to exact numbers")
        return self._add(inputs[0])
