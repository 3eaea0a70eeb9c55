"""Crafting against a bare scan of the same file: python benchmarks/craft.py 10000000x20x500 1000000x200x500."""

import argparse
import json
import tempfile
from dataclasses import asdict
from itertools import product
from pathlib import Path

from radocraft.research.bench._scan import against_scan

SHAPES = ["10000000x20x500", "10000000x20x50000", "10000000x20x1000000", "1000000x200x500"]


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("shapes", nargs="*", default=SHAPES, help="ROWSxCOLUMNSxBLOCKS; blocks 500, 50000 or 1000000")
    wanted.add_argument("--codec", nargs="*", default=["zstd", "snappy"], help="how the file is compressed")
    wanted.add_argument("--repeats", type=int, default=3, help="rounds; the median counts")
    wanted.add_argument("--memory-limit", help="the most memory for the engine, such as 2GB")
    wanted.add_argument("--sample", action="store_true", help="block sums with the sample of rows a first craft takes")
    given = wanted.parse_args()
    found = []
    more = {"repeats": given.repeats, "memory_limit": given.memory_limit, "sample": given.sample}
    for codec, shape in product(given.codec, given.shapes):
        rows, width, blocks = (int(part) for part in shape.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            found.append(against_scan(Path(folder), rows, width, blocks, codec=codec, **more))
    print(json.dumps([asdict(scan) for scan in found], indent=1))


if __name__ == "__main__":
    main()
