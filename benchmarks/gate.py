"""The default gate against crafting, with ten or more rows a block: python benchmarks/gate.py 500 50000 1000000."""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.gate._release import release
from radocraft.research.bench._measure import measure
from radocraft.research.bench._scan import CODES, contract_of, write_table
from radocraft.rows._craft import craft

WIDTH, LEAST = 20, 1_000_000


def crafted(path: Path, codes: tuple[int, ...]) -> int:
    return len(craft(path, contract_of(WIDTH, codes), "bank").rows)


def released(path: Path, codes: tuple[int, ...]) -> int:
    contract = contract_of(WIDTH, codes)
    return len(release(craft(path, contract, "bank"), contract).cells.rows)


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("blocks", nargs="*", type=int, default=list(CODES), help="500, 50000 or 1000000")
    for blocks in wanted.parse_args().blocks:
        with tempfile.TemporaryDirectory() as folder:
            path, codes = Path(folder) / "t.parquet", CODES[blocks]
            rows = max(LEAST, 10 * blocks)
            write_table(path, rows, WIDTH, codes)
            costs = {work.__name__: asdict(measure(work, path, codes)) for work in (crafted, released)}
        print(json.dumps({"blocks": blocks, "rows": rows, "columns": WIDTH, **costs}, indent=1))


if __name__ == "__main__":
    main()
