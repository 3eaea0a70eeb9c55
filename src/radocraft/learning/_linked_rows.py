"""Linked rows: the few people whose rows at all peers are known to belong together, by consent.

They stay with the learner. They are read as any table of people is, and placed
among the blocks of everybody else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from radocraft.arrays import Floats, Ints, dense
from radocraft.contract import Number
from radocraft.errors import MissingColumn
from radocraft.learning._blocks import Blocks
from radocraft.learning._linked import LinkedRows
from radocraft.rows import View, check_labels, listed, open_source


def read_linked(data: Any, blocks: Blocks) -> LinkedRows:
    """Read a table with every peer's columns, the shared features and the label."""
    source = open_source(data)
    constants = {cells.peer: cells.constants for cells in blocks.cells}
    view = View.of(blocks.contract, blocks.peers, source, constants)
    if absent := [peer for peer in blocks.peers if peer not in view.readers]:
        raise MissingColumn(
            f"Linked rows need the columns of every peer; '{source.name}' has none of {listed(absent)}."
        )
    if blocks.contract.label.column not in view.shared.kinds:
        raise MissingColumn(f"Linked rows need the label '{blocks.contract.label.column}'; '{source.name}' lacks it.")
    codes, labels, values, targets = [], [], [], []
    for batch in view.batches(with_label=True):
        check_labels(batch.column("label").null_count, source, view.shared)
        codes.append(view.codes(batch))
        labels.append(dense(batch.select(["label"]))[:, 0].astype(np.int64))
        targets.append(_targets(blocks, batch, labels[-1]))
        values.append(view.values(batch))
    return _placed(blocks, np.vstack(codes), np.concatenate(labels), np.concatenate(targets), np.vstack(values))


def _targets(blocks: Blocks, batch: pa.RecordBatch, labels: Ints) -> Floats:
    """What the rows' scores are to be."""
    label = blocks.contract.label
    if not isinstance(label, Number):
        return label.targets(labels)
    centre, scale = blocks.label_units
    return np.asarray((dense(batch.select(["target"]))[:, 0] - centre) / scale)


def _placed(blocks: Blocks, codes: Ints, labels: Ints, targets: Floats, values: Floats) -> LinkedRows:
    centre = np.concatenate([cells.centre[blocks.owned(index)] for index, cells in enumerate(blocks.cells)])
    scale = np.concatenate([cells.scale[blocks.owned(index)] for index, cells in enumerate(blocks.cells)])
    constant = np.ones((len(labels), int(blocks.contract.intercept)))
    private = np.nan_to_num((np.clip(values, *blocks.limits) - centre) / scale, nan=0.0)
    design = np.hstack([constant, blocks.contract.encode_shared(codes), private])
    return LinkedRows(design, labels, targets, blocks.locate(codes, labels))
