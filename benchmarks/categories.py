"""What a column of many categories costs: python benchmarks/categories.py 10 500.

Crafting and releasing a table of a million rows, learning, and predicting as many, each beside the same with the
fewest categories.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Cost, measure
from tables import arguments, seconds, show, size

from radocraft.contract import Contract
from radocraft.learning import learn
from radocraft.model import Model
from radocraft.parts import Part
from radocraft.peer import share
from radocraft.rows import craft

ROWS = 1_000_000
HEADS = ("work", "categories", "processor", "times the fewest", "peak memory")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    categories: int
    cost: Cost
    ratio: float


def contract_of(categories: int) -> Contract:
    names = ", ".join(f'"job {at}"' for at in range(categories))
    return Contract.parse(f"""
name = "categories"
label = {{ column = "y", positive = 1, negative = 0 }}
shared = [{{ name = "age", edges = [30, 40, 50, 60] }}]
[peers.bank.features]
income = "numeric"
balance = "numeric"
job = {{ kind = "categorical", categories = [{names}] }}
[peers.shop.features]
spent = "numeric"
visits = "numeric"
""")


def write_table(path: Path, rows: int, categories: int) -> None:
    rng = np.random.default_rng(1)
    job, numbers = rng.integers(0, categories, rows), rng.normal(size=(rows, 4))
    score = numbers.sum(axis=1) + rng.normal(size=categories)[job] + rng.normal(size=rows)
    names = np.array([f"job {at}" for at in range(categories)])
    columns = dict(zip(("income", "balance", "spent", "visits"), numbers.T, strict=True))
    pq.write_table(
        pa.table({"y": (score > 0).astype(int), "age": rng.integers(20, 70, rows), "job": names[job], **columns}), path
    )


def crafted(table: Path, categories: int, folder: Path) -> int:
    return len(craft(table, contract_of(categories), "bank").columns)


def shared(table: Path, categories: int, folder: Path) -> int:
    for peer in ("bank", "shop"):
        share(table, contract_of(categories), peer, output=folder / f"{peer}.part.parquet")
    return 0


def learned(table: Path, categories: int, folder: Path) -> int:
    parts = [Part.read(folder / f"{peer}.part.parquet") for peer in ("bank", "shop")]
    learn(parts, contract_of(categories)).save(folder / "model.json")
    return 0


def predicted(table: Path, categories: int, folder: Path) -> int:
    return len(Model.load(folder / "model.json").predict(table).score)


WORKS = {"craft": crafted, "craft and release both": shared, "learn": learned, "predict": predicted}


def rows_of(folder: Path, rows: int, categories: tuple[int, ...]) -> list[Row]:
    """Every kind of work with every number of categories; the fewest come first."""
    found: list[Row] = []
    first: dict[str, float] = {}
    for count in sorted(categories):
        place = folder / str(count)
        place.mkdir()
        table, small = place / "rows.parquet", place / "small.parquet"
        write_table(table, rows, count)
        write_table(small, min(rows, 10_000), count)
        for work, function in WORKS.items():
            warm = place / "warm"
            warm.mkdir(exist_ok=True)
            cost = measure(function, table, count, place, warm=(small, count, warm))
            if not cost.finished:
                raise SystemExit(f"{work} with {count} categories did not finish: {cost.why}")
            found.append(Row(work, count, cost, cost.cpu / first.setdefault(work, cost.cpu)))
    return sorted(found, key=lambda row: [*WORKS].index(row.work))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("categories", nargs="*", type=int, default=[10, 100, 500], help="how many categories")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = rows_of(Path(folder), given.rows, tuple(given.categories))
    figures = [{"work": row.work, "categories": row.categories, "seconds": row.cost.cpu} for row in found]
    lines = [
        (row.work, f"{row.categories:,}", seconds(row.cost.cpu), f"{row.ratio:.2f}", size(row.cost.peak))
        for row in found
    ]
    show(given, figures, HEADS, lines)


if __name__ == "__main__":
    main()
