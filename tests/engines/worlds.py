"""A table with everything that engines treat differently, and its exact sums in plain Python."""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from radocraft import Contract, Tally
from radocraft.rows import craft_rows

ODD = 'Höhe "x" `y`, a.b'

CONTRACT = Contract.parse(f"""
name = "engines"

[label]
column = "Outcome"
positive = "yes"
negative = "no"

[[shared]]
name = "region"
categories = ["north", "sou'th", "w\\u00ebst"]

[[shared]]
name = "age"
edges = [30, 45.5]

[[shared]]
name = "member"
categories = [true, false]

[[shared]]
name = "grade"
categories = [1, 2.5]

[peers.bank.features]
income = "numeric"
far = "numeric"
small = "numeric"
whole = "numeric"
price = "numeric"
written = "numeric"
empty_in_north = "numeric"
flag = "boolean"
said = "boolean"
job = {{ kind = "categorical", categories = ["clerk", "select"] }}
level = {{ kind = "categorical", categories = [1, 2] }}
'{ODD}' = "numeric"

[peers.bank.columns]
age = "Age at signing"
""")


def table(rows: int = 400, seed: int = 5) -> pa.Table:
    """NULL, NaN, float32, decimals, numbers as text, truth values, text with quotes, and odd names."""
    rng = np.random.default_rng(seed)

    def gaps(values: Any, share: float, kind: pa.DataType) -> pa.Array:
        missing = rng.random(rows) < share
        return pa.array([None if gone else value for value, gone in zip(values, missing, strict=True)], kind)

    def pick(*choices: Any) -> list[Any]:
        return [choices[at] for at in rng.integers(0, len(choices), rows)]

    normal = rng.normal(size=(rows, 8))
    region = pick("north", "sou'th", "wëst", "elsewhere", None)
    income = np.where(rng.random(rows) < 0.1, np.nan, 30_000 + 9_000 * normal[:, 0])
    forms = ("{:.3f}", " {:.2f} ", "{:.4e}", "+{:.1f}", "{:.0f}.")
    written = [form.format(abs(x)) for form, x in zip(pick(*forms), normal[:, 3] * 50, strict=True)]
    for at in rng.integers(0, rows, 12):
        written[at] = "NaN"
    by_place = [None if place == "north" else float(x) for place, x in zip(region, normal[:, 4], strict=True)]
    return pa.table(
        {
            "Outcome": pa.array(pick("yes", "no", "no")),
            "region": pa.array(region, pa.string()),
            "Age at signing": gaps([float(x) for x in rng.integers(18, 80, rows)], 0.1, pa.float64()),
            "member": gaps([bool(x) for x in rng.random(rows) < 0.5], 0.1, pa.bool_()),
            "grade": gaps(pick(1.0, 2.5, 7.0, math.nan), 0.1, pa.float64()),
            "income": gaps([float(x) for x in income], 0.1, pa.float64()),
            "far": pa.array(1e9 + normal[:, 1]),
            "small": pa.array(normal[:, 2].astype(np.float32)),
            "whole": gaps([int(x) for x in rng.integers(-5, 2**40, rows)], 0.05, pa.int64()),
            "price": pa.array([round(float(x), 2) for x in normal[:, 5] * 100], pa.float64()).cast(
                pa.decimal128(12, 2), safe=False
            ),
            "written": gaps(written, 0.1, pa.string()),
            "empty_in_north": pa.array(by_place, pa.float64()),
            "flag": gaps([bool(x) for x in rng.random(rows) < 0.3], 0.1, pa.bool_()),
            "said": gaps(pick("Yes", " no", "TRUE", "f", "1", "0"), 0.1, pa.string()),
            "job": gaps(pick("clerk", "select", "other"), 0.1, pa.string()),
            "level": gaps(pick(1, 2, 3), 0.1, pa.int64()),
            ODD: pa.array(normal[:, 6]),
            "ignored": pa.array([b"\x00\x01"] * rows),
        }
    )


@dataclass(frozen=True)
class Exact:
    """What a tally must say: rows by block, and values by block as lists to sum up exactly."""

    rows: dict[tuple[int, ...], int]
    values: dict[tuple[int, ...], list[list[float]]]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, rows: pa.Table) -> "Exact":
        """Read every row in plain Python, following the contract's words."""
        counts: dict[tuple[int, ...], int] = defaultdict(int)
        values: dict[tuple[int, ...], list[list[float]]] = defaultdict(list)
        names: tuple[str, ...] = ()
        for row in rows.to_pylist():
            block = (
                coded(row["region"], ["north", "sou'th", "wëst"]),
                binned(row["Age at signing"], [30, 45.5]),
                coded(row["member"], [True, False]),
                coded(None if is_nan(row["grade"]) else row["grade"], [1, 2.5]),
                1 if row["Outcome"] == "yes" else -1,
            )
            read = private(row)
            names = tuple(sorted(read, key=lambda name: (name.split("=")[0], list(read).index(name))))
            counts[block] += 1
            values[block].append([read[name] for name in names])
        return cls(counts, values, names)

    def bounded(self, contract: Contract, peer: str, constants: dict[str, tuple[float, ...]]) -> Tally:
        """The same values put onto the grid by NumPy, with no engine."""
        rows = [(block, row) for block, held in self.values.items() for row in held]
        return craft_rows(
            contract,
            peer,
            self.columns,
            codes=np.array([block[:-1] for block, _ in rows]),
            labels=np.array([block[-1] for block, _ in rows]),
            values=np.array([row for _, row in rows]),
            constants=constants,
        )


def private(row: dict[str, Any]) -> dict[str, float]:
    plain = ("income", "far", "small", "whole", "price", "written", "empty_in_north", ODD)
    read = {name: math.nan if row[name] is None else float(row[name]) for name in plain}
    read["flag"] = math.nan if row["flag"] is None else float(row["flag"])
    words = {"yes": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "f": 0.0, "0": 0.0}
    read["said"] = math.nan if row["said"] is None else words[row["said"].strip().lower()]
    for name, categories in {"job": ["clerk", "select"], "level": [1, 2]}.items():
        code = coded(row[name], categories)
        read |= {f"{name}={word}": float(code == at) for at, word in enumerate([*categories, "missing", "unseen"])}
    return read


def coded(value: Any, categories: list[Any]) -> int:
    if value is None:
        return len(categories)
    return categories.index(value) if value in categories else len(categories) + 1


def binned(value: float | None, edges: list[float]) -> int:
    if value is None or is_nan(value):
        return len(edges) + 1
    return sum(value >= edge for edge in edges)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def assert_exact(tally: Tally, exact: Exact, tolerance: float = 1e-9) -> None:
    """Counts to the last row; sums and moments, centred and scaled by exact statistics, to ``tolerance``."""
    blocks = [(*codes, label) for codes, label in zip(tally.codes.tolist(), tally.labels.tolist(), strict=True)]
    assert len({*blocks}) == len(blocks)
    assert dict(zip(blocks, tally.rows.tolist(), strict=True)) == exact.rows
    assert tally.columns == exact.columns
    everything = [row for block in blocks for row in exact.values[block]]
    centre, scale = centre_and_scale(everything)
    based = tally.rebased(np.array(centre), np.array(scale))
    for at, block in enumerate(blocks):
        for column in range(len(centre)):
            held = [(row[column] - centre[column]) / scale[column] for row in exact.values[block]]
            held = [value for value in held if not math.isnan(value)]
            assert based.present[at, column] == len(held)
            assert math.isclose(based.sums[at, column], math.fsum(held), abs_tol=tolerance * max(len(held), 1))
    for at, label in enumerate((-1, 1)):
        rows = [row for block in blocks if block[-1] == label for row in exact.values[block]]
        assert_moments(based.moments[at], rows, centre, scale, tolerance)


def centre_and_scale(everything: list[list[float]]) -> tuple[list[float], list[float]]:
    centre, scale = [], []
    for column in zip(*everything, strict=True):
        held = [value for value in column if not math.isnan(value)]
        centre.append(math.fsum(held) / len(held))
        variance = math.fsum((value - centre[-1]) ** 2 for value in held) / len(held)
        scale.append(math.sqrt(variance) or 1.0)
    return centre, scale


def assert_moments(
    moments: Any, rows: list[list[float]], centre: list[float], scale: list[float], tolerance: float
) -> None:
    lifted = []
    for row in rows:
        units = [(value - c) / s for value, c, s in zip(row, centre, scale, strict=True)]
        lifted.append(
            [0.0 if math.isnan(value) else value for value in units] + [float(not math.isnan(value)) for value in units]
        )
    columns = list(zip(*lifted, strict=True))
    assert moments.shape == (len(columns), len(columns))
    for at, left in enumerate(columns):
        for other, right in enumerate(columns):
            wanted = math.fsum(a * b for a, b in zip(left, right, strict=True))
            assert math.isclose(moments[at, other], wanted, abs_tol=tolerance * len(lifted)), (at, other)
