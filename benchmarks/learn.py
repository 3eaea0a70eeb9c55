"""Learning against reading the parts: python benchmarks/learn.py 1000000x100x10000000 (blocks, columns, rows).

Columns are those of each of the two peers, rows those behind the parts. With several shapes the exponents of
processor time and peak memory come last, fitted in blocks if blocks differ, else in rows.

Two peers see the same people. Their tallies are made up block by block, as if
crafted from so many rows, and go through the gate as any tally does, in the mode
that rolls nothing up: every cell of a part stays a block of its own, which is the
most a learner can be given.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from measure import Cost, growth, measure, median
from tables import arguments, seconds, show, size

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.gate import Policy, release
from radocraft.learning import learn as learn_from
from radocraft.parts import Part
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
    model = learn_from(paths, contract_of(width, codes))
    return len(model.blocks.labels), model.estimate.error


SHAPES = ("10000x100x1000000", "100000x100x1000000", "1000000x100x10000000")
HEADS = (
    *("blocks x columns", "rows", "parts", "", "wall", "processor time", "peak memory"),
    *("x reading (wall)", "x reading (processor)"),
)


def rows_of(found: Learning) -> list[tuple[str, ...]]:
    """The two lines of one size in the page's table."""
    shape = (f"{found.blocks:,} x {found.columns}", f"{found.rows:,}", size(found.bytes))
    works = (("reading", found.reading, 1.0, 1.0), ("learning", found.learning, found.ratio, found.cpu_ratio))
    return [
        (*shape, work, seconds(cost.wall), seconds(cost.cpu), size(cost.peak), f"{wall:.1f}", f"{cpu:.1f}")
        for work, cost, wall, cpu in works
    ]


def exponents(found: list[Learning]) -> dict[str, float | str]:
    """How processor time and memory grow with what varies."""
    varied = "blocks" if len({size.blocks for size in found}) > 1 else "rows"
    sizes, costs = [getattr(size, varied) for size in found], [size.learning for size in found]
    return {"in": varied} | {kind: growth(sizes, [getattr(cost, kind) for cost in costs]) for kind in ("cpu", "peak")}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="BLOCKSxCOLUMNSxROWS")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; the median counts")
    given = parser.parse_args()
    found = []
    for shape in given.shapes:
        blocks, width, rows = (int(part) for part in shape.split("x"))
        with TemporaryDirectory() as folder:
            found.append(against_reading(Path(folder), blocks, width, rows, repeats=given.repeats))
    growing = exponents(found) if len(found) > 1 else None
    figures = {"sizes": [asdict(size) for size in found], "growth": growing}
    show(given, figures, HEADS, [line for each in found for line in rows_of(each)])
    if growing and not given.as_json:
        print(f"\nExponents in {growing['in']}: processor time {growing['cpu']:.2f}, memory {growing['peak']:.2f}.")


if __name__ == "__main__":
    main()
