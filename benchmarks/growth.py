"""How crafting and learning grow, with fitted exponents: python benchmarks/growth.py rows width blocks peers."""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from radocraft.research.bench._growth import SIZES, growth_of


def main() -> None:
    found = []
    for against in sys.argv[1:] or list(SIZES):
        with tempfile.TemporaryDirectory() as folder:
            found.append(asdict(growth_of(Path(folder), against)))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
