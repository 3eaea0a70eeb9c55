"""The default gate beside crafting, with ten or more rows a block: python benchmarks/gate.py 500 50000 1000000."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from craft import CODES, contract_of, write_table
from measure import measure
from tables import arguments, seconds, show, size

from radocraft.gate import release
from radocraft.rows import craft

WIDTH, LEAST = 20, 1_000_000
HEADS = ("rows", "blocks", "crafted", "crafted and released", "peak memory", "cells that leave")


def crafted(path: Path, codes: tuple[int, ...]) -> int:
    return len(craft(path, contract_of(WIDTH, codes), "bank").rows)


def released(path: Path, codes: tuple[int, ...]) -> int:
    contract = contract_of(WIDTH, codes)
    return len(release(craft(path, contract, "bank"), contract).cells.rows)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("blocks", nargs="*", type=int, default=list(CODES), choices=list(CODES), help="how many blocks")
    given = parser.parse_args()
    found = []
    for blocks in given.blocks:
        with TemporaryDirectory() as folder:
            path, codes = Path(folder) / "t.parquet", CODES[blocks]
            rows = max(LEAST, 10 * blocks)
            write_table(path, rows, WIDTH, codes)
            found.append((rows, blocks, measure(crafted, path, codes), measure(released, path, codes)))
    names = ("rows", "blocks", "crafted", "released")
    figures = [dict(zip(names, (rows, blocks, asdict(a), asdict(b)), strict=True)) for rows, blocks, a, b in found]
    lines = [
        (f"{rows:,}", f"{a.result:,}", seconds(a.cpu), seconds(b.cpu), size(b.peak), f"{b.result:,}")
        for rows, _, a, b in found
    ]
    show(given, figures, HEADS, lines)


if __name__ == "__main__":
    main()
