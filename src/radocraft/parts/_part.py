"""The part: the only thing that leaves a peer, format 2.

A Parquet file (zstd), one row per cell, that any Parquet reader opens:

=====================  =======================================================
``shared:NAME``        the cell's code of that shared feature, or ``any``
``label``              the label's value; ``any`` from a peer that lacks it (unless
                       it labelled its rows itself, which its notes then say)
``rows``               number of rows in the cell
``sum:COLUMN``         sum of a private column, in the model's units; of a numeric
                       label likewise
``present:COLUMN``     how many values are behind the sum, only in exact mode and
                       only where some are missing (else the rows: a missing value
                       counts as the centre)
``shared-sum:COLUMN``  sum of a shared column, only in cells of code ``any``
=====================  =======================================================

and one JSON value under the key ``radocraft`` of the file's metadata: contract,
peer and time, the policy with its noise and cost, units of the private columns,
their second moments by label, what rolled-up cells hide, the head of the peer's
ledger, and a SHA-256 over all of this and the table, which the peer may sign.
Matrices are base64 of little-endian doubles. `Part.metadata` has every field.

Unless the mode is exact, every number carries noise. Second moments of (private
columns, shared columns, 1) follow from these numbers (`assemble` in `sums`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from radocraft.arrays import Tabular
from radocraft.contract import Contract, moment_labels, summed_columns
from radocraft.errors import FileError, PolicyRefusal, Tampered
from radocraft.files import __version__, writing
from radocraft.ledger import Ledger
from radocraft.parts._audit import Exposure, audit
from radocraft.parts._check import broken, check_agreed, check_alone, check_column, check_keys, check_numbers
from radocraft.parts._footer import KEY, WORDS, Opened, opened, refused
from radocraft.parts._hidden import hidden_columns, taken_apart
from radocraft.parts._metadata import (
    FORMAT,
    check_fields,
    pack_by_label,
    parse,
    policy_words,
    unpack_by_label,
    unpack_private,
)
from radocraft.parts._scores import (
    ScoreTables,
    describe_scores,
    look_at_scores,
    read_scores,
    score_columns,
    tabulate_scores,
)
from radocraft.parts._sign import sign
from radocraft.parts._table import codes_of, labels_of, matrix_of, places_of, present_of, shared_sums_of, tabulate
from radocraft.sums import UNIT, Cells, Levels, ScoreCells, assemble

if TYPE_CHECKING:
    from radocraft.gate import Release

_UNHASHED = {"hash", "signature"}


@dataclass(frozen=True, repr=False)
class Part(Tabular):
    """A released table and its metadata.

    `radocraft.share` makes one; `Part.read` reads one back and refuses it if it was
    changed, or cannot be.

    Examples
    --------
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> part = rc.share(tables["bank"], contract, "bank")
    >>> part.peer, part.metadata["policy"]["noise"], part.table.column_names[:4]
    ('bank', 0.5, ['shared:region', 'shared:age', 'label', 'rows'])
    """

    table: pa.Table
    metadata: dict[str, Any]
    _bytes: int | None = field(default=None, repr=False, compare=False)
    _stays: bool = field(default=False, repr=False, compare=False)
    _ledger: Ledger | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, release: Release[Any], ledger: Ledger | None = None) -> Part:
        """Make the part of a release; only ``peer/`` does.

        It can be written once the ledger has a line that lets it leave. Without a ledger it stays in memory,
        unless the policy is exact and wants neither ledger nor review.
        """
        policy = release.policy
        stays = ledger is None and (policy.noisy or policy.review or policy.ledger is not None)
        cells, contract = release.cells, release.contract
        of_scores = isinstance(cells, ScoreCells)
        table = tabulate_scores(cells, contract) if of_scores else tabulate(cells, contract)
        metadata = {**_describe(release), "ledger": None if ledger is None else ledger.history().head}
        columns = ((name, table.column(name)) for name in table.column_names)
        return cls(table, {**metadata, "hash": _hash(columns, metadata)}, _stays=stays, _ledger=ledger)

    @classmethod
    def read(cls, path: str | Path | IO[bytes], name: str | None = None) -> Part:
        """Read a part, called ``name`` in messages, and check it as far as that goes without its contract.

        `check` goes further, and `cells` checks all of it.
        """
        name, columns = name or str(path), {}

        def kept(found: Iterable[tuple[str, pa.ChunkedArray]]) -> Iterator[tuple[str, pa.ChunkedArray]]:
            for column, values in found:
                columns[column] = values
                yield column, values

        with opened(path, name) as file:
            metadata = _check(file, kept(_each_column(file.file)), name)
        return cls(pa.table(columns), metadata, Path(path).stat().st_size if isinstance(path, str | Path) else None)

    @classmethod
    def verify(cls, path: str | Path, name: str | None = None) -> dict[str, Any]:
        """Check a part as `read` does, one column at a time; gives its metadata alone."""
        name = name or str(path)
        with opened(path, name) as file:
            return _check(file, _each_column(file.file), name)

    def keep(self, ledger: Ledger) -> None:
        """Put a copy into the ledger's own folder, from where it leaves as soon as the ledger has its line."""
        with ledger.keeping("part", self.metadata["hash"]) as file:
            self._stream(file)

    def kept_back(self) -> Part:
        """The same part, to look at: `write` and `stream` refuse it."""
        return replace(self, _stays=True)

    def signed(self, private: bytes) -> Part:
        """The same part with a signature by a private key in PEM."""
        return replace(self, metadata={**self.metadata, "signature": sign(self.metadata["hash"], private)}, _bytes=None)

    def write(self, path: str | Path) -> None:
        """Write the part to a Parquet file, whole or not at all; refused if no ledger stands for it."""
        self._check_leave()
        with writing(path) as file:
            self._stream(file)

    def stream(self, sink: Any) -> None:
        """Write the bytes of that file to an open file or buffer, if `write` would."""
        self._check_leave()
        self._stream(sink)

    def to_arrow(self) -> pa.Table:
        """Its cells."""
        return self.table

    def in_one_line(self) -> str:
        """Whose it is, and how many cells."""
        return f"Part({self.peer!r}, sums over {self.metadata['rows']:,} rows in {self.table.num_rows:,} cells)"

    def in_sentences(self) -> tuple[str, ...]:
        """What its policy promises."""
        return (f"Guarantee: {self.metadata['policy']['guarantee']}.", *self.metadata["notes"])

    @property
    def peer(self) -> str:
        """Whose part it is."""
        return str(self.metadata["peer"])

    @property
    def of_scores(self) -> bool:
        """Whether it holds a peer's scores, and not sums of its columns."""
        return self.metadata.get("scores") is not None

    @property
    def nbytes(self) -> int:
        """How many bytes leave, as a file."""
        sink = pa.BufferOutputStream()
        if self._bytes is None:
            self._stream(sink)
        return int(sink.getvalue().size) if self._bytes is None else self._bytes

    def audit(self) -> Exposure:
        """What an attacker can learn from it at best."""
        return audit(self)

    def check(self, contract: Contract | None = None) -> None:
        """Refuse numbers that no rows have; without the contract as far as that shows, and codes do not."""
        if contract is not None:
            _ = self.scores(contract) if contract.of_scores else self.cells(contract)
            return
        if self.of_scores:
            look_at_scores(self.table, self.metadata)
            return
        names, present = self.metadata["columns"], {*self.table.column_names}
        needed = {"label", "rows", *(f"sum:{name}" for name in names)}
        if missing := sorted(needed - present):
            raise broken(self.peer, f"its table has no column '{missing[0]}'")
        if sorted(column for column in present - needed if column.startswith("sum:")):
            raise broken(self.peer, "its table has sums of a column that it does not name")
        try:
            private = unpack_private(self.metadata)
        except ValueError as error:
            raise broken(self.peer, f"its moments are not those of its columns ({error})") from error
        rows = self.table.column("rows").to_numpy().astype(np.int64)
        codes = [places_of(self.table, column) for column in self.table.column_names if column.startswith("shared:")]
        cells = Cells(
            peer=self.peer,
            columns=tuple(names),
            centre=np.array(self.metadata["centre"], dtype=np.float64),
            scale=np.array(self.metadata["scale"], dtype=np.float64),
            codes=np.array(codes, dtype=np.int64).reshape(len(codes), len(rows)).T,
            labels=places_of(self.table, "label"),
            rows=rows,
            sums=matrix_of(self.table, [f"sum:{name}" for name in names]),
            present=np.broadcast_to(rows[:, None], (len(rows), len(names))),
            shared=csr_array((len(rows), 0)),
            by_label=np.empty((0, 0, 0)),
            levels=self._levels(),
        )
        check_alone(cells, private, self.table.column("label").to_pylist(), self.metadata["policy"])

    def _levels(self) -> Levels:
        return Levels(**{name: float(level) for name, level in self.metadata["levels"].items()})

    def score_tables(self) -> ScoreTables:
        """What a part of scores holds beside its cells."""
        return ScoreTables.of(self.metadata)

    def scores(self, contract: Contract) -> ScoreCells:
        """The numbers of a part of scores, checked and read under the contract it was made for."""
        if not self.of_scores:
            raise broken(self.peer, "it holds no scores, and the contract asks for them")
        return read_scores(self.table, self.metadata, contract)

    def cells(self, contract: Contract) -> Cells:
        """The part's numbers, checked and read under the contract it was made for."""
        if self.of_scores:
            raise broken(self.peer, "it holds scores, and the contract asks for columns")
        check_agreed(self.metadata, self.table.column_names, contract)
        names = tuple(column.name for column in summed_columns(contract, self.peer))
        codes, labels = codes_of(self.table, contract, self.peer), labels_of(self.table, contract, self.peer)
        check_keys(codes, labels, contract, self.peer)
        rows = self.table.column("rows").to_numpy().astype(np.int64)
        centre, scale = (np.array(self.metadata[name], dtype=np.float64) for name in ("centre", "scale"))
        bound = self.metadata["policy"]["bound"]
        cells = Cells(
            peer=self.peer,
            columns=names,
            centre=centre,
            scale=scale,
            codes=codes,
            labels=labels,
            rows=rows,
            sums=matrix_of(self.table, [f"sum:{name}" for name in names]),
            present=present_of(self.table, names, rows, self.peer),
            shared=shared_sums_of(self.table, contract, codes, rows, self.peer),
            by_label=np.empty((0, 0, 0)),
            levels=self._levels(),
            constants={name: tuple(values) for name, values in self.metadata["constants"].items()},
            limits=None if bound is None else (centre - bound * scale, centre + bound * scale),
        )
        hidden = dict(zip(moment_labels(contract, self.peer).values(), hidden_columns(contract, cells), strict=True))
        try:
            moments = unpack_by_label(self.metadata, hidden, len(names), len(contract.shared_columns))
        except ValueError as error:
            raise broken(self.peer, f"its moments are not those of its columns and labels ({error})") from error
        check_numbers(cells, contract, *moments, self.metadata["policy"])
        return replace(cells, by_label=assemble(contract, cells, *moments))

    def _check_leave(self) -> None:
        headless = self.metadata["policy"]["mode"] == "noise" and self.metadata["ledger"] is None
        if self._stays or headless or not (self._ledger is None or self._ledger.lets_out(self.metadata["hash"])):
            raise PolicyRefusal(
                "This part was made to stay in memory and is in no ledger. To have it as a file give "
                "`radocraft.share` an output, or use `radocraft craft`."
            )

    def _stream(self, sink: Any) -> None:
        words = [name for name in self.table.column_names if name.startswith(WORDS)]
        lean = {"compression": "zstd", "use_dictionary": words, "write_statistics": False, "store_schema": False}
        with pq.ParquetWriter(sink, self.table.schema, **lean) as writer:
            writer.write_table(self.table)
            writer.add_key_value_metadata({KEY: json.dumps(self.metadata)})


def _describe(release: Release[Any]) -> dict[str, Any]:
    cells, contract = release.cells, release.contract
    return {
        "format": FORMAT,
        "radocraft": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "contract": contract.name,
        "fingerprint": contract.fingerprint,
        "peer": cells.peer,
        "rows": cells.total,
        "policy": policy_words(release),
        "notes": [*release.notes],
        **(_of_scores(cells, contract) if isinstance(cells, ScoreCells) else _of_columns(cells, contract)),
    }


def _of_columns(cells: Cells, contract: Contract) -> dict[str, Any]:
    hidden = dict(zip(moment_labels(contract, cells.peer).values(), hidden_columns(contract, cells), strict=True))
    return {
        "levels": asdict(cells.levels),
        "columns": [*cells.columns],
        "centre": cells.centre.tolist(),
        "scale": cells.scale.tolist(),
        "constants": {name: [*values] for name, values in cells.constants.items()},
        **pack_by_label(*taken_apart(contract, cells), hidden),
    }


def _of_scores(cells: ScoreCells, contract: Contract) -> dict[str, Any]:
    return {
        "levels": asdict(Levels(rows=cells.levels.rows, sums=cells.levels.sums)),
        "columns": score_columns(contract.score_of(cells.peer)[0]),
        "centre": [cells.centre, 0.0],
        "scale": [UNIT, UNIT],
        "constants": {},
        "moments": {},
        "hidden": {},
        "scores": describe_scores(cells, contract),
    }


def _each_column(file: pq.ParquetFile) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """One column after the other, so that no more than one is there packed and unpacked."""
    for name in file.schema_arrow.names:
        yield name, file.read([name]).column(name)


def _check(file: Opened, columns: Iterable[tuple[str, pa.ChunkedArray]], name: str) -> dict[str, Any]:
    """The metadata, if format, hash and every field and column are as they should be."""
    metadata = parse(file.text)
    if metadata.get("format") != FORMAT:
        given = ascii(str(metadata.get("format"))[:20])[1:-1]
        raise FileError(f"'{name}' has format {given}; this version of radocraft reads {FORMAT}.")
    wrong: list[str | None] = []

    def looked_at() -> Iterator[tuple[str, pa.ChunkedArray]]:
        for column, values in columns:
            wrong.append(check_column(column, values))
            if column == "rows" and metadata.get("rows") != pc.sum(values).as_py():
                wrong.append("the rows of its cells do not add up to its total")
            yield column, values

    if _hash(looked_at(), metadata) != metadata.get("hash"):
        raise Tampered(f"'{name}' does not match its hash: it was changed after release. Ask the peer for it again.")
    if found := next(filter(None, [check_fields(metadata), *wrong]), None):
        raise refused(name, found)
    return metadata


def _hash(columns: Iterable[tuple[str, pa.ChunkedArray]], metadata: dict[str, Any]) -> str:
    """SHA-256 over the metadata and the columns, the same however the file is cut and packed."""
    body = {key: value for key, value in metadata.items() if key not in _UNHASHED}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode())
    for name, chunks in columns:
        digest.update(json.dumps([name, str(chunks.type), len(chunks)]).encode())
        for piece in _words(chunks) if pa.types.is_dictionary(chunks.type) else _numbers(chunks):
            digest.update(piece)
    return digest.hexdigest()


def _words(chunks: pa.ChunkedArray) -> Iterator[bytes]:
    """The words there are, in order, and the place of each row's: long words in many rows take no more room."""
    column = chunks.unify_dictionaries().combine_chunks()
    words = [*map(str, column.dictionary.to_pylist())]
    there = sorted({words[index] for index in pc.unique(column.indices.drop_null()).to_pylist()})
    places = {word: place for place, word in enumerate(there)}
    ranks = np.array([places.get(word, -1) for word in words] or [-1], dtype="<i4")
    yield json.dumps(there).encode()
    yield column.is_null().to_numpy(zero_copy_only=False).tobytes()
    yield ranks[column.indices.fill_null(0).to_numpy()].tobytes()


def _numbers(chunks: pa.ChunkedArray) -> Iterator[bytes]:
    column = chunks.combine_chunks()
    yield column.is_null().to_numpy(zero_copy_only=False).tobytes()
    yield column.fill_null(0).to_numpy(zero_copy_only=False).tobytes()
