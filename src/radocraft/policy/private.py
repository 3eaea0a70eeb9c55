"""From bounded integer sums to a release under differential privacy.

One discrete Gaussian over all blocks (each row lies in one, so the count with
weight a and the sums together have sensitivity sqrt(a^2 + C^2)), a second one
over the moments of the private columns (sensitivity C^2). Everything after
that is arithmetic on noisy numbers: which blocks are rolled up is decided on
noisy counts, and the moments of shared columns follow from the noisy blocks.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from radocraft.arrays import Floats, Ints, add_up, number_rows
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.errors import PolicyRefusal
from radocraft.policy.gate import Release
from radocraft.policy.limits import Counts, Limits
from radocraft.policy.reasons import listed
from radocraft.policy.rolling import rolled_up
from radocraft.policy.rules import Policy, Privacy
from radocraft.policy.shrink import without_noise
from radocraft.privacy.accounting import rho_of
from radocraft.privacy.bounded import COARSE, GRID, Bounded
from radocraft.privacy.mechanism import add_noise, noise_scale

COUNT = GRID // 2
_MOST_BLOCKS = 200_000
_CLEAR = 4.0


def release_bounded(exact: Bounded, contract: Contract, policy: Policy) -> Release:
    """Add the noise the policy's budget buys, and let the result leave."""
    privacy = policy.privacy
    if privacy is None:
        raise PolicyRefusal('This release needs a policy with mode = "differential-privacy".')
    spend = Spend(privacy)
    keys, counts, sums = noisy_blocks(exact, contract, privacy, spend)
    moments = noisy_moments(exact, privacy, spend)
    cells = assemble(exact, contract, (keys, counts, sums), moments, spend)
    limit = max(policy.min_rows, int(np.ceil(_CLEAR * spend.count_noise)))
    check_labels(cells, contract, policy, spend)
    codes = noisy_codes(cells, limit, policy)
    moved = (codes == ROLLED).any(axis=1)
    return Release(
        contract=contract,
        cells=cells.grouped(codes)
        if policy.signatures == "labels-only"
        else by_cell(shrunk_cells(cells, codes, spend)),
        mode=policy.mode,
        guarantee=policy.guarantee,
        min_rows=policy.min_rows,
        blocks_rolled_up=int(moved.sum()),
        rows_rolled_up=int(max(cells.rows[moved].sum(), 0)),
        notes=tuple(warnings(cells, spend)),
        noise={**spend.told(), "totals": cells.total_noise},
        held_back=listed(cells, codes, contract, lambda _: f"its noisy count is under {limit}"),
        ledger=policy.ledger,
    )


class Spend:
    """How the budget of one release is split, and the noise that follows."""

    def __init__(self, privacy: Privacy) -> None:
        delta = privacy.delta if privacy.signatures == "public" else privacy.delta / 2.0
        self.privacy, self.delta = privacy, delta
        self.rho = rho_of(privacy.epsilon, delta)
        self.lifetime_rho = rho_of(privacy.lifetime_epsilon, delta)
        self.moments_rho = self.rho * privacy.moments_share
        self.sums_rho = self.rho - self.moments_rho
        self.sums_sensitivity = privacy.rows_per_person * float(np.hypot(COUNT, GRID)) * (1 + 1e-12)
        self.moments_sensitivity = float(privacy.rows_per_person * COARSE**2)
        scale = noise_scale(self.sums_sensitivity, self.sums_rho)
        self.count_noise = scale / COUNT
        self.sum_noise = scale * privacy.row_norm / GRID
        per_moment = noise_scale(self.moments_sensitivity, self.moments_rho)
        self.moment_noise = per_moment * (privacy.row_norm / COARSE) ** 2

    @property
    def threshold(self) -> float:
        """A noisy count above it shows no block that one unit alone has filled, but with probability delta / 2."""
        most = self.privacy.rows_per_person
        return most + self.count_noise * float(-ndtri(self.privacy.delta / 2.0 / most))

    def told(self) -> dict[str, Any]:
        """What may be known about the noise."""
        return {
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "rho": self.rho,
            "lifetime_rho": self.lifetime_rho,
            "row_norm": self.privacy.row_norm,
            "rows": self.count_noise,
            "sums": self.sum_noise,
            "moments": self.moment_noise,
        }


def noisy_blocks(exact: Bounded, contract: Contract, privacy: Privacy, spend: Spend) -> tuple[Ints, Floats, Floats]:
    """Codes and label, noisy count and noisy sums of every agreed block, or of those over the threshold."""
    keys = np.column_stack([exact.codes, exact.labels])
    counts, sums = exact.rows, exact.sums
    if privacy.signatures == "public":
        every = public_blocks(contract, exact.peer)
        place = number_rows(np.vstack([every, keys]))[len(every) :]
        counts, sums = add_up(counts, place, len(every)), add_up(sums, place, len(every))
        keys = every
    noisy = add_noise(np.column_stack([counts * COUNT, sums]), spend.sums_sensitivity, spend.sums_rho)
    rows = noisy[:, 0] / COUNT
    kept = rows > spend.threshold if privacy.signatures == "threshold" else np.ones(len(rows), dtype=bool)
    return keys[kept], rows[kept], noisy[kept, 1:] * (privacy.row_norm / GRID)


def public_blocks(contract: Contract, peer: str) -> Ints:
    """Every agreed signature with every label, in order."""
    sizes = [len(shared.codes) for shared in contract.shared]
    if len(contract.label_codes(peer)) * np.prod(sizes, dtype=float) > _MOST_BLOCKS:
        raise PolicyRefusal(
            "The contract has too many signatures to release them all. Agree on coarser codes, or use `signatures = "
            '"threshold"` under [privacy].'
        )
    return np.array([*product(*(range(size) for size in sizes), contract.label_codes(peer))], dtype=np.int64)


def noisy_moments(exact: Bounded, privacy: Privacy, spend: Spend) -> Floats:
    """Noisy second moments of the private columns, as a matrix without negative eigenvalues."""
    width = len(exact.columns)
    noisy = add_noise(exact.moments, spend.moments_sensitivity, spend.moments_rho)
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = noisy * (privacy.row_norm / COARSE) ** 2
    matrix = matrix + np.triu(matrix, 1).T
    values, vectors = np.linalg.eigh(matrix)
    out: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return out


def assemble(
    exact: Bounded, contract: Contract, blocks: tuple[Ints, Floats, Floats], moments: Floats, spend: Spend
) -> Cells:
    """The noisy numbers as cells of full signatures."""
    keys, counts, sums = blocks
    rows = np.rint(counts).astype(np.int64)
    encoded = contract.encode_shared(keys[:, :-1])
    outer = np.column_stack([encoded, np.ones(len(encoded))])
    cross = sums.T @ outer
    return Cells(
        exact.peer,
        tuple(column.name for column in exact.columns),
        centre=np.array([column.centre for column in exact.columns]),
        scale=np.array([column.scale for column in exact.columns]),
        codes=keys[:, :-1],
        labels=keys[:, -1],
        rows=rows,
        sums=sums,
        present=np.repeat(rows[:, None], sums.shape[1], axis=1),
        shared=csr_array(encoded * rows[:, None]),
        moments=np.block([[moments, cross], [cross.T, (outer.T * rows) @ outer]]),
        noise=spend.moment_noise,
        total_noise=spend.sum_noise * len(rows) ** 0.5,
    )


def check_labels(cells: Cells, contract: Contract, policy: Policy, spend: Spend) -> None:
    """The rows of every label must stand out of the noise of all its blocks together."""
    for code in contract.label_codes(cells.peer):
        own = cells.labels == code
        if cells.rows[own].sum() < max(policy.min_rows, _CLEAR * spend.count_noise * own.sum() ** 0.5):
            raise PolicyRefusal(
                f"'{cells.peer}' has too few rows of a label for this budget: the noise drowns them. "
                "Give more rows, raise epsilon, or agree on fewer codes."
            )


def noisy_codes(cells: Cells, limit: int, policy: Policy) -> Ints:
    """The codes each block leaves under, decided on noisy counts."""
    if policy.signatures == "labels-only":
        return np.full_like(cells.codes, ROLLED)
    return rolled_up(Limits(cells, Counts.none(len(cells.rows)), limit))


def shrunk_cells(cells: Cells, codes: Ints, spend: Spend) -> Cells:
    """The cells these codes make, with means shrunk by their noise."""
    blocks = np.bincount(number_rows(np.column_stack([codes, cells.labels])))
    return without_noise(cells.grouped(codes), blocks, spend.sum_noise)


def by_cell(cells: Cells) -> Cells:
    """Moments in which shared columns are constant inside cells: what is inside a rolled-up cell is mostly noise."""
    width = len(cells.columns)
    outer = np.column_stack([cells.shared.toarray(), cells.rows]) / cells.rows[:, None]
    cross = cells.sums.T @ outer
    moments = np.block([[cells.moments[:width, :width], cross], [cross.T, (outer.T * cells.rows) @ outer]])
    return replace(cells, moments=moments)


def warnings(cells: Cells, spend: Spend) -> list[str]:
    """Say so when the noise drowns the signal."""
    share = spend.moment_noise * 2.0 * len(cells.columns) ** 0.5 / max(cells.total, 1)
    if share > 0.1:
        return ["the noise is more than a tenth of a column's variance: expect a weak model from this few rows"]
    return []
