"""Crafting against a bare scan: a SUM of every column of the same Parquet file, without GROUP BY."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np

from radocraft.bench.measure import Cost, measure, median
from radocraft.contract import Contract
from radocraft.craft import block_totals, craft
from radocraft.encoding import Reader, summed_columns
from radocraft.settle import settle
from radocraft.shift import guess_shift
from radocraft.sources import open_source

CODES = {500: (16, 16), 50_000: (29, 29, 29), 1_000_000: (27, 27, 27, 27)}
"""Numbers of codes of the shared features that give about so many blocks, two labels included."""
_SMALL = 1_000


@dataclass(frozen=True)
class Scan:
    """One table's measurements, medians over the repeats; ratios are to the bare scan of the same round."""

    rows: int
    width: int
    blocks: int
    scan: Cost
    sums: Cost
    whole: Cost
    sums_ratio: float
    whole_ratio: float
    sums_cpu_ratio: float
    whole_cpu_ratio: float


def against_scan(
    folder: Path, rows: int, width: int, blocks: int, *, repeats: int = 3, memory_limit: str | None = None
) -> Scan:
    """Generate a table, then craft it and scan it in turn."""
    path, small = folder / f"{rows}x{width}-{blocks}.parquet", folder / "small.parquet"
    more = (CODES[blocks], memory_limit)
    try:
        write_table(path, rows, width, CODES[blocks])
        write_table(small, _SMALL, width, CODES[blocks])
        measure(bare_scan, path, width)
        rounds = []
        for _ in range(repeats):
            scan = measure(bare_scan, path, width, warm=(small, width))
            sums = measure(only_sums, path, width, *more, warm=(small, width, *more))
            whole = measure(sums_and_moments, path, width, *more, warm=(small, width, *more))
            rounds.append((scan, sums, whole))
    finally:
        path.unlink(missing_ok=True)
        small.unlink(missing_ok=True)
    ratio = np.array([[(s.wall / b.wall, s.cpu / b.cpu), (w.wall / b.wall, w.cpu / b.cpu)] for b, s, w in rounds])
    middle = np.median(ratio, axis=0)
    scan, sums, whole = (median(list(costs)) for costs in zip(*rounds, strict=True))
    return Scan(
        rows,
        width,
        blocks,
        scan,
        sums,
        whole,
        sums_ratio=float(middle[0, 0]),
        whole_ratio=float(middle[1, 0]),
        sums_cpu_ratio=float(middle[0, 1]),
        whole_cpu_ratio=float(middle[1, 1]),
    )


def write_table(path: Path, rows: int, width: int, codes: tuple[int, ...]) -> None:
    """Random doubles, codes and a label, as Parquet."""
    columns = [f"random() * {1 + at % 5} + {at} AS x{at:03}" for at in range(width)]
    columns += [f"CAST(floor(random() * {count}) AS INTEGER) AS s{at}" for at, count in enumerate(codes)]
    columns.append("CASE WHEN random() < 0.4 THEN 'yes' ELSE 'no' END AS y")
    with duckdb.connect(config={"memory_limit": "2GB"}) as database:
        database.execute("SET preserve_insertion_order = false")
        database.execute(f"COPY (SELECT {', '.join(columns)} FROM range({rows})) TO '{path}' (FORMAT parquet)")


def contract_of(width: int, codes: tuple[int, ...]) -> Contract:
    """The contract for a table of `write_table`."""
    shared = "\n".join(f'[[shared]]\nname = "s{at}"\nedges = {list(range(1, count))}' for at, count in enumerate(codes))
    features = "\n".join(f'x{at:03} = "numeric"' for at in range(width))
    label = '[label]\ncolumn = "y"\npositive = "yes"\nnegative = "no"'
    return Contract.parse(f'name = "bench"\n{label}\n{shared}\n[peers.bank.features]\n{features}\n')


def bare_scan(path: Path, width: int) -> None:
    """SUM of every column."""
    sums = ", ".join(f"sum(x{at:03})" for at in range(width))
    with duckdb.connect() as database:
        database.execute(f"SELECT {sums} FROM '{path}'").fetchall()


def only_sums(path: Path, width: int, codes: tuple[int, ...], memory_limit: str | None) -> int:
    """The block sums alone; the number of blocks comes back."""
    source, contract = open_source(path, memory_limit=memory_limit), contract_of(width, codes)
    reader = Reader(contract, "bank", source.kinds())
    reader = replace(reader, constants=settle(source, reader))
    shift = guess_shift(source, reader, summed_columns(contract, "bank"))
    return len(block_totals(source, reader, shift).rows)


def sums_and_moments(path: Path, width: int, codes: tuple[int, ...], memory_limit: str | None) -> tuple[int, float]:
    """A whole craft; the number of blocks and the seconds it took come back."""
    started = time.perf_counter()
    tally = craft(open_source(path, memory_limit=memory_limit), contract_of(width, codes), "bank")
    return len(tally.rows), time.perf_counter() - started
