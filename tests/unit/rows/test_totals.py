"""Rows that lack a value: counted where they belong, whatever else their column is for."""

import numpy as np
import pyarrow as pa
import pytest

from radocraft import Contract, Policy, craft

CONTRACT = Contract.parse("""
name = "twice"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "age", edges = [40] }]
[peers.bank.features]
years = { kind = "numeric", centre = 50, scale = 10 }
[peers.bank.columns]
years = "age"
""")
AGES = np.array([30.0, np.nan, 60.0, 20.0, np.nan, 45.0, np.nan, 70.0])
LABELS = np.array([1, 1, 1, 0, 0, 0, 1, 0])


CODES = np.where(np.isnan(AGES), 2, np.where(AGES >= 40, 1, 0))


@pytest.mark.parametrize("gap", [np.nan, None])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_column_both_shared_and_private_may_lack_values(gap: float | None, bounded: bool) -> None:
    """Where it has none the code is that of who has none, and the value counts as the centre."""
    ages = pa.array([gap if np.isnan(age) else age for age in AGES], pa.float64(), from_pandas=False)
    table, bounds = pa.table({"y": LABELS, "age": ages}), Policy().bounds if bounded else None
    tally = craft(table, CONTRACT, "bank", bounds=bounds)
    clipped = 1024 * np.clip((AGES - 50) / 10, -1.5, 1.5)  # one column, in steps of 1/1024
    values = np.nan_to_num(clipped if bounded else AGES)
    keys = [(code, label) for code in (0, 1, 2) for label in (-1, 1)]
    assert [*zip(tally.codes[:, 0].tolist(), tally.labels.tolist(), strict=True)] == keys
    rows = [(code == CODES) & ((label > 0) == LABELS) for code, label in keys]
    assert tally.rows.tolist() == [own.sum() for own in rows]
    assert tally.sums[:, 0].tolist() == [values[own].sum() for own in rows]
    if not bounded:
        assert tally.present[:, 0].tolist() == [np.isfinite(AGES[own]).sum() for own in rows]
