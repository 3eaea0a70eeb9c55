"""Learning from many blocks, against reading the parts it learns from.

Two peers see the same people. Their tallies are made up block by block, as if
crafted from so many rows, and go through the gate as any tally does, in the mode
that rolls nothing up: every cell of a part stays a block of its own, which is the
most a learner can be given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.gate import Policy, release
from radocraft.learning import learn_columns
from radocraft.parts import Part
from radocraft.research.bench._measure import Cost, measure, median
from radocraft.sums import Tally

PEERS = ("bank", "shop")
SHARED = 4


@dataclass(frozen=True)
class Learning:
    """One size: blocks, private columns of both peers and rows behind them; medians over the repeats.

    ``ratio`` and ``cpu_ratio`` are learning (which reads the parts) to reading, inside one round.
    """

    blocks: int
    columns: int
    rows: int
    bytes: int
    reading: Cost
    learning: Cost
    ratio: float
    cpu_ratio: float


def against_reading(folder: Path, blocks: int, width: int, rows: int, *, repeats: int = 3) -> Learning:
    """Make two parts of about so many blocks and ``width`` columns each, then read them and learn from them in turn."""
    codes = codes_for(blocks)
    paths = [folder / f"{peer}-{blocks}x{width}-{rows}.parquet" for peer in PEERS]
    try:
        for peer, path in zip(PEERS, paths, strict=True):
            made = measure(write_part, path, peer, width, codes, rows)
            if not made.finished:
                raise MemoryError(f"could not make a part of {blocks:,} blocks: {made.why}")
        measure(read_parts, paths)
        rounds = [(measure(read_parts, paths), measure(learn_model, paths, width, codes)) for _ in range(repeats)]
        size = sum(path.stat().st_size for path in paths)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    ratios = np.median([(one.wall / read.wall, one.cpu / read.cpu) for read, one in rounds], axis=0)
    reading, learning = (median(costs) for costs in zip(*rounds, strict=True))
    return Learning(2 * codes**SHARED, 2 * width, rows, size, reading, learning, *map(float, ratios))


def codes_for(blocks: int) -> int:
    """How many codes each shared feature needs for about so many blocks.

    Examples
    --------
    >>> codes_for(1_000_000)
    27
    """
    return max(2, round(math.pow(blocks / 2, 1 / SHARED)))


def contract_of(width: int, codes: int) -> Contract:
    """Shared features with so many codes each, and ``width`` private columns at each peer."""
    shared = "\n".join(f'[[shared]]\nname = "s{at}"\nedges = {list(range(1, codes))}' for at in range(SHARED))
    units = '{ kind = "numeric", centre = 0, scale = 1 }'
    peers = "\n".join(
        f"[peers.{peer}.features]\n" + "\n".join(f"{peer}{at:03} = {units}" for at in range(width)) for peer in PEERS
    )
    label = '[label]\ncolumn = "y"\npositive = "yes"\nnegative = "no"'
    return Contract.parse(f'name = "bench"\n{label}\n{shared}\n{peers}\n')


def write_part(path: Path, peer: str, width: int, codes: int, rows: int) -> None:
    """One peer's part, every signature and label in it."""
    contract = contract_of(width, codes)
    Part.of(release(tally_of(contract, peer, width, codes, rows), contract, Policy.exact())).write(path)


def tally_of(contract: Contract, peer: str, width: int, codes: int, rows: int) -> Tally:
    """Sums as if of normal values around a mean that label and signature move; both peers count the same people."""
    keys = np.indices((codes,) * SHARED + (2,)).reshape(SHARED + 1, -1).T
    people, rng = np.random.default_rng(rows), np.random.default_rng([PEERS.index(peer), rows])
    count = np.maximum(people.poisson(rows / len(keys), len(keys)), 1)
    moved = np.column_stack([keys - keys.mean(axis=0), np.ones(len(keys))]) / codes
    sums = moved @ rng.normal(size=(SHARED + 2, width)) * count[:, None]
    sums += np.sqrt(count)[:, None] * rng.normal(size=sums.shape)
    return Tally(
        fingerprint=contract.fingerprint,
        peer=peer,
        columns=tuple(contract.peers[peer].features),
        codes=keys[:, :-1],
        labels=2 * keys[:, -1] - 1,
        rows=count,
        sums=sums,
        present=np.broadcast_to(count[:, None], sums.shape),
        moments=np.stack([moments_of(sums, count) / 2.0] * 2),
        origin=np.zeros(width),
        unit=np.ones(width),
    )


def moments_of(sums: Floats, rows: Ints) -> Floats:
    """Second moments of (values, present): of block means, and of unit variance inside blocks."""
    width, total = sums.shape[1], float(rows.sum())
    values = (sums.T / rows) @ sums + (total - len(rows)) * np.eye(width)
    once = np.repeat(sums.sum(axis=0)[:, None], width, axis=1)
    return np.block([[values, once], [once.T, np.full((width, width), total)]])


def read_parts(paths: list[Path]) -> int:
    """Read and check them; the number of cells comes back."""
    return sum(Part.read(path).table.num_rows for path in paths)


def learn_model(paths: list[Path], width: int, codes: int) -> tuple[int, float]:
    """Read and learn, tuning included; the number of blocks and the expected error come back."""
    model = learn_columns(paths, contract_of(width, codes))
    return len(model.blocks.labels), model.estimate.error
