"""Private columns in which a handful of rows differ from the rest.

The sum of a category's column is a number of rows, that of a truth value too,
however it is spelled; and where most rows have one value a sum speaks of the
others. Such numbers of rows are cells (`row_counts`): each is 0 or large enough
in all that leaves. A number of three values is made one of two where a value is
rare (`of_two_values`). What is too rare even among all rows of a label is merged
with another category, or held back, before anything is released (`without_rare`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import eye_array

from radocraft.arrays import Ints, Truths, number_rows
from radocraft.contract import Contract
from radocraft.encoding import private_columns, summed_columns
from radocraft.features import Boolean, Categorical, Feature, Interact
from radocraft.policy.limits import Counts
from radocraft.tally import Tally


@dataclass(frozen=True)
class Least:
    """The fewest rows behind a sum or of a category in all, and of a category or a truth value in any group."""

    rows: int
    count: int


def without_rare(tally: Tally, contract: Contract, least: Least) -> tuple[Tally, list[str]]:
    """The tally with rare categories counted as another, and other columns that few rows fill as constant.

    Rare is what has too few rows in all, or some but too few of a label. The
    notes say what was done, without a count.
    """
    tally, notes = of_two_values(tally, least.rows)
    tally = plain_units(tally, contract)
    for feature, where in columns_by_feature(tally, contract).items():
        while _is(Categorical, feature, tally, contract) and (step := next_merge(tally, where, least)):
            rare, target = step
            notes.append(f"'{tally.columns[rare]}' is rare: counted as '{tally.columns[target]}'")
            tally = emptied(tally, rare, into=target)
    counts = row_counts(tally, contract, least)
    held = len(private_columns(contract, tally.peer))  # a numeric label is not held back: without it nothing is left
    for at in np.unique(counts.owner[rarely(tally, counts, least) & (counts.owner < held)]).tolist():
        notes.append(f"'{tally.columns[at]}' has one value but for a few rows: taken as constant")
        tally = emptied(tally, at)
    return tally, notes


def rarely(tally: Tally, counts: Counts, least: Least) -> Truths:
    """Which counts have too few rows in all, or of some label."""
    every = np.arange(len(tally.rows))
    by_label = counts.few(number_rows(tally.labels[:, None]), every).any(axis=0)
    whole = replace(counts, least=np.full_like(counts.least, least.rows)).few(np.zeros_like(every), every).any(axis=0)
    return np.asarray(by_label | whole)


def of_two_values(tally: Tally, limit: int) -> tuple[Tally, list[str]]:
    """The tally with columns of three values, of which few rows have one, as columns of two.

    How many rows of the table have each value follows from such a column's sum
    and its sum of squares, and these speak of the strays in a column of two
    values. All rows but those with the usual value count as the commoner of the
    others: a value of the table's own, so that nothing tells what was counted so.
    """
    notes, third, others = [], tally.third, tally.others.sum(axis=0)
    first, after, rest = tally.present.sum(axis=0) - others, tally.next_rows, others - tally.next_rows
    counted = np.where((after < rest) & ~np.isnan(third), third, tally.next)
    few, first_few, after_few = ((rows > 0) & (rows < limit) for rows in (rest, first, after))
    few |= (first_few | after_few) & ~np.isnan(third)
    for at in np.flatnonzero(few & ~np.isnan(tally.next)).tolist():
        notes.append(f"'{tally.columns[at]}' has two values but for a few rows: these are counted with the second")
        tally = with_second(tally, at, float(counted[at]))
    return tally, notes


def with_second(tally: Tally, at: int, value: float) -> Tally:
    """The tally with all rows that have not the usual value of a column having this one."""
    usual, second = ((x - tally.origin[at]) / tally.unit[at] for x in (tally.usual[at], value))
    sums, width = tally.sums.copy(), len(tally.columns)
    sums[:, at] = (tally.present[:, at] - tally.others[:, at]) * usual + tally.others[:, at] * second
    change = eye_array(len(tally.moments), format="lil")
    change[at, [at, width + at, tally.lines[at]]] = 0.0, second, usual - second
    change = change.tocsr()
    return replace(tally, sums=sums, moments=change @ tally.moments @ change.T)


def plain_units(tally: Tally, contract: Contract) -> Tally:
    """The tally with usual values as 0, and truth values and categories as 0 and 1, so that their sums are counts."""
    held = contract.summed(tally.peer)
    usual, others = tally.usual.copy(), tally.others.copy()
    value, present, kept = np.zeros_like(usual), np.zeros_like(usual), np.ones_like(usual)
    for at, column in enumerate(summed_columns(contract, tally.peer)):
        kind = held[column.feature]
        if isinstance(kind, Boolean | Categorical):
            count = np.rint(tally.sums[:, at] * tally.unit[at] + tally.present[:, at] * tally.origin[at])
            ones = count.astype(np.int64)
            usual[at] = float(isinstance(kind, Boolean) and 2 * ones.sum() >= tally.present[:, at].sum())
            others[:, at] = ones if usual[at] == 0.0 else tally.present[:, at] - ones
            side = 2.0 * usual[at] - 1.0
            value[at], present[at], kept[at] = side * tally.unit[at], 1.0 - usual[at] + side * tally.origin[at], 0.0
    tally = tally.recounted(usual, others, (value, present, kept))
    second = tally.second
    two = ~np.isnan(second)
    product = np.array(
        [isinstance(held[c.feature], Interact) for c in summed_columns(contract, tally.peer)], dtype=bool
    )
    zero = product & ~two & (usual != 0.0)  # a product of three values or more: 0 is where a factor is
    tally = tally.counted_from(np.where(zero, np.nan, usual))
    origin = np.where(zero, 0.0, np.where(np.isnan(usual), tally.origin, usual))
    return tally.rebased(origin, np.where(two, second - usual, np.where(product, 1.0, tally.unit)))


def truths(tally: Tally, contract: Contract) -> Truths:
    """Which columns of a tally in plain units have two values and are no categories."""
    kinds = contract.summed(tally.peer)
    single = [not isinstance(kinds[c.feature], Categorical) for c in summed_columns(contract, tally.peer)]
    out: Truths = np.array(single, dtype=bool) & ~np.isnan(tally.second)
    return out


def columns_by_feature(tally: Tally, contract: Contract) -> dict[str, list[int]]:
    """Where each private feature's columns stand."""
    out: dict[str, list[int]] = {}
    for at, column in enumerate(summed_columns(contract, tally.peer)):
        out.setdefault(column.feature, []).append(at)
    return out


def _is(kind: type[Feature], feature: str, tally: Tally, contract: Contract) -> bool:
    return isinstance(contract.summed(tally.peer)[feature], kind)


def next_merge(tally: Tally, where: list[int], least: Least) -> tuple[int, int] | None:
    """A category that too few rows have, and the one to count it as: unseen, or the largest if that is rare too."""

    def rare_among(rows: Ints) -> Truths:
        each = np.full(rows.shape[1], least.count)
        return rarely(tally, Counts(rows, np.zeros_like(each), each), least)

    own, unseen = tally.others[:, where], len(where) - 1
    rare, total = rare_among(own), own.sum(axis=0)
    if not rare.any():
        return None
    first = min(np.flatnonzero(rare).tolist(), key=lambda at: (at == unseen, total[at]))
    together = own[:, rare | (np.arange(len(where)) == unseen)].sum(axis=1, keepdims=True)
    if first != unseen and not rare_among(together).any():
        return where[first], where[unseen]
    total[first] = 0
    if not total.any():  # all rows are in one category already
        return None
    return where[first], where[int(np.argmax(total))]


def emptied(tally: Tally, at: int, into: int | None = None) -> Tally:
    """The tally, in plain units, with a column at 0 throughout; its rows count in another column, if one is given."""
    sums, others, lines = tally.sums.copy(), tally.others.copy(), tally.lines
    change = eye_array(len(tally.moments), format="lil")
    if into is not None:
        sums[:, into] += sums[:, at]
        others[:, into] += others[:, at]
        change[into, at] = 1.0
        change[lines[into], [len(tally.columns) + at, lines[at]]] = -1.0, 1.0
    sums[:, at], others[:, at], change[at, at] = 0.0, 0, 0.0
    if lines[at] >= 0:
        change[lines[at], [len(tally.columns) + at, lines[at]]] = 1.0, 0.0
    change = change.tocsr()
    return replace(tally, sums=sums, others=others, moments=change @ tally.moments @ change.T)


def row_counts(tally: Tally, contract: Contract, least: Least) -> Counts:
    """Numbers of rows that what leaves would tell, block by block, of a tally in plain units.

    Of every column: the rows in which it is present, those that have not the
    usual value, those that have if the others are alike, and of a product of a
    truth value with a category the rows on either side.
    """
    held, factors, told = contract.summed(tally.peer), factor_counts(tally, contract), truths(tally, contract)
    found: list[tuple[int, int, Ints]] = []
    for at, column in enumerate(summed_columns(contract, tally.peer)):
        kind, others, present = held[column.feature], tally.others[:, at], tally.present[:, at]
        found.append((at, least.rows, present))
        if isinstance(kind, Categorical):
            found.append((at, least.count, others))
        elif told[at]:
            found += [(at, least.count, others), (at, least.count, present - others)]
        else:
            for factor in column.name.split(" * ") if isinstance(kind, Interact) else ():
                others = np.minimum(others, factors.get(factor, tally.rows))
            found.append((at, least.rows, others))
        if isinstance(kind, Interact) and any(isinstance(held.get(factor), Boolean) for factor in kind.of):
            above = np.clip(np.rint((others + tally.sums[:, at]) / 2.0), 0, others).astype(np.int64)
            found += [(at, least.count, above), (at, least.count, others - above)]
    telling = [count for count in found if (count[2] != tally.rows).any()]
    return Counts(
        rows=np.column_stack([np.empty((len(tally.rows), 0), dtype=np.int64), *(rows for *_, rows in telling)]),
        owner=np.array([at for at, *_ in telling], dtype=np.int64),
        least=np.array([few for _, few, _ in telling], dtype=np.int64),
    )


def factor_counts(tally: Tally, contract: Contract) -> dict[str, Ints]:
    """Per block the rows in which a category, or a one-hot shared code that products have, is 1; by column name."""
    products = [kind.of for kind in contract.summed(tally.peer).values() if isinstance(kind, Interact)]
    out = {
        column: (tally.codes[:, at] == code) * tally.rows
        for at, shared in enumerate(contract.shared)
        if shared.encoding == "one-hot" and any(shared.name in factors for factors in products)
        for code, column in enumerate(shared.encoded)
    }
    for feature, where in columns_by_feature(tally, contract).items():
        if _is(Categorical, feature, tally, contract):
            out |= {tally.columns[at]: tally.others[:, at] for at in where}
    return out
