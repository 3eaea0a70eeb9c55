"""Releases made up from rows, without crafting and the gate: what a part can hold, and what rows it stands for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, add_up, first_of_each, number_rows
from radocraft.contract._columns import moment_labels, summed_columns
from radocraft.contract._contract import Contract
from radocraft.contract._features import Boolean, Categorical
from radocraft.gate._account import Spend
from radocraft.gate._policy import Policy
from radocraft.gate._release import Release
from radocraft.parts._hidden import hidden_columns
from radocraft.parts._part import Part, _hash
from radocraft.sums._bounds import Bounds
from radocraft.sums._cells import ROLLED, Cells, Levels, assemble, of_label

CONTRACT = """
name = "risk"
label = { column = "bad", positive = "yes", negative = "no" }
shared = [
  { name = "region", categories = ["north", "south"] },
  { name = "age", edges = [30, 50] },
  { name = "size", edges = [1, 2], encoding = "ordinal" },
]
[peers.bank.features]
income = "numeric"
score = { kind = "numeric", centre = 3, scale = 2 }
owner = "boolean"
job = { kind = "categorical", categories = ["clerk", "nurse"] }
curve = { kind = "spline", knots = 3 }
[peers.insurer.features]
claims = "numeric"
"""


def agreed(label: str = "", **changes: str) -> Contract:
    """The contract, with another label, or with words replaced."""
    text = CONTRACT
    if label:
        text = text.replace('label = { column = "bad", positive = "yes", negative = "no" }', f"label = {label}")
    for old, new in changes.items():
        text = text.replace(old, new)
    return Contract.parse(text)


LABELS = {
    "two values": "",
    "classes": '{ column = "bad", classes = ["a", "b", "c"] }',
    "a number": '{ column = "bad", kind = "numeric" }',
    "bins": '{ column = "bad", kind = "numeric", edges = [0.0], centre = 0, scale = 1 }',
    "held by the other": '{ column = "bad", positive = "yes", negative = "no", held_by = ["insurer"] }',
}


@dataclass(frozen=True)
class Made(Release):
    """A release that keeps its rows."""

    joined: Floats = field(kw_only=True)
    row_labels: Ints = field(kw_only=True)

    def true_moments(self) -> Floats:
        """Second moments of (private, shared, 1) by label, from the rows."""
        which = of_label(self.contract, self.cells.peer, self.row_labels)
        labels = range(len(moment_labels(self.contract, self.cells.peer)))
        return np.array([self.joined[which == at].T @ self.joined[which == at] for at in labels])


def make(
    contract: Contract | None = None, *, rows: int = 600, noise: float = 0.5, seed: int = 0, min_rows: int = 10
) -> Made:
    """A release of the bank; without noise in exact mode, some values missing."""
    contract, rng = contract or agreed(), np.random.default_rng(seed)
    codes = np.column_stack(
        [rng.choice(len(s.codes), rows, p=_skewed(len(s.codes))) for s in contract.shared]
        or [np.empty((rows, 0), dtype=np.int64)]
    ).reshape(rows, len(contract.shared))
    names = [*contract.label_codes("bank")]
    labels = rng.choice(names, rows, p=_skewed(len(names)))
    values, gone = _values(contract, rng, labels, exact=not noise)
    cell_codes = _rolled_up(codes, labels, min_rows)
    group = number_rows(np.column_stack([cell_codes, labels]))
    first, count = first_of_each(group), int(group.max()) + 1
    encoded = contract.encode_shared(codes)
    widths = [len(shared.encoded) for shared in contract.shared]
    masked = np.where(np.repeat(cell_codes == ROLLED, widths, axis=1), encoded, 0.0)
    levels, norm = Levels(), Bounds().norm(contract, "bank")
    if noise:
        levels = Levels(
            max(1.0, noise * (rows / count) ** 0.5 / 4),
            noise * max(1.0, (rows / count) ** 0.5),
            noise * rows**0.5,
            noise * rows**0.5 * norm,
        )
    cells = Cells(
        "bank",
        tuple(column.name for column in summed_columns(contract, "bank")),
        np.array([0.0 if c.centre is None else c.centre for c in summed_columns(contract, "bank")]),
        np.array([1.0 if c.scale is None else c.scale for c in summed_columns(contract, "bank")]),
        codes=cell_codes[first],
        labels=labels[first],
        rows=np.bincount(group),
        sums=add_up(values, group, count),
        present=add_up((~gone).astype(np.int64), group, count),
        shared=csr_array(add_up(encoded, group, count)),
        by_label=np.empty((0, 0, 0)),
        levels=levels,
        constants={"curve": (0.0, 1.0, 2.5)} | ({} if not noise else {"income": (0.0, 1.0)}),
    )
    which, outer = of_label(contract, "bank", labels), np.hstack([values, masked])
    kept = [which == at for at in range(len(moment_labels(contract, "bank")))]
    private = np.array([values[own].T @ values[own] for own in kept])
    hidden = np.array([masked[own].T @ outer[own] for own in kept])
    if noise:
        cells = _noisy(cells, contract, rng)
        private += _symmetric_noise(rng, private.shape, levels.moments)
        width = values.shape[1]
        for at, own in enumerate(hidden_columns(contract, cells)):
            hidden[at][own, :width] += rng.normal(0, levels.hidden, (len(own), width))
            inside = np.ix_(own, width + own)
            hidden[at][inside] += _symmetric_noise(rng, (1, len(own), len(own)), levels.hidden)[0]
    cells = replace(cells, by_label=assemble(contract, cells, private, hidden))
    joined = np.hstack([values, encoded, np.ones((rows, 1))])
    policy = Policy(min_rows, noise=noise) if noise else Policy.exact(min_rows)
    return Made(contract, policy, cells, Spend(0.7, 0.0), 3, ("a note",), joined=joined, row_labels=labels)


def _skewed(count: int) -> Floats:
    weights = 0.35 ** np.arange(count)
    return np.asarray(weights / weights.sum())


def _values(
    contract: Contract, rng: np.random.Generator, labels: Ints, *, exact: bool
) -> tuple[Floats, np.ndarray[tuple[int, int], np.dtype[np.bool_]]]:
    """Rows in the model's units, within bounds unless exact, and which values are missing."""
    out, features, rows = [], contract.summed("bank"), len(labels)
    gone = np.zeros((rows, len(summed_columns(contract, "bank"))), dtype=bool)
    for name, feature in features.items():
        own = [at for at, c in enumerate(summed_columns(contract, "bank")) if c.feature == name]
        if isinstance(feature, Categorical):
            found = np.eye(len(own))[rng.choice(len(own), rows, p=_skewed(len(own)))]
        elif isinstance(feature, Boolean):
            found = rng.choice([-1.0, 1.0], (rows, 1))
        else:
            found = rng.normal(size=(rows, len(own))) * (1 + 0.8 * (labels[:, None] > 0)) + 0.5 * labels[:, None]
            if exact:
                gone[:, own] = rng.random((rows, len(own))) < 0.1
                found[gone[:, own]] = 0.0
            else:
                found = np.clip(np.floor(1024 * found + 0.5) / 1024, -4, 4)
        out.append((own, found))
    values = np.empty(gone.shape)
    for own, found in out:
        values[:, own] = found
    if not exact:
        norm = Bounds().norm(contract, "bank")
        values *= np.minimum(1.0, norm / np.linalg.norm(values, axis=1))[:, None]
    return values, gone


def _rolled_up(codes: Ints, labels: Ints, min_rows: int) -> Ints:
    codes = codes.copy()
    for level in reversed(range(codes.shape[1])):
        group = number_rows(np.column_stack([codes, labels]))
        codes[np.bincount(group)[group] < min_rows, level] = ROLLED
    return codes


def _noisy(cells: Cells, contract: Contract, rng: np.random.Generator) -> Cells:
    levels = cells.levels
    rows = np.maximum(1, cells.rows + np.rint(rng.normal(0, levels.rows, len(cells.rows)))).astype(np.int64)
    feature = np.repeat(np.arange(len(contract.shared)), [len(s.encoded) for s in contract.shared])
    rolled = (cells.codes == ROLLED)[:, feature]
    shared = cells.shared.toarray() + rng.normal(0, levels.sums, rolled.shape)
    known = [s.matrix[cells.codes[:, at]] for at, s in enumerate(contract.shared)]
    told = np.hstack([np.empty((len(rows), 0)), *known]) * rows[:, None]
    return replace(
        cells,
        rows=rows,
        sums=cells.sums + rng.normal(0, levels.sums, cells.sums.shape),
        present=np.broadcast_to(rows[:, None], cells.sums.shape),
        shared=csr_array(np.where(rolled, shared, told)),
    )


def _symmetric_noise(rng: np.random.Generator, shape: tuple[int, ...], level: float) -> Floats:
    noise = np.triu(rng.normal(0, level, shape))
    return np.asarray(noise + np.triu(noise, 1).swapaxes(-1, -2))


def headed(released: Release, head: str = "0" * 64) -> Part:
    """A part that says a ledger has a line of it, with no ledger there: as somebody would make it by hand."""
    made = Part.of(released)
    if not released.policy.noisy:
        return made
    metadata = {**made.metadata, "ledger": head}
    columns = ((name, made.table.column(name)) for name in made.table.column_names)
    return Part(made.table, {**metadata, "hash": _hash(columns, metadata)})
