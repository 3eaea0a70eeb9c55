"""The paper's DRL straight from the peers' tables: block rados as sums over rows, exact and without a gate.

It is what the product does with exact sums of whole blocks, and much quicker for
the tens of thousands of cells that the paper's ranges come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, Truths, number_rows
from radocraft.demo import PeerTable, Scaling, in_units, units_of
from radocraft.learning import RadoChoices, Rados, choose_gamma

_FOLDS = 10

Encode = Callable[[Ints], Floats]


@dataclass(frozen=True)
class StandardCodes:
    """Ordinal codes as numbers of mean 0 and deviation 1 over the training rows; 0 where the value is missing."""

    missing: Ints
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, codes: Ints, missing: Ints) -> StandardCodes:
        """From the codes of the training rows, and the code that each feature has where it is missing.

        Examples
        --------
        >>> encode = StandardCodes.of(np.array([[0], [2], [3]]), np.array([3]))
        >>> encode(np.array([[0], [1], [3]])).ravel().tolist()
        [-1.0, 0.0, 0.0]
        """
        values = np.where(codes == missing, np.nan, codes)
        centre, scale = units_of(values, "standard")
        return cls(missing, centre, scale)

    def __call__(self, codes: Ints) -> Floats:
        """The codes of some rows as numbers."""
        return in_units(np.where(codes == self.missing, np.nan, codes), self.centre, self.scale)


@dataclass(frozen=True)
class BlockRados:
    """All block rados, one per column, which of their coordinates are private, and how many rows they stand for."""

    matrix: Floats
    private: Truths
    rows: float

    def folds(self, seed: int) -> list[Rados]:
        """In at most ten random parts of about one size."""
        order = np.random.default_rng(seed).permutation(self.matrix.shape[1])
        return [Rados.of(self.matrix[:, part]) for part in np.array_split(order, min(_FOLDS, len(order)))]

    def fit(self, choices: RadoChoices, seed: int) -> dict[str, Floats]:
        """Theta with Gamma tuned, and with Gamma the identity, under the names the study has for them."""
        folds = self.folds(seed)
        whole = sum(folds[1:], folds[0])
        tuned, _ = choose_gamma(folds, self.private, self.rows, "tuned", choices)
        identity, _ = choose_gamma(folds, self.private, self.rows, "identity", choices)
        return {"drl": whole.minimiser(tuned), "drl-identity": whole.minimiser(identity)}


def craft_rados(tables: Sequence[PeerTable], encode: Encode, *, scaling: Scaling, intercept: bool) -> BlockRados:
    """The paper's equation 3: u_b lift(y_b s_b) + sum_j lift(y_b S_jb) for every block b that some peer has rows in.

    Examples
    --------
    >>> one = PeerTable("a", ("x",), np.array([[0], [0]]), np.array([-1, -1]), np.array([[1.0], [2.0]]))
    >>> two = PeerTable("b", ("z",), np.array([[0], [0]]), np.array([-1, -1]), np.array([[5.0], [7.0]]))
    >>> encode = lambda codes: codes + 0.5
    >>> craft_rados([one, two], encode, scaling="none", intercept=False).matrix.ravel().tolist()
    [-1.0, -3.0, -12.0]
    """
    keys = np.vstack([np.column_stack([table.codes, table.labels]) for table in tables])
    numbers = number_rows(keys)
    first = np.unique(numbers, return_index=True)[1]
    blocks = np.split(numbers, np.cumsum([len(table) for table in tables])[:-1])
    gathers = [_gather(block, len(first)) for block in blocks]
    widths = np.array([len(table.columns) for table in tables])
    weight = widths @ np.array([gather.sum(axis=1) for gather in gathers]) / widths.sum()
    shared = np.hstack([*([np.ones((len(first), 1))] if intercept else []), encode(keys[first, :-1])])
    sums = [
        gather @ in_units(table.values, *units_of(table.values, scaling))
        for gather, table in zip(gathers, tables, strict=True)
    ]
    labels = keys[first, -1:].astype(np.float64)
    matrix = (np.hstack([shared * weight[:, None], *sums]) * labels).T
    return BlockRados(matrix, np.arange(len(matrix)) >= shared.shape[1], float(weight.sum()))


def _gather(block: Ints, count: int) -> csr_array:
    """The matrix that adds rows up by block."""
    return csr_array((np.ones(len(block)), (block, np.arange(len(block)))), shape=(count, len(block)))
