"""Expected matching against entity resolution, end to end: python benchmarks/linkage.py 1000 10000 100000."""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.research.bench._linkage import against_linkage
from radocraft.research.bench._measure import growth


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000], help="rows at each peer")
    wanted.add_argument("--names", action="store_true", help="names and dates of birth at both peers")
    wanted.add_argument("--seed", type=int, default=0, help="other people")
    given = wanted.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = against_linkage(Path(folder), given.sizes, names=given.names, seed=given.seed)
    ours = [rival for rival in found if rival.method == "radocraft"]
    exponent = growth([r.rows for r in ours], [r.cost.cpu for r in ours]) if len(ours) > 1 else None
    print(json.dumps({"growth": exponent, "runs": [asdict(rival) for rival in found]}, indent=1))


if __name__ == "__main__":
    main()
