"""Expected matching against entity resolution, end to end: python benchmarks/linkage.py 1000 10000 100000."""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.bench import against_linkage, growth


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:] if not size.startswith("-")] or [1_000, 10_000, 100_000]
    with tempfile.TemporaryDirectory() as folder:
        found = against_linkage(Path(folder), sizes, names="--names" in sys.argv)
    ours = [rival for rival in found if rival.method == "radocraft"]
    exponent = growth([r.rows for r in ours], [r.cost.cpu for r in ours]) if len(ours) > 1 else None
    print(json.dumps({"growth": exponent, "runs": [asdict(rival) for rival in found]}, indent=1))


if __name__ == "__main__":
    main()
