"""The part: the only thing that leaves a peer.

A Parquet file (zstd), one row per cell, that any Parquet reader opens:

=====================  =======================================================
``shared:NAME``        the cell's code of that shared feature, or ``any``
``label``              the label's value
``rows``               number of rows in the cell
``sum:COLUMN``         sum of a private column, in the model's units
``present:COLUMN``     how many values are behind the sum, only where some are
                       missing somewhere
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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from radocraft.arrays import Floats, Ints
from radocraft.cells import ROLLED, Cells
from radocraft.contract import Contract
from radocraft.encoding import private_columns
from radocraft.errors import ContractMismatch, FileError, Tampered
from radocraft.features import ANY, show
from radocraft.policy import Release
from radocraft.storage import writing
from radocraft.version import __version__

FORMAT = 1
_KEY = b"radocraft"


@dataclass(frozen=True)
class Part:
    """A released table and its metadata.

    `Part.seal` makes one from a release and from nothing else; `Part.read`
    reads one back and refuses it if it was changed.
    """

    table: pa.Table
    metadata: dict[str, Any]

    @classmethod
    def seal(cls, release: Release) -> Part:
        """Make the part of a release."""
        table = _tabulate(release.cells, release.contract)
        metadata = _describe(release)
        return cls(table, {**metadata, "hash": _hash(table, metadata)})

    @classmethod
    def read(cls, path: str | Path | IO[bytes], name: str | None = None) -> Part:
        """Read a part, called ``name`` in messages, and check its format and its hash."""
        name = name or str(path)
        try:
            with pq.ParquetFile(path) as file:
                table, metadata = file.read(), {**json.loads(file.metadata.metadata[_KEY])}
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"'{name}' is not a readable part: it is missing, cut short or something else. "
                "Ask the peer for it again."
            ) from error
        if metadata.get("format") != FORMAT:
            raise FileError(f"'{name}' has format {metadata.get('format')}; this version of radocraft reads {FORMAT}.")
        part = cls(table.replace_schema_metadata(None), metadata)
        body = {key: value for key, value in metadata.items() if key != "hash"}
        if _hash(part.table, body) != metadata.get("hash"):
            raise Tampered(
                f"'{name}' does not match its hash: it was changed after release. Ask the peer for it again."
            )
        return part

    def write(self, path: str | Path) -> None:
        """Write the part to a Parquet file, whole or not at all."""
        with writing(path) as file:
            self._write(file)

    def _write(self, sink: Any) -> None:
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
        sink = pa.BufferOutputStream()
        self._write(sink)
        return int(sink.getvalue().size)

    def cells(self, contract: Contract) -> Cells:
        """The part's numbers, read under the contract it was made for."""
        if self.metadata["fingerprint"] != contract.fingerprint:
            raise ContractMismatch(
                f"The part of '{self.peer}' was made under the contract '{self.metadata['contract']}' "
                f"({self.metadata['fingerprint'][:12]}), not this one ({contract.fingerprint[:12]}). "
                "Have the peer craft it anew under the same file."
            )
        names = tuple(column.name for column in private_columns(contract, self.peer))
        rows = self._numbers("rows").astype(np.int64)
        codes = _codes(self.table, contract)
        size = len(names) + len(contract.shared_columns) + 1
        return Cells(
            peer=self.peer,
            columns=names,
            centre=np.array(self.metadata["centre"]),
            scale=np.array(self.metadata["scale"]),
            codes=codes,
            labels=np.where(self._texts("label") == show(contract.label.positive), 1, -1),
            rows=rows,
            sums=self._stack([self._numbers(f"sum:{name}") for name in names]),
            present=self._stack([self._numbers(f"present:{name}", rows) for name in names]).astype(np.int64),
            shared=self._shared_sums(contract, codes, rows),
            moments=_unpack(self.metadata["moments"], size),
            noise=float((self.metadata.get("noise") or {}).get("moments", 0.0)),
            constants={name: tuple(values) for name, values in self.metadata["constants"].items()},
        )

    def _shared_sums(self, contract: Contract, codes: Ints, rows: Ints) -> Floats:
        """Sums of the shared columns: from the code where it is known, else as released."""
        pieces = []
        for at, shared in enumerate(contract.shared):
            known = shared.matrix[codes[:, at]] * rows[:, None]
            zeros = np.zeros(len(rows))
            given = self._stack([self._numbers(f"shared-sum:{name}", zeros) for name in shared.encoded])
            pieces.append(np.where((codes[:, at] == ROLLED)[:, None], given, known))
        return np.hstack([np.empty((len(rows), 0)), *pieces])

    def _stack(self, columns: list[Floats]) -> Floats:
        return np.column_stack([np.empty((self.table.num_rows, 0)), *columns])

    def _numbers(self, name: str, default: Floats | Ints | None = None) -> Floats:
        if name not in self.table.column_names and default is not None:
            return default.astype(np.float64)
        return np.asarray(self.table.column(name).to_numpy(), dtype=np.float64)

    def _texts(self, name: str) -> np.ndarray[Any, np.dtype[np.object_]]:
        return np.array(self.table.column(name).to_pylist(), dtype=object)


def _tabulate(cells: Cells, contract: Contract) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for at, shared in enumerate(contract.shared):
        words = pa.array([*shared.codes, ANY])
        columns[f"shared:{shared.name}"] = words.take(pa.array(cells.codes[:, at] % len(words))).dictionary_encode()
    values = np.array([show(value) for value in contract.label.values], dtype=object)
    columns["label"] = pa.array(values[(cells.labels > 0).astype(int)], pa.string()).dictionary_encode()
    columns["rows"] = pa.array(cells.rows)
    for at, name in enumerate(cells.columns):
        columns[f"sum:{name}"] = pa.array(cells.sums[:, at])
        if (cells.present[:, at] < cells.rows).any():
            columns[f"present:{name}"] = pa.array(cells.present[:, at])
    start = 0
    for at, shared in enumerate(contract.shared):
        rolled = cells.codes[:, at] == ROLLED
        for offset, name in enumerate(shared.encoded):
            if rolled.any():
                columns[f"shared-sum:{name}"] = pa.array(cells.shared[:, start + offset], mask=~rolled)
        start += len(shared.encoded)
    return pa.table(columns)


def _codes(table: pa.Table, contract: Contract) -> Ints:
    codes = np.empty((table.num_rows, len(contract.shared)), dtype=np.int64)
    for at, shared in enumerate(contract.shared):
        index = {code: number for number, code in enumerate(shared.codes)} | {ANY: ROLLED}
        codes[:, at] = [index[code] for code in table.column(f"shared:{shared.name}").to_pylist()]
    return codes


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


def _hash(table: pa.Table, metadata: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        digest.update(f"\0{name}\0".encode())
        if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
            digest.update("\0".join(column.to_pylist()).encode())
        else:
            digest.update(column.is_null().to_numpy(zero_copy_only=False).tobytes())
            digest.update(column.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return digest.hexdigest()
