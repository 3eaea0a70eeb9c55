"""Checks of whatever arrives, as if an attacker had made it.

`footer` sees that a file unpacks to no more than a part can, `metadata` that every
field is of its kind; here the numbers must fit the contract and one another: known
codes and labels, each cell once, sums within what bounding allows, counts that
agree, and moments that some rows could have. Where there is noise, six of its
standard deviations are allowed for. False numbers that real rows could have produced pass
all of this: whether a peer's table is true, no check of a file can know.

That moments and sums fit is one inequality. With Q a label's second moments and
s_c, n_c a cell's sums and rows, what is left inside the cells is positive
semi-definite:

    Q - sum_c s_c s_c^T / n_c >= 0

(Cauchy-Schwarz in every direction.) Sums grown five-fold, negative moments and
moments of another label break it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from radocraft.arrays import Floats, Ints, number_rows, one_thread
from radocraft.contract import (
    ANY_LABEL,
    Boolean,
    Categorical,
    Contract,
    moment_labels,
    odd_constants,
    summed_columns,
)
from radocraft.errors import ContractMismatch, FileError
from radocraft.parts._footer import WORDS, refused
from radocraft.parts._hidden import hidden_columns
from radocraft.parts._metadata import LARGEST
from radocraft.parts._sign import check_signature
from radocraft.sums import ROLLED, Bounds, Cells, hidden_sums, of_label

_SDS = 6.0
_CLOSE = 1e-9
_GRID = 1e-3  # values are rounded to a grid of 1/1024
_CHUNK = 4096


def check_column(name: str, column: pa.ChunkedArray) -> str | None:
    """What is wrong with a column whatever the contract, if anything is."""
    if name.startswith(WORDS):
        return "a code or label is missing" if column.null_count else None
    if column.null_count and not name.startswith("shared-sum:"):
        return "a number is missing"
    if len(column) == column.null_count:
        return "a column is empty"
    low, high = pc.min_max(column).values()
    if name == "rows":
        return None if low.as_py() >= 1 and high.as_py() <= 2**53 else "a cell has no rows"
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return "a number is not finite"
    return None if max(-low.as_py(), high.as_py()) <= LARGEST else "a number is not finite, or far too large"


def check_agreed(metadata: dict[str, Any], names: list[str], contract: Contract) -> None:
    """The part must be of this contract: its peer, columns and units, and the peer's signature where it is listed."""
    peer = metadata["peer"]
    if metadata["fingerprint"] != contract.fingerprint:
        raise ContractMismatch(
            f"The part of '{peer}' was made under the contract '{metadata['contract']}' "
            f"({metadata['fingerprint'][:12]}), not this one ({contract.fingerprint[:12]}). "
            "Have the peer craft it anew under the same file."
        )
    if peer not in contract.peers:
        raise ContractMismatch(f"The contract has no peer '{peer}'. Its peers are: {', '.join(contract.peers)}.")
    if (public := contract.peers[peer].public_key) is not None:
        check_signature(metadata["hash"], metadata.get("signature"), public, peer)
    if metadata["contract"] != contract.name:
        raise broken(peer, "it has another name for the contract")
    columns = summed_columns(contract, peer)
    if metadata["columns"] != [column.name for column in columns]:
        raise broken(peer, "its private columns are not the contract's")
    for column, *units in zip(columns, metadata["centre"], metadata["scale"], strict=True):
        if column.centre is not None and units != [column.centre, column.scale]:
            raise broken(peer, f"'{column.name}' is not in the contract's units")
    if name := odd_constants(contract, peer, metadata["constants"]):
        raise broken(peer, f"its constants of '{name}' are not what the contract leaves open")
    _check_names(names, contract, peer, exact=metadata["policy"]["mode"] == "exact")


def broken(peer: str, why: str) -> FileError:
    """The error for a part whose content cannot be."""
    return refused(f"the part of {peer}", why)


def _check_names(names: list[str], contract: Contract, peer: str, *, exact: bool) -> None:
    columns = [column.name for column in summed_columns(contract, peer)]
    needed = {f"shared:{shared.name}" for shared in contract.shared} | {"label", "rows"}
    needed |= {f"sum:{name}" for name in columns}
    allowed = {f"present:{name}" for name in columns} if exact else set()
    allowed |= {f"shared-sum:{name}" for name in contract.shared_columns}
    if missing := sorted(needed - {*names}):
        raise broken(peer, f"its table has no column '{missing[0]}'")
    if {*names} - needed - allowed:
        raise broken(peer, "its table has a column that is not the contract's")


def check_keys(codes: Ints, labels: Ints, contract: Contract, peer: str) -> None:
    """Codes known up to a last one, then "any"; labels that the peer's rows can have; each cell once."""
    rolled = codes == ROLLED
    if (rolled[:, :-1] & ~rolled[:, 1:]).any():
        raise broken(peer, "a cell has a code after one that is rolled up")
    if not contract.labelled(peer) and (labels == ANY_LABEL).any() and (labels != ANY_LABEL).any():
        raise broken(peer, "some of its cells have a label and some have none")
    keys = np.column_stack([codes, labels])
    if number_rows(keys).max() + 1 < len(keys):
        raise broken(peer, "a cell is there twice")


@one_thread
def check_numbers(cells: Cells, contract: Contract, private: Floats, hidden: Floats, policy: dict[str, Any]) -> None:
    """Counts, sums and moments must be such as some rows have; ``private`` and ``hidden`` as for `assemble`."""
    bounds = None if policy["bound"] is None else Bounds(column=policy["bound"], row=policy["row_bound"])
    low, high = _ranges(cells.peer, contract, bounds)
    _check_present(cells)
    _check_sums(cells, low, high, noisy=bounds is not None)
    _check_one_hot(cells, contract, noisy=bounds is not None)
    _check_shared_sums(cells, contract)
    norm = np.inf if bounds is None else bounds.norm(contract, cells.peer)
    which, columns = of_label(contract, cells.peer, cells.labels), hidden_columns(contract, cells)
    unknown = hidden_sums(contract, cells)
    for index, label in enumerate(moment_labels(contract, cells.peer).values()):
        mine = np.flatnonzero(which == index)
        if len(mine):
            _check_size(cells, mine, private[index], np.maximum(low**2, high**2), norm)
            _check_squares(cells, contract, mine, np.diag(private[index]))
            _check_scatter(
                cells, mine, _with_hidden(private[index], hidden[index], columns[index]), unknown[:, columns[index]]
            )
        elif (np.abs(private[index]) > _SDS * cells.levels.moments).any():
            raise broken(cells.peer, f"it has moments of the label '{label}', and no rows")


@one_thread
def check_alone(cells: Cells, private: dict[str, Floats], words: list[str], policy: dict[str, Any]) -> None:
    """What can be checked without the contract: each cell once, and numbers that some rows could have.

    Parameters
    ----------
    cells
        The part's; codes and labels are places in whatever words it uses.
    private
        Second moments of the private columns by label.
    words
        Each cell's label.
    policy
        What the part says of it.
    """
    if number_rows(np.column_stack([cells.codes, cells.labels])).max() + 1 < len(cells.rows):
        raise broken(cells.peer, "a cell is there twice")
    if not private or (len(private) > 1 and not {*words} <= {*private}):
        raise broken(cells.peer, "it has cells of a label without moments")
    reach = np.full(len(cells.columns), np.inf if policy["bound"] is None else policy["bound"] + _GRID)
    _check_sums(cells, -reach, reach, noisy=policy["bound"] is not None)
    unknown = csr_array((len(cells.rows), 0))
    for label, moments in private.items():
        mine = np.flatnonzero([word == label for word in words]) if len(private) > 1 else np.arange(len(words))
        if len(mine):
            _check_size(cells, mine, moments, reach**2, np.inf)
            _check_scatter(cells, mine, moments, unknown)


def _ranges(peer: str, contract: Contract, bounds: Bounds | None) -> tuple[Floats, Floats]:
    """The least and the largest value that a row can have in each column."""
    features, out = contract.summed(peer), []
    reach = np.inf if bounds is None else bounds.column + _GRID
    for column in summed_columns(contract, peer):
        feature = features[column.feature]
        largest = min(1.0, reach)
        out.append((0.0, largest) if isinstance(feature, Categorical) else (-largest, largest))
        if not isinstance(feature, Categorical | Boolean):
            out[-1] = (-reach, reach)
    low, high = np.array(out).T
    return low, high


def _check_present(cells: Cells) -> None:
    if (cells.present < 0).any() or (cells.present > cells.rows[:, None]).any():
        raise broken(cells.peer, "more values are present than there are rows")
    gone = cells.present == 0
    if gone.any() and cells.sums[gone].any():
        raise broken(cells.peer, "there is a sum of no values")


def _most_rows(cells: Cells) -> Floats:
    """How many rows a cell may have in truth."""
    return np.asarray((cells.rows + _SDS * cells.levels.rows) * (1 + _CLOSE), dtype=np.float64)


def _shared_level(cells: Cells) -> float:
    """The most noise in a sum of any column; that of a shared one may be a count."""
    return max(cells.levels.rows, cells.levels.sums)


def _check_sums(cells: Cells, low: Floats, high: Floats, *, noisy: bool) -> None:
    most, room = _most_rows(cells), _SDS * cells.levels.sums
    for index, name in enumerate(cells.columns):
        sums = cells.sums[:, index]
        if (sums > most * high[index] + room).any() or (sums < most * low[index] - room).any():
            limit = "with the policy's bounds" if noisy else "with such a column"
            raise broken(cells.peer, f"a sum of '{name}' is larger than so many rows can have {limit}")


def _check_one_hot(cells: Cells, contract: Contract, *, noisy: bool) -> None:
    """A row is in one category of each feature; if it was scaled down, with less than 1."""
    features, most, columns = contract.summed(cells.peer), _most_rows(cells), summed_columns(contract, cells.peer)
    for name, feature in features.items():
        if not isinstance(feature, Categorical):
            continue
        of_feature = [index for index, column in enumerate(columns) if column.feature == name]
        total, room = cells.sums[:, of_feature].sum(axis=1), _SDS * cells.levels.sums * len(of_feature) ** 0.5
        if (total > most + room).any() or (not noisy and (total < cells.rows * (1 - _CLOSE)).any()):
            raise broken(cells.peer, f"the categories of '{name}' do not add up to the rows")


def _check_shared_sums(cells: Cells, contract: Contract) -> None:
    """In cells that hide a code: one-hot columns between 0 and the rows, and as many in all; a number from -1 to 1."""
    level, most = _shared_level(cells), _most_rows(cells)
    for index, (start, stop) in enumerate(_spans(contract)):
        here = np.flatnonzero(cells.codes[:, index] == ROLLED)
        if not len(here):
            continue
        shared, room = contract.shared[index], _SDS * level
        sums, limit = cells.shared[here, start:stop].toarray(), most[here, None]
        least = -limit if shared.encoding == "ordinal" else 0.0
        total = np.abs(sums.sum(axis=1) - cells.rows[here])
        wrong = shared.encoding == "one-hot" and (
            total > _SDS * (level * (stop - start) + cells.levels.rows) + _CLOSE * cells.rows[here]
        )
        if (sums > limit + room).any() or (sums < least - room).any() or np.any(wrong):
            raise broken(cells.peer, f"the sums of '{shared.name}' do not fit the rows")


def _spans(contract: Contract) -> Iterator[tuple[int, int]]:
    """Where each shared feature's columns stand among all."""
    start = 0
    for shared in contract.shared:
        yield start, start + len(shared.encoded)
        start += len(shared.encoded)


def _check_size(cells: Cells, mine: Ints, private: Floats, squares: Floats, norm: float) -> None:
    """A label's moments are at most its rows times what bounding leaves of a column, and of a row."""
    rows = float(cells.rows[mine].sum()) + _SDS * cells.levels.rows * len(mine) ** 0.5
    room, inside = _SDS * cells.levels.moments, np.diag(private)
    columns = (inside < -room) | (inside > rows * squares * (1 + _CLOSE) + room)
    if columns.any() or inside.sum() > rows * norm**2 * (1 + _CLOSE) + room * len(private) ** 0.5:
        raise broken(cells.peer, "its moments are larger than so many rows can have, or negative")


def _check_squares(cells: Cells, contract: Contract, mine: Ints, squares: Floats) -> None:
    """0 and 1 are their own squares, those of truth values are 1, and less of rows that were scaled down."""
    levels, features = cells.levels, contract.summed(cells.peer)
    room = _SDS * (levels.moments + _shared_level(cells) * len(mine) ** 0.5)
    for index, column in enumerate(summed_columns(contract, cells.peer)):
        if isinstance(features[column.feature], Categorical):
            most = float(cells.sums[mine, index].sum())
        elif isinstance(features[column.feature], Boolean):
            most = float(cells.present[mine, index].sum())
        else:
            continue
        close = room + _CLOSE * most
        if squares[index] > most + close or (not levels.moments and squares[index] < most - close):
            raise broken(cells.peer, f"the moments of '{column.name}' are not those of so many rows")


def _with_hidden(private: Floats, hidden: Floats, columns: Ints) -> Floats:
    """Second moments of the private columns and the shared ones that are hidden somewhere."""
    width = len(private)
    mixed = hidden[columns, :width]
    return np.block([[private, mixed.T], [mixed, hidden[np.ix_(columns, width + columns)]]])


def _check_scatter(cells: Cells, mine: Ints, total: Floats, unknown: csr_array) -> None:
    """Q - sum_c s_c s_c^T / n_c is positive semi-definite, in each direction v as far as noise allows.

    With L the sum of the cells' terms, tau what noise and rounding can take from Q and nu the noise in L:

        (v' L v)^(1/2)  <=  (v' (Q + tau) v)^(1/2) + (nu v' v)^(1/2)
    """
    levels, breadth = cells.levels, len(total) ** 0.5
    inside, weights = np.zeros_like(total), 1.0 / (cells.rows[mine] + _SDS * levels.rows)
    for low in range(0, len(mine), _CHUNK):
        some = slice(low, low + _CHUNK)
        sums = np.hstack([cells.sums[mine[some]], unknown[mine[some]].toarray()])
        inside += sums.T @ (sums * weights[some, None])
    tau = max(levels.moments, levels.hidden) * (2 * breadth + 9)
    tau += _CLOSE * max(float(np.trace(total)), 0.0) + 1e-12
    values, vectors = np.linalg.eigh(total + tau * np.eye(len(total)))
    if values[0] < 0:
        raise broken(cells.peer, "its moments are not those of any rows")
    whitened = vectors / np.sqrt(np.maximum(values, 1e-3 * tau))
    found, directions = np.linalg.eigh(whitened.T @ inside @ whitened)
    nu = (_shared_level(cells) * (weights.sum() ** 0.5 + weights.max() ** 0.5 * (breadth + _SDS))) ** 2
    room = 1 + _CLOSE + nu**0.5 * np.linalg.norm(whitened @ directions, axis=0)
    if (np.sqrt(np.maximum(found, 0.0)) > room).any():
        raise broken(cells.peer, "its sums and its moments contradict each other")
