"""Gaussian noise in whole numbers, from a cryptographic source.

Sums are whole numbers on a grid, and so is their noise: ``round(sd * z)`` with z
standard normal. A whole number plus a rounded Gaussian is the rounding of the same
number plus a Gaussian, so this is the Gaussian mechanism with its result rounded,
and what is done to a result costs nothing: rho = sensitivity^2 / (2 sd^2). What
floating point adds to this is bounded by `precision_loss`.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from numpy.typing import NDArray
from scipy.special import ndtri

from radocraft.arrays import Floats

Words: TypeAlias = NDArray[np.uint64]

_SEED = 32
_CHUNK = 2**15
_LARGEST = 2.0**40
_SIGN = np.uint64(63)
_REST = np.uint64(2**63 - 1)
_SHORT = np.uint64(2**53)
_ERROR = 2.0**-49


class Noise:
    """A stream of Gaussian noise that nobody can predict or repeat.

    Parameters
    ----------
    seed
        32 bytes, for tests only; by default fresh ones of the operating system.
        Whoever has the seed can take the noise away: never store or send it.

    Notes
    -----
    ChaCha20 gives 64 bits a number: the sign, and 63 bits for the probability u of a
    value further out. Where these begin with ten zeros, 128 more bits from a second
    stream follow, so that u keeps its full relative precision 2^-52 down to 2^-139;
    then z = Phi^-1(1 - u), which reaches 13.5 standard deviations and beyond. Numbers
    do not depend on how a request is divided. A copy of the object, also in a forked
    process, would repeat its numbers, so it refuses to be copied or pickled; make a
    new one after a fork.

    Examples
    --------
    >>> Noise(bytes(32)).draw((2, 3), 100.0)
    array([[-153.,  100.,  125.],
           [ -59., -163.,   79.]])
    """

    def __init__(self, seed: bytes | None = None) -> None:
        seed = os.urandom(_SEED) if seed is None else seed
        if len(seed) != _SEED:
            raise ValueError(f"A seed has {_SEED} bytes, not {len(seed)}. Leave it out for fresh noise.")
        self._stream, self._tail = (_keystream(seed, number) for number in (0, 1))

    @classmethod
    def seeded(cls, *key: object) -> Noise:
        """Noise that can be repeated, for studies and tests; it protects nothing."""
        return cls(hashlib.sha256(repr(key).encode()).digest())

    def __reduce__(self) -> str:
        raise TypeError("Noise cannot be copied or pickled, because a copy would repeat it. Make a new Noise().")

    def draw(self, shape: int | tuple[int, ...], sd: float) -> Floats:
        """Draw independent whole numbers ``round(sd * z)``, as doubles.

        Parameters
        ----------
        shape
            The array's shape.
        sd
            Standard deviation in steps of the grid, at most 2^40; 0 gives zeros.
        """
        if not 0.0 <= sd <= _LARGEST:
            raise ValueError(f"Noise has a standard deviation from 0 to 2^40 grid steps, not {sd}. Use a coarser grid.")
        drawn = np.zeros(shape)
        flat = drawn.reshape(-1)
        for start in range(0, flat.size if sd else 0, _CHUNK):
            part = flat[start : start + _CHUNK]
            words = _words(self._stream, part.size)
            tails = _tails(words & _REST, lambda count: _words(self._tail, count))
            signs = 1.0 - 2.0 * (words >> _SIGN)
            np.rint(-sd * signs * ndtri(tails), out=part)
        drawn += 0.0  # no negative zeros
        return drawn


def precision_loss(numbers: int, sd: float) -> float:
    """Bound what floating point can add to epsilon in one release.

    Parameters
    ----------
    numbers
        How many of the released numbers one row (or person) can change; those that
        are the same with and without it cannot tell anything, however they are drawn.
    sd
        Their noise, in steps of what is published (the largest, where there are several).
        Publishing the noisy sum as a multiple of g steps, which is free, divides it by g.

    Notes
    -----
    If the ideal mechanism is (epsilon, delta) with mu = sqrt(2 rho) <= 4, then the
    computed one is (epsilon + loss, exp(loss) delta + 2^-64 + numbers 2^-68).

    The computed z differs from the z of an ideal real u by at most
    e(z) = 2^-49 (1.07 |z| + 0.16): 2^-52 relative in u, which is 0.16 2^-49 in z (Mills'
    ratio is at most 1.26), 2^-49 relative in `ndtri` (measured: below 2^-50 up to
    |z| = 13.5), 2^-53 in the product. It can matter only where z lies so close to an edge
    of a rounding interval. For an interval [a, b] with h = b - a = 1 / sd, the probability
    near its edges is at most phi(a) e(a) + phi(b) e(b), with

        phi(a) <= P(a, b) exp(h^2 / 2) (a + 1 / h),    phi(b) <= P(a, b) / h,

    so with sd >= 1 the logarithm of its probability is off by less than
    3 2^-49 (1 + |z|) (sd + |z|). Add this over all numbers, with the row and without it,
    where the same result is up to mu further out. Both times the norm of all z is at most
    R = sqrt(numbers) + 14, but for a probability of 2^-64 (a Gaussian norm exceeds
    sqrt(n) + t with probability at most exp(-t^2 / 2)). By Cauchy and Schwarz the sum is at most

        6 2^-49 (sqrt(numbers) + R) (sqrt(numbers) sd + R),

    about numbers * sd * 2^-45.4 when numbers are many. All this takes the
    keystream as random, as all cryptography does.

    Examples
    --------
    >>> f"{precision_loss(210, 5000.0):.0e}"
    '3e-08'
    >>> f"{precision_loss(20_000, 5e8):.1f} {precision_loss(20_000, 5e8 / 2**18):.0e}"
    '0.2 9e-07'
    """
    if numbers <= 0:
        return 0.0
    root = math.sqrt(numbers)
    norm = root + 14.0
    return 6.0 * _ERROR * (root + norm) * (root * max(sd, 1.0) + norm)


def _tails(heads: Words, more: Callable[[int], Words]) -> Floats:
    """Probabilities in (0, 1/2] from 63 bits each, and two more words for each that begins with ten zeros."""
    tails = heads.astype(np.float64) + 0.5
    short = np.flatnonzero(heads < _SHORT)
    if short.size:
        first, second = more(2 * short.size).astype(np.float64).reshape(-1, 2).T
        tails[short] = heads[short] + (first + (second + 0.5) * 2.0**-64) * 2.0**-64
    tails *= 2.0**-64
    return tails


def _keystream(seed: bytes, number: int) -> CipherContext:
    """One of several independent streams of a seed; a stream of 256 GB ends in an error, never in a repetition."""
    nonce = bytes(4) + number.to_bytes(12, "little")  # the first four bytes count blocks
    return Cipher(algorithms.ChaCha20(seed, nonce), mode=None).encryptor()


def _words(stream: CipherContext, count: int) -> Words:
    """The next 64-bit words of a stream, the same on every machine."""
    buffer = bytearray(8 * count)
    stream.update_into(bytes(8 * count), buffer)
    return np.frombuffer(buffer, "<u8").astype(np.uint64, copy=False)
