"""Dates and times, as Arrow holds them or as text in the form 2001-12-31."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from radocraft.arrays import Floats

LOOKS_LIKE_A_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?Z?)?$"
_DAY = 86_400_000_000


def is_instant(kind: Any) -> bool:
    """Whether an Arrow type is one of dates, or of dates with a time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def read_dates(column: pa.Array) -> pa.Array:
    """Text as dates with a time; what cannot be read is missing."""
    texts = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(column.cast(pa.string())), 0, 19)
    texts = pc.replace_substring(texts, "T", " ")
    texts = pc.if_else(pc.equal(pc.utf8_length(texts), 10), pc.binary_join_element_wise(texts, "00:00:00", " "), texts)
    return pc.strptime(texts, format="%Y-%m-%d %H:%M:%S", unit="us", error_is_null=True)


def in_days(column: pa.Array) -> Floats:
    """Days since 1970, with fractions of a day; NaN where missing.

    Examples
    --------
    >>> import datetime
    >>> in_days(pa.array([datetime.date(1970, 1, 2), None])), in_days(pa.array(["1970-01-03T12:00:00"]))
    (array([ 1., nan]), array([2.5]))
    """
    dates = column if is_instant(column.type) else read_dates(column)
    if pa.types.is_date(dates.type):
        dates = dates.cast(pa.timestamp("ms"), safe=False)
    moments = dates.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    out = moments.to_numpy(zero_copy_only=False).astype(np.float64) / _DAY
    return np.asarray(out)
