"""Expected matching against entity resolution, end to end: python benchmarks/linkage.py 1000 10000 100000.

Two tables of the same people, no common id, one model.

The rivals bring rows together and learn ridge on the pairs: Splink and
recordlinkage by their own rules, zip by sorting both tables by block. What they
exchange is the smaller table; what radocraft exchanges are two parts. Splink's
ties inside a block are drawn by lot at no cost to it, which favours it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Cost, measure
from tables import arguments, seconds, show, size

from radocraft.arrays import Floats, Ints
from radocraft.contract import Contract
from radocraft.demo import FINE_GAMMAS, PeerTable, fit_ridge, zip_rows
from radocraft.learning import learn
from radocraft.model import predict
from radocraft.peer import share

CODES = (16, 16)
WIDTH = 10
TEST_ROWS = 20_000
SAMPLE = 5_000
SMALL = 1_000
PEERS = ("bank", "shop")


@dataclass(frozen=True)
class Rival:
    """One method at one size."""

    method: str
    rows: int
    cost: Cost
    sent: float
    error: float


def against_linkage(
    folder: Path,
    sizes: Sequence[int] = (1_000, 10_000, 100_000),
    methods: Sequence[str] = ("radocraft", "radocraft, caution 0", "zip", "splink", "recordlinkage"),
    *,
    names: bool = False,
    seed: int = 0,
    seconds: float = 300.0,
    memory: int = 8 * 2**30,
) -> list[Rival]:
    """Run every method at every size, under caps of time and memory; one that did not finish is not asked again.

    Each is run on a small table first, in the same process, which does not count.
    """
    out, failed, small = [], set(), folder / "small"
    small.mkdir()
    write_tables(small, SMALL, names, seed)
    for rows in sizes:
        write_tables(folder, rows, names, seed)
        for method in methods:
            if method in failed:
                continue
            if method in LIBRARIES and find_spec(method) is None:
                cost = Cost(False, 0.0, 0.0, 0.0, why=f"not measured: install {method} first")
            else:
                cost = measure(METHODS[method], folder, warm=(small,), seconds=seconds, memory=memory)
            sent, error = cost.result if cost.finished else (float("nan"), float("nan"))
            out.append(Rival(method, rows, cost, sent, error))
            failed |= set() if cost.finished else {method}
    return out


def write_tables(folder: Path, rows: int, names: bool, seed: int = 0) -> None:
    """Both peers' tables, in orders of their own, and joined rows to test on.

    Inside a block the peers' columns are related through a trait nobody sees.
    """
    rng = np.random.default_rng([rows, seed])
    people = _people(rng, rows + TEST_ROWS, names)
    pq.write_table(people.slice(rows), folder / "test.parquet")
    for at, peer in enumerate(PEERS):
        own = [name for name in people.column_names if not name.startswith(PEERS[1 - at])]
        pq.write_table(people.slice(0, rows).select(own).take(rng.permutation(rows)), folder / f"{peer}.parquet")


def _people(rng: np.random.Generator, rows: int, names: bool) -> pa.Table:
    codes = [rng.integers(0, count, rows) for count in CODES]
    trait = rng.normal(size=rows)
    columns: dict[str, Any] = {f"s{at}": code for at, code in enumerate(codes)}
    score = 0.1 * (codes[0] - 8) + rng.normal(size=rows)
    for peer in PEERS:
        for at in range(WIDTH):
            value = rng.normal(size=rows) + 0.2 * trait + 0.05 * codes[at % 2]
            columns[f"{peer}{at}"] = value
            score = score + (0.5 if at % 2 else -0.4) * value
    columns["y"] = np.where(score > np.median(score), "yes", "no")
    if names:
        columns["name"] = [f"{a}{b}" for a, b in rng.integers(0, 2_000, (rows, 2))]
        columns["born"] = rng.integers(0, 25_000, rows)
    return pa.table(columns)


def _contract() -> Contract:
    shared = "\n".join(f'[[shared]]\nname = "s{at}"\nedges = {list(range(1, n))}' for at, n in enumerate(CODES))
    peers = "\n".join(
        f"[peers.{peer}.features]\n" + "\n".join(f'{peer}{at} = "numeric"' for at in range(WIDTH)) for peer in PEERS
    )
    return Contract.parse(
        f'name = "bench"\n[label]\ncolumn = "y"\npositive = "yes"\nnegative = "no"\n{shared}\n{peers}\n'
    )


def run_radocraft(folder: Path, caution: float | None = None) -> tuple[float, float]:
    """Craft at both peers, release, learn; bytes of the parts and the test error."""
    contract, sent, parts = _contract(), 0, []
    for peer in PEERS:
        parts.append(share(folder / f"{peer}.parquet", contract, peer))
        sent += parts[-1].nbytes
    model = learn(parts, contract, caution=caution)
    test = pq.read_table(folder / "test.parquet")
    wrong = predict(model, test).positive != (_labels(test) > 0)
    return float(sent), float(np.mean(wrong))


def run_zip(folder: Path) -> tuple[float, float]:
    """Sort both tables by block, pair rows in order, learn ridge."""
    return _sent(folder), _ridge_error(zip_rows([_read(folder, peer) for peer in PEERS]), folder)


def splink_pairs(left: PeerTable, right: PeerTable, names: tuple[str, ...]) -> Ints:
    """Pairs of rows that agree in label and codes, scored by Splink; trained on a sample of each table."""
    splink, library = import_module("splink"), import_module("splink.comparison_library")
    rule = splink.block_on("label", *names)
    settings: Any = splink.SettingsCreator(
        link_type="link_only",
        comparisons=[library.ExactMatch(name) for name in names],
        blocking_rules_to_generate_predictions=[rule],
        retain_matching_columns=False,
    )
    for sample in (SAMPLE, None):
        database = splink.DuckDBAPI()
        tables = [
            database.register(_for_splink(table, sample), dataset_display_name=side)
            for table, side in ((left, "first"), (right, "second"))
        ]
        linker = splink.Linker(tables, settings, log_level="ERROR")
        if sample is not None:
            linker.training.estimate_probability_two_random_records_match([rule], recall=0.95)
            linker.training.estimate_u_using_random_sampling(max_pairs=1e5, seed=1)
            for known in names:
                linker.training.estimate_parameters_using_expectation_maximisation(splink.block_on("label", known))
            settings = linker.misc.save_model_to_json()
    found = linker.inference.predict().as_pyarrow_table()
    of_first = np.asarray(found["source_dataset_l"].to_pylist()) == "first"
    one, other = (found[name].to_numpy() for name in ("unique_id_l", "unique_id_r"))
    return np.column_stack([np.where(of_first, one, other), np.where(of_first, other, one)]).astype(np.int64)


def _for_splink(table: PeerTable, rows: int | None) -> pa.Table:
    codes = {f"code{at}": table.codes[:rows, at] for at in range(table.codes.shape[1])}
    labels = table.labels[:rows]
    return pa.table({"unique_id": np.arange(len(labels)), "label": labels, **codes})


def run_splink(folder: Path) -> tuple[float, float]:
    """Splink over what both peers know, names and dates of birth if they are there; ties by lot; ridge."""
    tables = [_read(folder, peer) for peer in PEERS]
    people = [pq.read_table(folder / f"{peer}.parquet") for peer in PEERS]
    if "name" in people[0].column_names:
        return _sent(folder), _ridge_error(_linked_by_name(tables, people), folder)
    splink_pairs(tables[0], tables[1], ("code0", "code1"))
    return _sent(folder), _ridge_error(zip_rows(tables), folder)


def _linked_by_name(tables: list[PeerTable], people: list[pa.Table]) -> PeerTable:
    """Rows that agree in name and date of birth."""
    words = np.concatenate([np.array(table["name"].to_pylist()) for table in people])
    numbers = np.unique(words, return_inverse=True)[1].astype(np.int64)
    known = np.column_stack([numbers, np.concatenate([table["born"].to_numpy() for table in people])])
    halves = np.split(known, [people[0].num_rows])
    left, right = (PeerTable(t.name, t.columns, h, t.labels, t.values) for t, h in zip(tables, halves, strict=True))
    return _joined(tables, splink_pairs(left, right, ("code0", "code1")))


def _joined(tables: list[PeerTable], pairs: Ints) -> PeerTable:
    left, right = tables
    values = np.hstack([left.values[pairs[:, 0]], right.values[pairs[:, 1]]])
    columns = left.columns + right.columns
    return PeerTable("linked", columns, left.codes[pairs[:, 0]], left.labels[pairs[:, 0]], values)


def run_recordlinkage(folder: Path) -> tuple[float, float]:
    """recordlinkage: block on what both know, compare, pair by lot inside a block; ridge."""
    library = import_module("recordlinkage")
    frames = [pq.read_table(folder / f"{peer}.parquet").to_pandas() for peer in PEERS]
    keys = [name for name in ("y", "s0", "s1", "name", "born") if name in frames[0].columns]
    index = library.Index()
    index.block(keys)
    pairs = index.index(*frames)
    compare = library.Compare()
    for key in keys:
        compare.exact(key, key)
    compare.compute(pairs, *frames)
    tables = [_read(folder, peer) for peer in PEERS]
    if "name" in keys:
        at = np.column_stack([pairs.get_level_values(level) for level in (0, 1)]).astype(np.int64)
        return _sent(folder), _ridge_error(_joined(tables, at), folder)
    return _sent(folder), _ridge_error(zip_rows(tables), folder)


METHODS: dict[str, Callable[[Path], tuple[float, float]]] = {
    "radocraft": run_radocraft,
    "radocraft, caution 0": partial(run_radocraft, caution=0.0),
    "zip": run_zip,
    "splink": run_splink,
    "recordlinkage": run_recordlinkage,
}


LIBRARIES = ("splink", "recordlinkage")
"""Methods that need a library of the same name, which radocraft does not bring along."""


def _sent(folder: Path) -> float:
    return float(min((folder / f"{peer}.parquet").stat().st_size for peer in PEERS))


def _read(folder: Path, peer: str) -> PeerTable:
    table = pq.read_table(folder / f"{peer}.parquet")
    names = tuple(f"{peer}{at}" for at in range(WIDTH))
    return PeerTable(peer, names, _codes(table), _labels(table), _matrix(table, names))


def _codes(table: pa.Table) -> Ints:
    return np.column_stack([table[f"s{at}"].to_numpy() for at in range(len(CODES))])


def _labels(table: pa.Table) -> Ints:
    return np.where(np.array(table["y"].to_pylist()) == "yes", 1, -1)


def _matrix(table: pa.Table, names: Sequence[str]) -> Floats:
    return np.column_stack([table[name].to_numpy() for name in names])


def _ridge_error(joined: PeerTable, folder: Path) -> float:
    test = pq.read_table(folder / "test.parquet")
    encoded = [np.eye(count)[joined.codes[:, at]] for at, count in enumerate(CODES)]
    model = fit_ridge(np.hstack(encoded), joined.values, joined.labels, gammas=FINE_GAMMAS)
    shared = np.hstack([np.eye(count)[_codes(test)[:, at]] for at, count in enumerate(CODES)])
    scores = model.scores(shared, _matrix(test, joined.columns))
    return float(np.mean(np.where(scores > 0, 1, -1) != _labels(test)))


HEADS = ("rows", "method", "wall", "processor time", "peak memory", "sent", "test error")


def row_of(rival: Rival) -> tuple[str, ...]:
    """Its line in the page's table."""
    cost = rival.cost
    costs = (seconds(cost.wall), seconds(cost.cpu), size(cost.peak), size(rival.sent), f"{rival.error:.2%}")
    return (f"{rival.rows:,}", rival.method, *(costs if cost.finished else (cost.why, "", "", "", "")))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000], help="rows at each peer")
    parser.add_argument("--method", nargs="*", default=list(METHODS), choices=list(METHODS), help="which methods")
    parser.add_argument("--names", action="store_true", help="names and dates of birth at both peers")
    parser.add_argument("--seed", type=int, default=0, help="other people")
    parser.add_argument("--seconds", type=float, default=300.0, help="stop a method after so long")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        more = {"names": given.names, "seed": given.seed, "seconds": given.seconds}
        rivals = against_linkage(Path(folder), given.sizes, given.method, **more)
    show(given, [asdict(rival) for rival in rivals], HEADS, map(row_of, rivals))


if __name__ == "__main__":
    main()
