"""Learning against reading the parts: python benchmarks/learn.py 1000000x100x10000000 (blocks, columns, rows).

Columns are those of each of the two peers, rows those behind the parts. With several shapes the fitted exponents
of processor time and peak memory come last: in blocks if blocks differ, else in rows.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.research.bench._learn import against_reading
from radocraft.research.bench._measure import growth

SHAPES = ("10000x100x1000000", "100000x100x1000000", "1000000x100x10000000")


def main() -> None:
    found = []
    for shape in sys.argv[1:] or SHAPES:
        blocks, width, rows = (int(part) for part in shape.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            found.append(against_reading(Path(folder), blocks, width, rows))
        print(json.dumps(asdict(found[-1]), indent=1), flush=True)
    if len(found) > 1:
        varied = "blocks" if len({one.blocks for one in found}) > 1 else "rows"
        sizes, costs = [getattr(one, varied) for one in found], [one.learning for one in found]
        exponents = {kind: growth(sizes, [getattr(cost, kind) for cost in costs]) for kind in ("cpu", "peak")}
        print(json.dumps({f"growth in {varied}": exponents}))


if __name__ == "__main__":
    main()
