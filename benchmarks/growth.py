"""How crafting and learning grow: python benchmarks/growth.py rows width blocks peers.

Crafting with rows, columns and blocks, learning with peers, one at a time; time, memory and bytes sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from craft import CODES, contract_of, write_table
from measure import Cost, growth, measure
from tables import arguments, seconds, show, size

from radocraft.contract import Contract
from radocraft.gate import Policy
from radocraft.learning import learn
from radocraft.peer import share

SIZES: dict[str, tuple[int, ...]] = {
    "rows": (1_000_000, 3_000_000, 10_000_000),
    "width": (20, 50, 100, 200),
    "blocks": (500, 50_000, 1_000_000),
    "peers": (2, 4, 8, 16),
}
"""What is varied, one at a time."""
BASELINE = {"rows": 1_000_000, "width": 20, "blocks": 500, "peers": 2}
"""What the others are meanwhile."""


@dataclass(frozen=True)
class Curve:
    """Costs against one size, with the exponents k of cost = c size^k.

    ``held`` are the bytes of the tables, ``sent`` those of the parts (0 where none is made).
    """

    against: str
    sizes: tuple[int, ...]
    costs: tuple[Cost, ...]
    held: tuple[float, ...]
    sent: tuple[float, ...]
    time_exponent: float
    memory_exponent: float


def growth_of(folder: Path, against: str, sizes: Sequence[int] = ()) -> Curve:
    """Vary ``rows``, ``width`` or ``blocks`` of a craft, or the ``peers`` learned from."""
    sizes = tuple(sizes) or SIZES[against]
    point = learning_point if against == "peers" else crafting_point
    costs, held = zip(*(point(folder, BASELINE | {against: size}) for size in sizes), strict=True)
    return Curve(
        against=against,
        sizes=sizes,
        costs=costs,
        held=held,
        sent=tuple(float(cost.result or 0.0) for cost in costs),
        time_exponent=growth(sizes, [cost.cpu for cost in costs]),
        memory_exponent=growth(sizes, [cost.peak for cost in costs]),
    )


def crafting_point(folder: Path, shape: dict[str, int]) -> tuple[Cost, float]:
    """Craft one table; its bytes come back too."""
    path, small, codes = folder / "rows.parquet", folder / "small.parquet", CODES[shape["blocks"]]
    write_table(path, shape["rows"], shape["width"], codes)
    write_table(small, 10_000, shape["width"], codes)
    try:
        cost = measure(crafted, path, shape["width"], codes, warm=(small, shape["width"], codes))
        return cost, float(path.stat().st_size)
    finally:
        path.unlink()
        small.unlink()


def crafted(path: Path, width: int, codes: tuple[int, ...]) -> float:
    """Craft, and where blocks are large enough to leave as they are, release; the bytes of the part."""
    contract = contract_of(width, codes)
    return float(share(path, contract, "bank").nbytes)


def learning_point(folder: Path, shape: dict[str, int]) -> tuple[Cost, float]:
    """Learn from parts of several peers, made beforehand; the bytes of their tables come back too."""
    path, codes = folder / "rows.parquet", CODES[shape["blocks"]]
    write_table(path, shape["rows"], shape["width"], codes)
    contract = contract_of_peers(shape["peers"], shape["width"], codes)
    parts = []
    for peer in contract.peers:
        parts.append(folder / f"{peer}.part.parquet")
        share(path, contract, peer, policy=Policy.exact(), output=parts[-1])
    held = float(path.stat().st_size) * len(parts)
    path.unlink()
    return measure(learned, parts, contract, warm=(parts, contract)), held


def contract_of_peers(count: int, width: int, codes: tuple[int, ...]) -> Contract:
    """Peers with columns of their own, all read from the columns of one table of `write_table`."""
    alone = contract_of(width, codes).model_dump(mode="json", exclude_none=True)
    features = alone["peers"]["bank"]["features"]
    peers = {
        f"peer{at:02}": {
            "features": {f"{name} of {at}": kind for name, kind in features.items()},
            "columns": {f"{name} of {at}": name for name in features},
        }
        for at in range(count)
    }
    return Contract.model_validate({**alone, "peers": peers})


def learned(parts: list[Path], contract: Contract) -> float:
    """Read the parts and learn; their bytes."""
    learn(parts, contract)
    return float(sum(part.stat().st_size for part in parts))


HEADS = ("varied", "size", "processor time", "peak memory", "exponent of time", "exponent of memory")


def rows_of(curve: Curve) -> list[tuple[str, ...]]:
    """The lines of one curve."""
    exponents = (f"{curve.time_exponent:.2f}", f"{curve.memory_exponent:.2f}")
    return [
        (curve.against, f"{count:,}", seconds(cost.cpu), size(cost.peak), *exponents)
        for count, cost in zip(curve.sizes, curve.costs, strict=True)
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("against", nargs="*", default=list(SIZES), choices=list(SIZES), help="what to vary")
    given = parser.parse_args()
    curves = []
    for against in given.against:
        with TemporaryDirectory() as folder:
            curves.append(growth_of(Path(folder), against))
    show(given, [asdict(curve) for curve in curves], HEADS, [line for curve in curves for line in rows_of(curve)])


if __name__ == "__main__":
    main()
