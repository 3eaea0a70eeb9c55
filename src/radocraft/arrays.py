"""Arrays and tables: their types, adding rows up by group, one thread for linear algebra, what notebooks show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    import pyarrow as pa

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]

Numbers = TypeVar("Numbers", Floats, Ints)
Given = ParamSpec("Given")
Result = TypeVar("Result")
_LARGEST = 2**62
_SPARSE = 8
_SHOWN = 12
_WIDE = 8
_LONGEST = 120


def number_rows(rows: Ints) -> Ints:
    """Give equal rows the same number, unequal rows different ones, in lexicographic order.

    Numbers run from 0 and leave none out.

    Examples
    --------
    >>> number_rows(np.array([[2, 0], [1, 5], [2, 0]]))
    array([1, 0, 1])
    """
    number, size = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T if len(rows) else []:
        low = int(column.min())
        width = int(column.max()) - low + 1
        if size * width > _LARGEST:
            number, size = _compact(number)
        number, size = number * width + (column - low), size * width
    return _compact(number)[0]


def _compact(numbers: Ints) -> tuple[Ints, int]:
    """The same order with no number left out: by counting where numbers are not far apart, else by sorting."""
    if len(numbers) and int(numbers.max()) < _SPARSE * len(numbers):
        rank = np.cumsum(np.bincount(numbers) > 0, dtype=np.int64)
        return rank[numbers] - 1, int(rank[-1])
    distinct, place = np.unique(numbers, return_inverse=True)
    return place.astype(np.int64), len(distinct)


def first_of_each(number: Ints) -> Ints:
    """The position of the first row of every group of `number_rows`."""
    return np.unique(number, return_index=True)[1].astype(np.int64)


def add_up(values: Numbers, group: Ints, groups: int) -> Numbers:
    """Sum the rows of ``values`` by group.

    Examples
    --------
    >>> add_up(np.array([1, 2, 3]), np.array([1, 0, 1]), 2)
    array([2, 4])
    """
    out: Numbers = gathering(group, groups) @ values
    return out


def gathering(group: Ints, groups: int) -> csr_array:
    """The matrix that adds rows up by group when it stands on their left; its rows can be taken one by one.

    Examples
    --------
    >>> gathering(np.array([1, 0, 1]), 2).toarray()
    array([[0, 1, 0],
           [1, 0, 1]], dtype=int8)
    """
    entries = np.ones(len(group), dtype=np.int8)
    return csr_array((entries, (group, np.arange(len(group)))), shape=(groups, len(group)))


def gathered(gather: csr_array, values: Floats) -> Floats:
    """``gather @ values``, which copies no more of ``values`` than it needs, however they lie in memory.

    Examples
    --------
    >>> gathered(gathering(np.array([1, 0, 1]), 2), np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])[:, :1])
    array([[2.],
           [4.]])
    """
    if not values.flags.c_contiguous:
        values = values[gather.indices]
        gather = csr_array((gather.data, np.arange(gather.nnz), gather.indptr), shape=(gather.shape[0], gather.nnz))
    out: Floats = gather @ values
    return out


def dense(batch: pa.RecordBatch) -> Floats:
    """A batch as a matrix, missing values as NaN."""
    out = np.empty((batch.num_rows, batch.num_columns))
    for index, column in enumerate(batch.columns):
        out[:, index] = column.to_numpy(zero_copy_only=False)
    return out


def one_thread(work: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function that has one thread for linear algebra.

    The matrices here are too small to gain from more: threads that wait for one
    another double the processor time, and on a busy machine take minutes. One
    thread also adds in one order, whatever the number of cores.
    """

    @wraps(work)
    def alone(*given: Given.args, **named: Given.kwargs) -> Result:
        with threadpool_limits(limits=1, user_api="blas"):
            return work(*given, **named)

    return alone


class Tabular:
    """A value that is a table, too: notebooks show its first rows, pandas and Polars take all of them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> class Prices(Tabular):
    ...     def to_arrow(self):
    ...         return pa.table({"bread": [2.5, 3.0]})
    ...
    ...     def in_one_line(self):
    ...         return "Prices(2 days)"
    >>> Prices(), Prices().to_pandas()["bread"].tolist()
    (Prices(2 days), [2.5, 3.0])
    """

    def to_arrow(self) -> pa.Table:
        """All of it as an Arrow table."""
        raise NotImplementedError

    def in_one_line(self) -> str:
        """What it is."""
        raise NotImplementedError

    def in_sentences(self) -> Sequence[str]:
        """What a reader should know beside the table."""
        return ()

    def drawn(self) -> str | None:
        """The column that notebooks draw as bars."""
        return None

    def to_pandas(self) -> Any:
        """All of it as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """All of it as a Polars data frame."""
        return import_module("polars").from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return self.in_one_line()

    def __str__(self) -> str:
        return self.in_one_line()

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.in_sentences())
        return f"<div><p><b>{escape(self.in_one_line())}</b></p>{said}{''.join(self._rows())}</div>"

    def _rows(self) -> Iterator[str]:
        table = self.to_arrow()
        few, bars = table.slice(0, _SHOWN).select(table.column_names[:_WIDE]), self.drawn()
        heads = [*few.column_names, *([""] if bars else [])]
        yield "<table><thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in heads) + "</tr></thead><tbody>"
        drawn = few[bars].to_pylist() if bars else []
        largest = max(map(abs, drawn), default=0.0) or 1.0
        for at, row in enumerate(few.to_pylist()):
            cells = [f"<td>{escape(_cell(value))}</td>" for value in row.values()]
            if bars:
                cells.append(f"<td>{_bar(drawn[at] / largest)}</td>")
            yield f"<tr>{''.join(cells)}</tr>"
        yield "</tbody></table>"
        rows, columns = table.num_rows - few.num_rows, table.num_columns - few.num_columns
        more = [f"{count:,} more {what}" for count, what in ((rows, "rows"), (columns, "columns")) if count]
        yield f"<p>{' and '.join(more)}: to_pandas() or to_polars().</p>" if more else ""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.5g}"
    words = str(value)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def _bar(share: float) -> str:
    width, colour = round(100 * abs(share)), "#0072b2" if share >= 0 else "#d55e00"
    return f'<div style="background:{colour};height:.8em;width:{width}px" title="{share:+.2f} of the largest"></div>'
