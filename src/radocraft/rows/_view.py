"""Tables of people to score: which peers' columns are there, and how to read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from radocraft.arrays import Floats, Ints, dense
from radocraft.contract import Categorical, Constants, Contract, Kind, Number, private_columns
from radocraft.errors import MissingColumn, NotFinite
from radocraft.rows._checks import check_read, check_rows, listed
from radocraft.rows._cleaning import CleanedSource, ColumnRule, as_it_is, rules_of, with_rules
from radocraft.rows._encoding import Reader
from radocraft.rows._keys import KeyReader
from radocraft.rows._moments import RowLayout
from radocraft.rows._score_statement import Formula, score_of, scored
from radocraft.rows.engines._base import ROWS, Source
from radocraft.rows.engines._statement import written


@dataclass(frozen=True)
class View:
    """Which peers' columns a table has, and how to read them.

    ``source`` is the table as it is once it is cleaned; ``shared`` reads the shared features; ``readers`` the private
    features of each peer that is there; ``owners`` says to which of its holders a private
    column belongs in the model: the first.
    """

    source: Source
    shared: Reader
    readers: dict[str, Reader]
    owners: dict[str, str]

    @classmethod
    def of(
        cls,
        contract: Contract,
        peers: tuple[str, ...],
        source: Source,
        constants: dict[str, Constants] | None = None,
    ) -> View:
        """Find the contract's columns in a table."""
        kinds = source.kinds()
        readers = {}
        for peer in peers:
            reader = _reader(contract, peer, kinds, (constants or {}).get(peer, {}))
            wanted = {name: contract.column_of(peer, name) for name in contract.own_columns(peer)}
            present = [name for name in wanted if reader.contract.column_of(peer, name) in kinds]
            others = {name for other in peers if other != peer for name in contract.own_columns(other)}
            if not {*present} & ({*wanted} - others or {*wanted}):
                continue  # at most columns that another peer holds too
            if len(present) < len(wanted):
                raise MissingColumn(
                    f"'{source.name}' has some columns of '{peer}' but lacks "
                    f"{listed([names for name, names in wanted.items() if name not in present])}. "
                    f"Add them, or leave all of '{peer}' out to have it filled in from block means."
                )
            readers[peer] = reader
        shared = next(iter(readers.values()), _reader(contract, None, kinds, {}))
        if lacking := [s.name for s in contract.shared if shared.contract.column_of(shared.peer, s.name) not in kinds]:
            raise MissingColumn(
                f"'{source.name}' lacks {listed(lacking)}, shared by all peers. It has {listed(list(kinds))}. "
                "Rename a column, or add it; empty cells are allowed."
            )
        owners: dict[str, str] = {}
        for peer in peers:
            owners |= {c.name: peer for c in private_columns(contract, peer) if c.name not in owners}
        rules: dict[str, ColumnRule] = {}
        for reader in (shared, *readers.values()):
            names = reader.contract.peers[reader.peer].columns.values()
            rules = rules_of(source, reader.contract, reader.peer, names) | rules
        source = with_rules(source, rules)
        kinds = source.kinds()
        readers = {peer: replace(reader, kinds=kinds) for peer, reader in readers.items()}
        return cls(source, replace(shared, kinds=kinds), readers, owners)

    @property
    def all(self) -> list[Reader]:
        """Every reader once."""
        return list(self.readers.values()) or [self.shared]

    def query(self, keep: tuple[str, ...] = ()) -> exp.Select:
        """Codes, raw values of every peer that is there, whether a cell cannot be read, and columns to keep."""
        columns = [self.shared.code(s).as_(f"code_{index}") for index, s in enumerate(self.shared.contract.shared)]
        numbers, codes = [], []
        for peer, name in self._owned:
            reader = self.readers[peer]
            feature = reader.contract.peers[peer].features[name]
            if isinstance(feature, Categorical):
                codes.append(exp.column(reader.coded(name), quoted=True))
            else:
                numbers += reader.values(name, feature)
        columns += [value.as_(f"value_{index}") for index, value in enumerate(numbers)]
        columns += [code.as_(f"category_{index}") for index, code in enumerate(codes)]
        misread = [condition for reader in self.all if (condition := reader.misread()) is not None]
        columns.append(exp.or_(exp.false(), *misread).as_("misread"))
        if unknown := [name for name in keep if name not in self.shared.kinds]:
            raise MissingColumn(
                f"There is no column {listed(unknown)} to keep. There are {listed(list(self.shared.kinds))}."
            )
        columns += [as_it_is(self.source, name).as_(f"keep_{index}") for index, name in enumerate(keep)]
        relation: exp.Expr = ROWS
        for reader in self.readers.values():
            relation = reader.rows(relation)
        return exp.select(*columns).from_(relation)

    def statement(self, dialect: str, table: str, names: list[str], **numbers: Any) -> str:
        """One SELECT in a dialect's SQL: the columns of ``table``, its rows' scores, and the probabilities ``names``.

        ``numbers`` are those of a `Formula`.
        """
        formula, layout, kept = Formula(**numbers), self.layout, [*self.source.kinds()]
        scores = [score_of(formula, at, layout.plain, layout.coded) for at in range(len(formula.intercept))]
        query = scored(self.query(tuple(kept)), formula, scores, kept, names)
        if isinstance(self.source, CleanedSource):
            query = self.source.over(query)
        return written(query, dialect, exp.to_table(table, dialect=dialect), pretty=True)

    def codes(self, batch: pa.RecordBatch) -> Ints:
        """The batch's signatures."""
        width = len(self.shared.contract.shared)
        return dense(batch.select([f"code_{index}" for index in range(width)])).astype(np.int64)

    @cached_property
    def _owned(self) -> dict[tuple[str, str], int]:
        """Peer and name of each private feature that is read as this peer's, in order, with its number of columns."""
        columns = [(peer, c) for peer, reader in self.readers.items() for c in private_columns(reader.contract, peer)]
        return Counter((peer, column.feature) for peer, column in columns if self.owners[column.name] == peer)

    @cached_property
    def layout(self) -> RowLayout:
        """Which of the private columns are the categories of one feature."""
        starts, coded = 0, []
        for (peer, name), width in self._owned.items():
            if isinstance(self.readers[peer].contract.peers[peer].features[name], Categorical):
                coded.append((starts, width))
            starts += width
        return RowLayout(starts, tuple(coded))

    def numbers(self, batch: pa.RecordBatch) -> Floats:
        """Those of the batch's raw private values that are numbers of their own, NaN where missing."""
        return dense(batch.select([f"value_{index}" for index in range(len(self.layout.plain))]))

    def values(self, batch: pa.RecordBatch) -> Floats:
        """The batch's raw private values, peer after peer, NaN where missing."""
        out = np.zeros((batch.num_rows, self.layout.width))
        out[:, self.layout.plain] = self.numbers(batch)
        for (start, _), code in zip(self.layout.coded, self._categories(batch), strict=True):
            out[np.arange(batch.num_rows), start + code] = 1.0
        return out

    def weighted(self, batch: pa.RecordBatch, centre: Floats, weights: Floats, limits: tuple[Floats, Floats]) -> Floats:
        """The sum of weight * (value - centre) over the private columns, to which a missing value adds nothing.

        No value counts as less or more than its limits.
        """
        plain, (low, high) = self.layout.plain, limits
        values = np.clip(self.numbers(batch), low[plain], high[plain])
        total = np.nan_to_num(values - centre[plain], nan=0.0) @ weights[plain]
        for (start, count), code in zip(self.layout.coded, self._categories(batch), strict=True):
            block = slice(start, start + count)
            most = (weights[block].T * np.minimum(1.0, high[block])).T
            total += (most - centre[block] @ weights[block])[code]
        return np.asarray(total)

    def _categories(self, batch: pa.RecordBatch) -> list[Ints]:
        codes = [batch.column(f"category_{index}") for index in range(len(self.layout.coded))]
        return [code.to_numpy(zero_copy_only=False).astype(np.int64) for code in codes]

    def key_of(self, contract: Contract, peer: str, secret: Path | None) -> KeyReader | None:
        """How the contract's key is read from a peer's table; None if there is none."""
        return KeyReader.of(Reader(contract, peer, self.source.kinds()), secret)

    def batches(
        self,
        keep: tuple[str, ...] = (),
        *,
        with_label: bool = False,
        key: KeyReader | None = None,
        finite: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, piece by piece; no cell may be of the wrong kind or infinite, and there must be rows.

        Values may be infinite if they need not be ``finite``; with a ``key`` its column comes along.
        """
        count, source = 0, self.source
        query = self.query(keep)
        if with_label:
            query = query.select(self.shared.label().as_("label"))
            label = self.shared.contract.label
            query = query.select(self.shared.number(label.column).as_("target")) if isinstance(label, Number) else query
        if key is not None:
            query = query.select(key.expression().as_("key"))
        for batch in source.batches(query):
            if batch.column("misread").to_numpy(zero_copy_only=False).any():
                break
            if finite and np.isinf(self.numbers(batch)).any():
                raise NotFinite(f"'{source.name}' holds infinities. Replace them by missing values or finite numbers.")
            count += batch.num_rows
            yield batch
        else:
            check_rows(count, source)
            return
        for reader in self.all:
            check_read(reader, source)


def _reader(contract: Contract, peer: str | None, kinds: dict[str, Kind], constants: Constants) -> Reader:
    """A reader that finds a column under the contract's name, the peer's own or, if shared, another peer's.

    A column is cleaned as its owner does it: the peer that calls it so. Without a peer it reads the shared
    features alone.
    """
    name = peer or next(iter(contract.peers))
    features = contract.peers[name].features if peer else {}
    common = (contract.label.column, *(shared.name for shared in contract.shared))
    owners = dict.fromkeys(common, (name, *contract.peers)) | dict.fromkeys(features, (name,))
    columns, cleaning = {}, {}
    for feature, held_by in owners.items():
        candidates = [feature, *(contract.column_of(owner, feature) for owner in held_by)]
        column = columns[feature] = next((column for column in candidates if column in kinds), feature)
        owner = next((owner for owner in held_by if contract.column_of(owner, feature) == column), name)
        rule = contract.cleaning_of(owner, feature)
        cleaning[column] = rule.model_copy(update={"missing": (*rule.missing, *contract.peers[owner].missing)})
    update = {"features": features, "columns": columns, "cleaning": cleaning, "missing": ()}
    held = contract.peers[name].model_copy(update=update)
    return Reader(contract.model_copy(update={"peers": {**contract.peers, name: held}}), name, kinds, constants)
