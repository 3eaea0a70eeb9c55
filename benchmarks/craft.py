"""Crafting against a bare scan of the same file: python benchmarks/craft.py 10000000x20x500 1000000x200x500."""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.bench import against_scan, growth

SHAPES = ("10000000x20x500", "10000000x20x50000", "10000000x20x1000000", "1000000x200x500")


def main() -> None:
    given = [shape for shape in sys.argv[1:] if not shape.startswith("-")] or SHAPES
    found = []
    for shape in given:
        rows, width, blocks = (int(part) for part in shape.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            found.append(against_scan(Path(folder), rows, width, blocks))
        print(json.dumps(asdict(found[-1]), indent=1), flush=True)
    if "--growth" in sys.argv:
        print("growth in rows:", growth([f.rows for f in found], [f.whole.cpu for f in found]))


if __name__ == "__main__":
    main()
