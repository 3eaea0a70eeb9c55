"""How peers' contributions to a score are related inside blocks, from what leaves in the second round.

Peers sum their contributions, less the block's mean and clipped, by label and group of
the contract's neutral key; the rest is as for scores (`correlation`).
"""

from __future__ import annotations

import numpy as np

from radocraft.arrays import Floats
from radocraft.learning._correlation import Correlation, GroupSums, check_ratio, group_shares, posterior, ratio_of
from radocraft.model import Model
from radocraft.parts import BINS, REACH, Histograms
from radocraft.sums import CLIP_GROUP


def correlate_counts(model: Model, counts: list[Histograms], in_common: float = 1.0) -> Correlation:
    """Correlation of every two peers' contributions; what is usual where there are no sums by group.

    Raises
    ------
    LearnError
        If the key is not neutral.
    """
    peers = [by_label(model, one) for one in counts]
    mean, error, measured = np.eye(len(peers)), np.zeros((len(peers), len(peers))), False
    for one, sums in zip(counts, peers, strict=True):
        if model.contract.key is not None and sums:
            check_ratio(model.contract.key.name, one.peer, *ratio_of([*sums.values()]))
    for a, b in zip(*np.tril_indices(len(peers), -1), strict=True):
        common = [label for label in peers[a] if label in peers[b]]
        found = [peers[a][label].likelihood(peers[b][label], in_common) for label in common]
        measured = measured or bool(found)
        mean[a, b], error[a, b] = posterior(found)
        mean[b, a], error[b, a] = mean[a, b], error[a, b]
    return Correlation(mean, error, measured)


def by_label(model: Model, counts: Histograms) -> dict[int, GroupSums]:
    """A peer's sums by group of every label that has some."""
    labels, weights = np.array(model.blocks.labels), np.array(model.blocks.weights)
    out = {}
    for label, sums in ((-1, counts.negative_groups), (1, counts.positive_groups)):
        if sums and model.contract.key is not None:
            rows = float(weights[labels == label].sum()) * group_shares(model.contract.key.values, len(sums))
            bins = np.array(counts.negative if label < 0 else counts.positive, dtype=np.float64)
            out[label] = _expected(np.array(sums), rows, bins, counts.group_noise[label > 0], counts.noise)
    return out


def _expected(sums: Floats, rows: Floats, bins: Floats, noise: float, noise_of_bins: float) -> GroupSums:
    """Sums beside what the histogram of the same label says of one clipped residual."""
    middle = np.clip((np.arange(BINS) - BINS / 2 + 0.5) * (2 * REACH / BINS), -CLIP_GROUP, CLIP_GROUP)
    total = max(float(bins.sum()), 1.0)
    mean = float(bins @ middle) / total
    away = middle - mean
    square, fourth = (float(bins @ away**power) / total for power in (2, 4))
    return GroupSums.of(
        sums,
        rows,
        mean=mean,
        deviation=max(square, 0.0) ** 0.5,
        noise=noise,
        excess=fourth - 3.0 * square**2,
        error=noise_of_bins * float(np.linalg.norm(away**2 - square)) / total,
    )
