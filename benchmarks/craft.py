"""Crafting against a bare scan of the same file: python benchmarks/craft.py 10000000x20x500 1000000x200x500."""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.bench import against_scan

SHAPES = ["10000000x20x500", "10000000x20x50000", "10000000x20x1000000", "1000000x200x500"]


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("shapes", nargs="*", default=SHAPES, help="ROWSxCOLUMNSxBLOCKS; blocks 500, 50000 or 1000000")
    wanted.add_argument("--repeats", type=int, default=3, help="rounds; the median counts")
    wanted.add_argument("--memory-limit", help="the most memory for the engine, such as 2GB")
    given = wanted.parse_args()
    found = []
    for shape in given.shapes:
        rows, width, blocks = (int(part) for part in shape.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            repeats, limit = given.repeats, given.memory_limit
            found.append(against_scan(Path(folder), rows, width, blocks, repeats=repeats, memory_limit=limit))
    print(json.dumps([asdict(scan) for scan in found], indent=1))


if __name__ == "__main__":
    main()
