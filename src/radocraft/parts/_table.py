"""A part's table, one row per cell: written and read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array, csr_array

from radocraft.arrays import Floats, Ints, dense
from radocraft.contract import ANY, Contract
from radocraft.parts._check import broken
from radocraft.sums import ROLLED, Cells, encoded_sums

_ROWS = 4096


def tabulate(cells: Cells, contract: Contract) -> pa.Table:
    """The table of some cells."""
    columns: dict[str, pa.Array] = {}
    for index, shared in enumerate(contract.shared):
        words = pa.array([*shared.codes, ANY])
        columns[f"shared:{shared.name}"] = words.take(pa.array(cells.codes[:, index] % len(words))).dictionary_encode()
    codes, names = zip(*sorted(contract.label_names.items()), strict=True)
    columns["label"] = pa.array(names, pa.string()).take(np.searchsorted(codes, cells.labels)).dictionary_encode()
    columns["rows"] = pa.array(cells.rows, pa.int64())
    for index, name in enumerate(cells.columns):
        columns[f"sum:{name}"] = pa.array(cells.sums[:, index])
        if (cells.present[:, index] < cells.rows).any():
            columns[f"present:{name}"] = pa.array(cells.present[:, index], pa.int64())
    start = 0
    for index, shared in enumerate(contract.shared):
        known, stop = cells.codes[:, index] != ROLLED, start + len(shared.encoded)
        if not known.all():
            for name, sums in zip(shared.encoded, cells.shared[:, start:stop].toarray().T, strict=True):
                columns[f"shared-sum:{name}"] = pa.array(sums, mask=known)
        start = stop
    return pa.table(columns)


def codes_of(table: pa.Table, contract: Contract, peer: str) -> Ints:
    """Codes of the shared features by cell, `ROLLED` for any."""
    codes = np.empty((table.num_rows, len(contract.shared)), dtype=np.int64)
    for index, shared in enumerate(contract.shared):
        places = _places(table, f"shared:{shared.name}", (*shared.codes, ANY), peer)
        codes[:, index] = np.where(places == len(shared.codes), ROLLED, places)
    return codes


def labels_of(table: pa.Table, contract: Contract, peer: str) -> Ints:
    """The label's code by cell; a peer that lacks the label may have labelled its rows itself."""
    names = contract.label_codes(peer) if contract.labelled(peer) else contract.label_names
    return np.array([*names], dtype=np.int64)[_places(table, "label", names.values(), peer)]


def present_of(table: pa.Table, names: tuple[str, ...], rows: Ints, peer: str) -> Ints:
    """How many values are behind each sum: the rows, which take no room, unless something is missing somewhere.

    Else in the narrowest integers that hold them: a learner has no use for them.
    """
    out = np.broadcast_to(rows[:, None], (len(rows), len(names)))
    gaps = [index for index, name in enumerate(names) if f"present:{name}" in table.column_names]
    if gaps:
        out = out.astype(np.min_scalar_type(-int(rows.max()) - 1))
    for index in gaps:
        present = table.column(f"present:{names[index]}").to_numpy()
        if (present < 0).any() or (present > rows).any():
            raise broken(peer, "more values are present than there are rows")
        out[:, index] = present
    return out


def shared_sums_of(table: pa.Table, contract: Contract, codes: Ints, rows: Ints, peer: str) -> csr_array:
    """Sums of the shared columns by cell: from the code where it is known, else as released."""
    hidden, start = csr_array((len(rows), len(contract.shared_columns))), 0
    for index, shared in enumerate(contract.shared):
        rolled = codes[:, index] == ROLLED
        cells = np.flatnonzero(rolled)
        for place, name in enumerate((f"shared-sum:{name}" for name in shared.encoded), start=start):
            if (name in table.column_names) != rolled.any():
                raise broken(peer, f"'{name}' is not there just where the code is '{ANY}'")
            if not len(cells):
                continue
            column = table.column(name)
            if (column.is_valid().to_numpy() != rolled).any():
                raise broken(peer, f"'{name}' is not there just where the code is '{ANY}'")
            places = (cells, np.full(len(cells), place))
            hidden += csr_array(coo_array((column.drop_null().to_numpy(), places), shape=hidden.shape))
        start += len(shared.encoded)
    out = csr_array(encoded_sums(contract, codes, rows) + hidden)
    out.eliminate_zeros()
    return out


def places_of(table: pa.Table, name: str) -> Ints:
    """Where each word of a column stands among all that are there, whatever they are."""
    column = table.column(name).unify_dictionaries().combine_chunks()
    words = column.dictionary.to_pylist()
    first = {word: place for place, word in reversed([*enumerate(words)])}
    places = np.array([first[word] for word in words], dtype=np.int64)
    return np.asarray(places[column.indices.to_numpy()])


def matrix_of(table: pa.Table, names: list[str]) -> Floats:
    """Columns side by side, put there a few thousand rows at a time."""
    out, low = np.empty((table.num_rows, len(names))), 0
    for batch in table.select(names).to_batches(max_chunksize=_ROWS):
        out[low : low + batch.num_rows] = dense(batch)
        low += batch.num_rows
    return out


def _places(table: pa.Table, name: str, among: Iterable[str], peer: str) -> Ints:
    """Where each word of a column stands among those there can be."""
    column = table.column(name).unify_dictionaries().combine_chunks()
    places = pc.index_in(column.dictionary, pa.array([*among], pa.string())).take(column.indices)
    if places.null_count:
        raise broken(peer, f"its column '{name}' contains a code that is not in the contract")
    return np.asarray(places.to_numpy(), dtype=np.int64)
