"""Entity resolution, as a user of Splink would try it: link rows on what both peers know, then learn.

The peers share codes and the label, nothing like a name or a date of birth. So
Splink can tell which rows agree, and not which of those are the same person:
within a block all pairs get the same weight, and which pair is taken is chance.
It is here to show that, and to stand beside expected matching, which averages
over all of those choices. Rows move to one place, as in any record linkage.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, Ints
from radocraft.demo import PeerTable
from radocraft.errors import StudyError

_RECALL = 0.95
_PAIRS = 1e5
_LEFT, _RIGHT = "first_peer", "second_peer"


def link_rows(tables: Sequence[PeerTable], seed: int = 0) -> PeerTable:
    """Rows of two peers linked one to one by Splink, best pairs first; rows without a partner are left out.

    Raises
    ------
    StudyError
        If there are not two peers, or the extra ``linkage`` is not installed.
    """
    if len(tables) != 2:
        raise StudyError(f"The linkage pipeline links two peers, not {len(tables)}. Take cells with peers = 2.")
    left, right = tables
    pairs, weights = candidate_pairs(left, right, seed)
    at = one_to_one(pairs, weights, np.random.default_rng(seed))
    values = np.hstack([left.values[at[:, 0]], right.values[at[:, 1]]])
    return PeerTable("linked", left.columns + right.columns, left.codes[at[:, 0]], left.labels[at[:, 0]], values)


def candidate_pairs(left: PeerTable, right: PeerTable, seed: int) -> tuple[Ints, Floats]:
    """Pairs of rows that agree in label and codes, with Splink's match weight."""
    try:
        import splink.comparison_library as compare  # noqa: PLC0415  (an extra)
        from splink import DuckDBAPI, Linker, SettingsCreator, block_on  # noqa: PLC0415
    except ImportError as error:
        raise StudyError("The linkage pipeline needs Splink. Install it: pip install 'radocraft[linkage]'") from error
    names = [f"code{at}" for at in range(left.codes.shape[1])]
    rule = block_on("label", *names)
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[compare.ExactMatch(name) for name in names],
        blocking_rules_to_generate_predictions=[rule],
        retain_matching_columns=False,
    )
    database = DuckDBAPI()
    tables = [
        database.register(_arrow(t, names), dataset_display_name=side) for t, side in ((left, _LEFT), (right, _RIGHT))
    ]
    linker = Linker(tables, settings, log_level="ERROR")
    linker.training.estimate_probability_two_random_records_match([rule], recall=_RECALL)
    linker.training.estimate_u_using_random_sampling(max_pairs=_PAIRS, seed=seed + 1)
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("label"))
    found = linker.inference.predict().as_pyarrow_table()
    of_left = np.asarray(found.column("source_dataset_l").to_pylist()) == _LEFT
    first, second = (found.column(name).to_numpy() for name in ("unique_id_l", "unique_id_r"))
    pairs = np.column_stack([np.where(of_left, first, second), np.where(of_left, second, first)]).astype(np.int64)
    return pairs, np.asarray(found.column("match_weight").to_numpy(), dtype=np.float64)


def _arrow(table: PeerTable, names: Sequence[str]) -> pa.Table:
    codes = {name: table.codes[:, at] for at, name in enumerate(names)}
    return pa.table({"unique_id": np.arange(len(table)), "label": table.labels, **codes})


def one_to_one(pairs: Ints, weights: Floats, rng: np.random.Generator) -> Ints:
    """Of the candidate pairs the heaviest first, equal ones by lot, each row at most once.

    Examples
    --------
    >>> pairs = np.array([[0, 0], [0, 1], [1, 1]])
    >>> one_to_one(pairs, np.array([2.0, 1.0, 0.5]), np.random.default_rng(0)).tolist()
    [[0, 0], [1, 1]]
    """
    order = np.lexsort((rng.permutation(len(pairs)), -weights))
    taken: tuple[set[int], set[int]] = (set(), set())
    kept = []
    for at in order:
        first, second = int(pairs[at, 0]), int(pairs[at, 1])
        if first not in taken[0] and second not in taken[1]:
            taken[0].add(first)
            taken[1].add(second)
            kept.append((first, second))
    return np.array(kept, dtype=np.int64).reshape(-1, 2)
