"""Crafting against a bare scan: python benchmarks/craft.py 10000000x20x500 1000000x200x500 (rows, columns, blocks).

A bare scan is a SUM of every column of the same Parquet file, without GROUP BY. Several engines scan it; the quickest
counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import duckdb
import numpy as np
from measure import Cost, measure, median
from sqlglot import exp
from tables import arguments, seconds, show, size

from radocraft.contract import Contract, summed_columns
from radocraft.rows import craft, open_source
from radocraft.rows._craft import block_totals
from radocraft.rows._encoding import Reader
from radocraft.rows._shift import Shift, guess_shift
from radocraft.rows.engines._base import ROWS, Source

CODES = {500: (16, 16), 50_000: (29, 29, 29), 1_000_000: (27, 27, 27, 27)}
"""Numbers of codes of the shared features that give about so many blocks, two labels included."""
_SMALL = 1_000

Codec = Literal["zstd", "snappy", "uncompressed"]
"""How a Parquet file is compressed."""


@dataclass(frozen=True)
class Scan:
    """One table's measurements, medians over the repeats; ratios are to the quickest bare scan of the same round.

    ``engines`` are the seconds of every engine's scan, ``grouped`` is DuckDB's own GROUP BY over raw columns.
    """

    rows: int
    width: int
    blocks: int
    codec: Codec
    scan: Cost
    grouped: Cost
    sums: Cost
    whole: Cost
    grouped_ratio: float
    sums_ratio: float
    whole_ratio: float
    sums_cpu_ratio: float
    whole_cpu_ratio: float
    engines: dict[str, float]


def against_scan(
    folder: Path,
    rows: int,
    width: int,
    blocks: int,
    *,
    codec: Codec = "zstd",
    repeats: int = 3,
    memory_limit: str | None = None,
    sample: bool = False,
) -> Scan:
    """Generate a table, then craft it and scan it in turn; ``sample``: see `only_sums`."""
    path, small = folder / f"{rows}x{width}-{blocks}.parquet", folder / "small.parquet"
    try:
        write_table(path, rows, width, CODES[blocks], codec)
        write_table(small, _SMALL, width, CODES[blocks], codec)
        measure(scan_by_duckdb, path, width)
        shift = None if sample else shift_of(open_source(small), contract_of(width, CODES[blocks]))
        rounds = [_round(path, small, (width, CODES[blocks], memory_limit), shift) for _ in range(repeats)]
    finally:
        path.unlink(missing_ok=True)
        small.unlink(missing_ok=True)
    scans, grouped, sums, whole, engines = zip(*rounds, strict=True)
    return Scan(
        rows,
        width,
        blocks,
        codec,
        median(scans),
        median(grouped),
        median(sums),
        median(whole),
        grouped_ratio=_ratio(grouped, scans, "wall"),
        sums_ratio=_ratio(sums, scans, "wall"),
        whole_ratio=_ratio(whole, scans, "wall"),
        sums_cpu_ratio=_ratio(sums, scans, "cpu"),
        whole_cpu_ratio=_ratio(whole, scans, "cpu"),
        engines={name: float(np.median([by[name] for by in engines])) for name in engines[0]},
    )


def _round(
    path: Path, small: Path, given: tuple[int, tuple[int, ...], str | None], shift: Shift | None
) -> tuple[Cost, Cost, Cost, Cost, dict[str, float]]:
    """The quickest scan, a plain GROUP BY, the sums, and the whole; and what every engine's scan took."""
    width = given[0]
    scans = {name: measure(scan, path, width, warm=(small, width)) for name, scan in bare_scans().items()}
    grouped = measure(group_by_duckdb, path, *given[:2], warm=(small, *given[:2]))
    sums = measure(only_sums, path, *given, shift, warm=(small, *given, shift))
    whole = measure(sums_and_moments, path, *given, warm=(small, *given))
    quickest = min(scans.values(), key=lambda cost: cost.wall)
    return quickest, grouped, sums, whole, {name: cost.wall for name, cost in scans.items()}


def _ratio(ours: Sequence[Cost], scans: Sequence[Cost], figure: str) -> float:
    return float(
        np.median([getattr(one, figure) / getattr(scan, figure) for one, scan in zip(ours, scans, strict=True)])
    )


def write_table(path: Path, rows: int, width: int, codes: tuple[int, ...], codec: Codec = "zstd") -> None:
    """Random doubles, codes and a label, as Parquet."""
    columns = [f"random() * {1 + at % 5} + {at} AS x{at:03}" for at in range(width)]
    columns += [f"CAST(floor(random() * {count}) AS INTEGER) AS s{at}" for at, count in enumerate(codes)]
    columns.append("CASE WHEN random() < 0.4 THEN 'yes' ELSE 'no' END AS y")
    with duckdb.connect(config={"memory_limit": "2GB"}) as database:
        database.execute("SET preserve_insertion_order = false")
        database.execute(
            f"COPY (SELECT {', '.join(columns)} FROM range({rows})) TO '{path}' (FORMAT parquet, COMPRESSION {codec})"
        )


def contract_of(width: int, codes: tuple[int, ...]) -> Contract:
    """The contract for a table of `write_table`."""
    shared = "\n".join(f'[[shared]]\nname = "s{at}"\nedges = {list(range(1, count))}' for at, count in enumerate(codes))
    features = "\n".join(f'x{at:03} = "numeric"' for at in range(width))
    label = '[label]\ncolumn = "y"\npositive = "yes"\nnegative = "no"'
    return Contract.parse(f'name = "bench"\n{label}\n{shared}\n[peers.bank.features]\n{features}\n')


def bare_scans() -> dict[str, Callable[[Path, int], None]]:
    """The engines there are: Polars only where it is installed."""
    ours: dict[str, Callable[[Path, int], None]] = {"DuckDB": scan_by_duckdb, "DuckDB, our settings": scan_by_source}
    return ours | ({"Polars": scan_by_polars} if find_spec("polars") else {})


def scan_by_duckdb(path: Path, width: int) -> None:
    """SUM of every column, as DuckDB does it by itself."""
    with duckdb.connect() as database:
        database.execute(f"SELECT {', '.join(_sums(width))} FROM '{path}'").fetchall()


def group_by_duckdb(path: Path, width: int, codes: tuple[int, ...]) -> int:
    """SUM of every column by raw codes and label, as DuckDB does it by itself; the number of groups comes back."""
    keys = [*(f"s{at}" for at in range(len(codes))), "y"]
    with duckdb.connect() as database:
        found = database.sql(f"SELECT {', '.join([*keys, *_sums(width)])} FROM '{path}' GROUP BY {', '.join(keys)}")
        return int(found.to_arrow_table().num_rows)


def scan_by_source(path: Path, width: int) -> None:
    """SUM of every column, by DuckDB as crafting sets it up."""
    open_source(path).table(exp.select(*_sums(width)).from_(ROWS))


def scan_by_polars(path: Path, width: int) -> None:
    """SUM of every column by Polars."""
    import polars  # noqa: PLC0415

    columns = [f"x{at:03}" for at in range(width)]
    polars.scan_parquet(path).select(polars.col(columns).sum()).collect(engine="streaming")


def _sums(width: int) -> list[str]:
    return [f"sum(x{at:03})" for at in range(width)]


def only_sums(path: Path, width: int, codes: tuple[int, ...], memory_limit: str | None, shift: Shift | None) -> int:
    """The block sums alone; the number of blocks comes back.

    How columns are moved an earlier tally tells (``shift``), as when rows are labelled anew, or a sample of rows.
    """
    source, contract = open_source(path, memory_limit=memory_limit), contract_of(width, codes)
    shift = shift or shift_of(source, contract)
    return len(block_totals(source, Reader(contract, "bank", source.kinds()), shift).rows)


def shift_of(source: Source, contract: Contract) -> Shift:
    """How the columns of a table of `write_table` are moved, from a sample of its rows."""
    return guess_shift(source, Reader(contract, "bank", source.kinds()), summed_columns(contract, "bank"))


def sums_and_moments(path: Path, width: int, codes: tuple[int, ...], memory_limit: str | None) -> tuple[int, float]:
    """A whole craft; the number of blocks and the seconds it took come back."""
    started = time.perf_counter()
    tally = craft(open_source(path, memory_limit=memory_limit), contract_of(width, codes), "bank")
    return len(tally.rows), time.perf_counter() - started


SHAPES = ["10000000x20x500", "10000000x20x50000", "10000000x20x1000000", "1000000x200x500"]
HEADS = ("table", "codec", "work", "wall", "processor time", "peak memory", "x scan (wall)", "x scan (processor)")


def rows_of(scan: Scan) -> list[tuple[str, ...]]:
    """The lines of one table of the page."""
    quickest = min(scan.engines, key=scan.engines.__getitem__)
    works = (
        (f"bare scan ({quickest})", scan.scan, 1.0, 1.0),
        ("DuckDB's GROUP BY", scan.grouped, scan.grouped_ratio, scan.grouped.cpu / scan.scan.cpu),
        ("block sums", scan.sums, scan.sums_ratio, scan.sums_cpu_ratio),
        ("sums and moments", scan.whole, scan.whole_ratio, scan.whole_cpu_ratio),
    )
    table = f"{scan.rows:,} x {scan.width}, {scan.blocks:,} blocks"
    return [
        (table, scan.codec, name, seconds(cost.wall), seconds(cost.cpu), size(cost.peak), f"{wall:.1f}", f"{cpu:.1f}")
        for name, cost, wall, cpu in works
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="ROWSxCOLUMNSxBLOCKS; blocks 500, 50000 or 1000000")
    parser.add_argument("--codec", nargs="*", default=["zstd", "snappy"], help="how the file is compressed")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; the median counts")
    parser.add_argument("--memory-limit", help="the most memory for the engine, such as 2GB")
    parser.add_argument("--sample", action="store_true", help="block sums with the sample of rows a first craft takes")
    given = parser.parse_args()
    scans = []
    more = {"repeats": given.repeats, "memory_limit": given.memory_limit, "sample": given.sample}
    for codec, shape in product(given.codec, given.shapes):
        rows, width, blocks = (int(part) for part in shape.split("x"))
        with TemporaryDirectory() as folder:
            scans.append(against_scan(Path(folder), rows, width, blocks, codec=codec, **more))
    show(given, [asdict(scan) for scan in scans], HEADS, [line for scan in scans for line in rows_of(scan)])


if __name__ == "__main__":
    main()
