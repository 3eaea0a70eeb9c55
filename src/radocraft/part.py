"""The part: the only thing that leaves a peer.

A Parquet file (zstd), one row per cell, that any Parquet reader opens:

=====================  =======================================================
``shared:NAME``        the cell's code of that shared feature, or ``any``
``label``              the label's value; ``any`` from a peer that lacks it (unless
                       it labelled its rows itself, which its notes then say)
``rows``               number of rows in the cell
``sum:COLUMN``         sum of a private column, in the model's units; of a numeric
                       label likewise
``present:COLUMN``     how many values are behind the sum, only where some are
                       missing somewhere, and nowhere a few
``shared-sum:COLUMN``  sum of a shared column of the model, only in cells where
                       the code is ``any`` (else it follows from the code)
=====================  =======================================================

and one JSON value under the key ``radocraft`` of the file's metadata: format
version, contract and fingerprint, peer, time, what the policy did, centre and
scale of every private column, the moment matrix over the whole table (private
columns, shared columns, 1; its upper triangle row by row, as base64 of
little-endian doubles), and a
SHA-256 over all of that and the table.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import coo_array, csr_array

from radocraft.arrays import Floats, Ints
from radocraft.cells import ROLLED, Cells, encoded_sums
from radocraft.contract import Contract
from radocraft.encoding import summed_columns
from radocraft.errors import ContractMismatch, FileError, PolicyRefusal, Tampered
from radocraft.features import ANY
from radocraft.moments import dense
from radocraft.policy import Release
from radocraft.storage import writing
from radocraft.version import __version__

FORMAT = 1
_KEY = b"radocraft"
_ROWS = 4096


@dataclass(frozen=True)
class Part:
    """A released table and its metadata.

    `Part.seal` makes one from a release and from nothing else; `Part.read`
    reads one back and refuses it if it was changed.

    Examples
    --------
    >>> import tempfile
    >>> import radocraft as rc
    >>> contract, tables = rc.example_peers(rows=2000)
    >>> part = rc.Part.seal(rc.release(rc.craft(tables["bank"], contract, "bank"), contract))
    >>> file = Path(tempfile.mkdtemp()) / "bank.part.parquet"
    >>> part.write(file)
    >>> rc.Part.read(file).peer, min(part.table["rows"].to_pylist()) >= 10
    ('bank', True)
    """

    table: pa.Table
    metadata: dict[str, Any]
    _bytes: int | None = field(default=None, repr=False, compare=False)

    @classmethod
    def seal(cls, release: Release, *, ledger: str | None = None) -> Part:
        """Make the part of a release.

        Where the peer's policy keeps a ledger, whoever seals says which one it
        will be written to before it leaves; `radocraft.let_go` does all of that.
        """
        if release.ledger != ledger:
            raise PolicyRefusal(
                f"The policy keeps a ledger ('{release.ledger}'), and nothing leaves that is not in it. "
                "Use radocraft.let_go(release, policy, table, output), or `radocraft craft`."
            )
        table = _tabulate(release.cells, release.contract)
        metadata = _describe(release)
        columns = ((name, table.column(name)) for name in table.column_names)
        return cls(table, {**metadata, "hash": _hash(columns, metadata)})

    @classmethod
    def read(cls, path: str | Path | IO[bytes], name: str | None = None) -> Part:
        """Read a part, called ``name`` in messages, and check its format and its hash."""
        name, columns = name or str(path), {}

        def kept(found: Iterable[tuple[str, pa.ChunkedArray]]) -> Iterator[tuple[str, pa.ChunkedArray]]:
            for column, values in found:
                columns[column] = values
                yield column, values

        with _opened(path, name) as file:
            metadata = _check(file, kept(_each_column(file)), name)
        return cls(pa.table(columns), metadata, Path(path).stat().st_size if isinstance(path, str | Path) else None)

    @classmethod
    def verify(cls, path: str | Path, name: str | None = None) -> dict[str, Any]:
        """Check a part as `read` does, one column at a time; gives its metadata alone."""
        name = name or str(path)
        with _opened(path, name) as file:
            return _check(file, _each_column(file), name)

    def write(self, path: str | Path) -> None:
        """Write the part to a Parquet file, whole or not at all."""
        with writing(path) as file:
            self.stream(file)

    def stream(self, sink: Any) -> None:
        """Write the bytes of that file to an open file or buffer."""
        words = [name for name in self.table.column_names if name.startswith("shared:") or name == "label"]
        lean = {"compression": "zstd", "use_dictionary": words, "write_statistics": False, "store_schema": False}
        with pq.ParquetWriter(sink, self.table.schema, **lean) as writer:
            writer.write_table(self.table)
            writer.add_key_value_metadata({_KEY: json.dumps(self.metadata)})

    @property
    def peer(self) -> str:
        """Whose part it is."""
        return str(self.metadata["peer"])

    @property
    def nbytes(self) -> int:
        """How many bytes leave, as a file."""
        if self._bytes is not None:
            return self._bytes
        sink = pa.BufferOutputStream()
        self.stream(sink)
        return int(sink.getvalue().size)

    def cells(self, contract: Contract) -> Cells:
        """The part's numbers, read under the contract it was made for."""
        if self.metadata["fingerprint"] != contract.fingerprint:
            raise ContractMismatch(
                f"The part of '{self.peer}' was made under the contract '{self.metadata['contract']}' "
                f"({self.metadata['fingerprint'][:12]}), not this one ({contract.fingerprint[:12]}). "
                "Have the peer craft it anew under the same file."
            )
        names = tuple(column.name for column in summed_columns(contract, self.peer))
        rows = self._numbers("rows").astype(np.int64)
        codes = _codes(self.table, contract)
        size = len(names) + len(contract.shared_columns) + 1
        label_codes = contract.label_names
        return Cells(
            peer=self.peer,
            columns=names,
            centre=np.array(self.metadata["centre"]),
            scale=np.array(self.metadata["scale"]),
            codes=codes,
            labels=np.array([*label_codes], dtype=np.int64)[_places(self.table.column("label"), label_codes.values())],
            rows=rows,
            sums=self._matrix([f"sum:{name}" for name in names]),
            present=self._present(names, rows),
            shared=self._shared_sums(contract, codes, rows),
            moments=_unpack(self.metadata["moments"], size),
            noise=float((self.metadata.get("noise") or {}).get("moments", 0.0)),
            total_noise=float((self.metadata.get("noise") or {}).get("totals", 0.0)),
            constants={name: tuple(values) for name, values in self.metadata["constants"].items()},
        )

    def _present(self, names: tuple[str, ...], rows: Ints) -> Ints:
        """How many values are behind each sum: the rows, which take no room, unless something is missing somewhere.

        Else in the narrowest integers that hold them: a learner has no use for them.
        """
        out = np.broadcast_to(rows[:, None], (len(rows), len(names)))
        gaps = [at for at, name in enumerate(names) if f"present:{name}" in self.table.column_names]
        if gaps:
            out = out.astype(np.min_scalar_type(-int(rows.max()) - 1))
        for at in gaps:
            out[:, at] = self._numbers(f"present:{names[at]}")
        return out

    def _shared_sums(self, contract: Contract, codes: Ints, rows: Ints) -> csr_array:
        """Sums of the shared columns: from the code where it is known, else as released."""
        out, start = encoded_sums(contract, codes, rows), 0
        for at, shared in enumerate(contract.shared):
            if len(rolled := np.flatnonzero(codes[:, at] == ROLLED)):
                found = coo_array(self._matrix([f"shared-sum:{name}" for name in shared.encoded])[rolled])
                out += csr_array((found.data, (rolled[found.row], start + found.col)), shape=out.shape)
            start += len(shared.encoded)
        return out

    def _matrix(self, names: list[str]) -> Floats:
        """Columns side by side, put there a few thousand rows at a time."""
        out, low = np.empty((self.table.num_rows, len(names))), 0
        for batch in self.table.select(names).to_batches(max_chunksize=_ROWS):
            out[low : low + batch.num_rows] = dense(batch)
            low += batch.num_rows
        return out

    def _numbers(self, name: str) -> Floats:
        return np.asarray(self.table.column(name).to_numpy(), dtype=np.float64)


def _tabulate(cells: Cells, contract: Contract) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for at, shared in enumerate(contract.shared):
        words = pa.array([*shared.codes, ANY])
        columns[f"shared:{shared.name}"] = words.take(pa.array(cells.codes[:, at] % len(words))).dictionary_encode()
    codes, names = zip(*sorted(contract.label_names.items()), strict=True)
    columns["label"] = pa.array(names, pa.string()).take(np.searchsorted(codes, cells.labels)).dictionary_encode()
    columns["rows"] = pa.array(cells.rows)
    for at, name in enumerate(cells.columns):
        columns[f"sum:{name}"] = pa.array(cells.sums[:, at])
        if (cells.present[:, at] < cells.rows).any():
            columns[f"present:{name}"] = pa.array(cells.present[:, at])
    start = 0
    for at, shared in enumerate(contract.shared):
        known, stop = cells.codes[:, at] != ROLLED, start + len(shared.encoded)
        if not known.all():
            for name, sums in zip(shared.encoded, cells.shared[:, start:stop].toarray().T, strict=True):
                columns[f"shared-sum:{name}"] = pa.array(sums, mask=known)
        start = stop
    return pa.table(columns)


def _codes(table: pa.Table, contract: Contract) -> Ints:
    codes = np.empty((table.num_rows, len(contract.shared)), dtype=np.int64)
    for at, shared in enumerate(contract.shared):
        places = _places(table.column(f"shared:{shared.name}"), (*shared.codes, ANY))
        codes[:, at] = np.where(places == len(shared.codes), ROLLED, places)
    return codes


def _places(words: pa.ChunkedArray, among: Iterable[str]) -> Ints:
    """Where each word stands among some."""
    found = pc.index_in(words.cast(pa.string()), pa.array([*among], pa.string()))
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _describe(release: Release) -> dict[str, Any]:
    cells, contract = release.cells, release.contract
    return {
        "format": FORMAT,
        "radocraft": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "contract": contract.name,
        "fingerprint": contract.fingerprint,
        "peer": cells.peer,
        "rows": cells.total,
        "policy": {
            "mode": release.mode,
            "min_rows": release.min_rows,
            "guarantee": release.guarantee,
            "blocks_rolled_up": release.blocks_rolled_up,
            "rows_rolled_up": release.rows_rolled_up,
        },
        "noise": release.noise,
        "notes": list(release.notes),
        "columns": list(cells.columns),
        "centre": cells.centre.tolist(),
        "scale": cells.scale.tolist(),
        "constants": cells.constants,
        "moments": _pack(cells.moments),
    }


def _pack(moments: Floats) -> str:
    upper = moments[np.triu_indices(len(moments))]
    return base64.b64encode(upper.astype("<f8").tobytes()).decode()


def _unpack(text: str, size: int) -> Floats:
    moments = np.zeros((size, size))
    moments[np.triu_indices(size)] = np.frombuffer(base64.b64decode(text), dtype="<f8")
    return moments + np.triu(moments, 1).T


@contextmanager
def _opened(path: str | Path | IO[bytes], name: str) -> Iterator[pq.ParquetFile]:
    if isinstance(path, str | Path) and (Path(path).is_dir() or not Path(path).exists()):
        why = "it is a folder" if Path(path).is_dir() else "No such file or directory"
        raise FileError(f"Cannot read the part '{name}': {why}. Check the path.")
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"'{name}' is not a readable part: it is cut short or something else. Ask the peer for it again."
        ) from error


def _each_column(file: pq.ParquetFile) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """One column after the other, so that no more than one is there packed and unpacked."""
    for name in file.schema_arrow.names:
        yield name, file.read([name]).column(name)


def _check(file: pq.ParquetFile, columns: Iterable[tuple[str, pa.ChunkedArray]], name: str) -> dict[str, Any]:
    """The metadata, if format and hash are as they should be."""
    metadata = {**json.loads(file.metadata.metadata[_KEY])}
    if metadata.get("format") != FORMAT:
        raise FileError(f"'{name}' has format {metadata.get('format')}; this version of radocraft reads {FORMAT}.")
    body = {key: value for key, value in metadata.items() if key != "hash"}
    if _hash(columns, body) != metadata.get("hash"):
        raise Tampered(f"'{name}' does not match its hash: it was changed after release. Ask the peer for it again.")
    return metadata


def _hash(columns: Iterable[tuple[str, pa.ChunkedArray]], metadata: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, chunks in columns:
        column = chunks.combine_chunks()
        digest.update(f"\0{name}\0".encode())
        if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
            words = pa.LargeListArray.from_arrays([0, len(column)], column.cast(pa.large_string()))
            digest.update(pc.binary_join(words, pa.scalar("\0", pa.large_string()))[0].as_buffer())
        else:
            digest.update(column.is_null().to_numpy(zero_copy_only=False).tobytes())
            digest.update(column.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return digest.hexdigest()
