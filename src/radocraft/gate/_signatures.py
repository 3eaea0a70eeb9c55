"""Noisy counts of rows for every agreed signature, whether or not it occurs.

Counting every agreed signature, also those that nobody has, hides which occur. Where
there are too many to list, the longest run of shared features that can be listed is
counted so; and of the signatures that occur those leave whose noisy count passes a
threshold, which one row, or one person, alone passes with probability ``delta`` at most.
The rest stay with what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from scipy.special import ndtri

from radocraft.arrays import Floats, Ints, number_rows
from radocraft.contract import Contract
from radocraft.errors import PolicyRefusal
from radocraft.gate._noise import Noise
from radocraft.sums import ROLLED, Tally

MOST = 2**22
"""How many agreed signatures, with label, are counted one by one."""


@dataclass(frozen=True)
class Signatures:
    """Agreed signatures with label, and where each block of a tally belongs among them.

    Parameters
    ----------
    codes, labels
        Of every signature; `ROLLED` where features are left out since there would be too many.
    place
        Of every block of the tally.
    open_set
        Whether features were left out.
    """

    codes: Ints
    labels: Ints
    place: Ints
    open_set: bool

    @classmethod
    def agreed(cls, tally: Tally, contract: Contract) -> Signatures:
        """All that the contract allows, by as many of the shared features as can be listed."""
        sizes, known = [len(shared.codes) for shared in contract.shared], sorted(contract.label_codes(tally.peer))
        depth = max(d for d in range(len(sizes) + 1) if d == 0 or prod(sizes[:d]) * len(known) <= MOST)
        shape = (*sizes[:depth], len(known))
        coordinates = np.array(np.unravel_index(np.arange(prod(shape)), shape), dtype=np.int64)
        codes = np.full((prod(shape), len(sizes)), ROLLED, dtype=np.int64)
        codes[:, :depth] = coordinates[:-1].T
        own = (*tally.codes[:, :depth].T, np.searchsorted(known, tally.labels))
        place = np.ravel_multi_index(own, shape).astype(np.int64)
        return cls(codes, np.array(known, dtype=np.int64)[coordinates[-1]], place, depth < len(sizes))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Counted:
    """Signatures with noisy counts, and where each block of the tally belongs."""

    codes: Ints
    labels: Ints
    place: Ints
    counts: Floats


def count_agreed(signatures: Signatures, tally: Tally, sd: float, noise: Noise) -> Counted:
    """Noisy counts of the agreed signatures."""
    exact = np.bincount(signatures.place, tally.rows, len(signatures))
    return Counted(signatures.codes, signatures.labels, signatures.place, exact + noise.draw(exact.shape, sd))


def count_open(
    signatures: Signatures, tally: Tally, sd: float, noise: Noise, *, per_unit: int, delta: float
) -> Counted:
    """The same, and whole signatures whose noisy count passes the threshold taken out of those they lie in."""
    coarse = count_agreed(signatures, tally, sd, noise)
    counts = tally.rows + noise.draw(tally.rows.shape, sd)
    kept = np.flatnonzero(counts > threshold(sd, per_unit, delta))
    order = kept[np.argsort(number_rows(np.column_stack([tally.codes, tally.labels])[kept]), kind="stable")]
    place = coarse.place.copy()
    place[order] = len(coarse.labels) + np.arange(len(order))
    taken = np.bincount(coarse.place[order], counts[order], len(coarse.labels))
    return Counted(
        np.vstack([coarse.codes, tally.codes[order]]),
        np.concatenate([coarse.labels, tally.labels[order]]),
        place,
        np.concatenate([coarse.counts - taken, counts[order]]),
    )


def threshold(sd: float, per_unit: int, delta: float) -> float:
    """A noisy count that signatures of one unit alone pass with probability ``delta`` at most.

    It may have filled as many signatures as it has rows.

    Examples
    --------
    >>> round(threshold(2.0, 1, 1e-6), 1)
    11.0
    """
    return per_unit + 0.5 + sd * float(-ndtri(delta / per_unit))


def count_labels(tally: Tally, contract: Contract, sd: float, noise: Noise) -> dict[int, float]:
    """Noisy numbers of rows by label."""
    known = sorted(contract.label_codes(tally.peer))
    exact = np.bincount(np.searchsorted(known, tally.labels), tally.rows, len(known))
    return dict(zip(known, (exact + noise.draw(exact.shape, sd)).tolist(), strict=True))


def check_labels(by_label: dict[int, float], contract: Contract, peer: str, least: float) -> None:
    """Every label must have some rows, as far as noise lets tell."""
    for code, name in sorted(contract.label_codes(peer).items()):
        if by_label[code] < least:
            raise PolicyRefusal(
                f"'{peer}' has too few rows of label '{name}', or none: they do not stand out of the noise. Check the "
                "spelling in [label] of the contract, or give more rows."
            )


def fitted(counted: Counted, by_label: dict[int, float], sd: float, sd_labels: float) -> Counted:
    """Counts of signatures moved, all of a label alike, to agree with the label's, as far as that is surer."""
    counts = counted.counts.copy()
    for code, total in by_label.items():
        own = counted.labels == code
        variance = float(own.sum()) * sd**2
        counts[own] += (total - counts[own].sum()) * variance / (variance + sd_labels**2) / own.sum()
    return replace(counted, counts=counts)
