"""Histogram of the sizes of blocks or cells."""

from __future__ import annotations

from itertools import pairwise
from xml.etree.ElementTree import Element

import numpy as np

from radocraft.arrays import Floats
from radocraft.pages._charts import Axis, histogram
from radocraft.pages._page import figure, table


def sizes(rows: Floats, what: str, words: str) -> Element:
    """A histogram of the sizes of ``what`` (block, cell), in bins that grow by a factor."""
    low, high = max(float(rows.min()), 1.0), max(float(rows.max()), 2.0)
    edges = np.geomspace(low * 0.999, high * 1.001, min(max(int(2 * np.log2(high / low)) + 2, 6), 24))
    counts = np.histogram(np.maximum(rows, low), edges)[0].tolist()
    bars = [
        (a, b, float(n), f"{n:,} {what}s of {a:,.0f} to {b:,.0f} rows")
        for (a, b), n in zip(pairwise(edges.tolist()), counts, strict=True)
    ]
    chart = histogram(
        f"Histogram of {what} sizes",
        Axis.powers(f"rows in a {what}", edges.tolist()),
        Axis.counts("", counts),
        bars,
    )
    numbers = table(("#rows", f"#{what}s"), [(f"{a:,.0f} to {b:,.0f}", f"{n:,.0f}") for a, b, n, _ in bars])
    return figure("Sizes", chart, words, numbers)
