"""Columns that several peers sum are brought to the same units, gaps and all."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radocraft import Contract
from radocraft.learning._units import in_units, label_as_shared, pooled_units, same_units
from radocraft.rows import craft_rows
from radocraft.sums import Cells
from radocraft.sums._cells import standardise

TEXT = """
name = "units"
label = {{ column = "y", {label} }}
shared = [{{ name = "s", categories = ["a", "b"] }}]
peers.one.features = {{ u = "numeric", z = "numeric" }}
peers.two.features = {{ v = "numeric", z = "numeric" }}
"""
TWO = Contract.parse(TEXT.format(label="positive = 1, negative = 0"))
NUMBER = Contract.parse(TEXT.format(label='kind = "numeric"'))


def people(seed: int, gaps: float, rows: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, rows - 2)])
    u, v, z = rng.normal(size=(3, rows)) * [[2.0], [0.1], [30.0]] + [[5.0], [0.0], [100.0]] + y
    for column in (u, v, z):
        column[2:][rng.random(rows - 2) < gaps] = np.nan
    return {"y": y, "s": rng.integers(0, 2, rows), "u": u, "v": v, "z": z}


def cells_of(contract: Contract, peer: str, columns: dict[str, np.ndarray]) -> Cells:
    number = contract is NUMBER
    names = (*contract.peers[peer].features, *(["y"] if number else []))
    labels = np.zeros(len(columns["y"]), dtype=np.int64) if number else np.where(columns["y"] > 0, 1, -1)
    values = np.column_stack([columns[name] for name in names])
    codes = columns["s"][:, None]
    return standardise(
        craft_rows(contract, peer, names, codes=codes, labels=labels, values=values, bounds=None), contract
    )


def assert_consistent(cells: Cells) -> None:
    """Sums of all cells are the moments with the constant, of every column, private and shared."""
    width = len(cells.columns)
    np.testing.assert_allclose(cells.moments[:width, -1], cells.sums.sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cells.moments[width:-1, -1], np.asarray(cells.shared.sum(axis=0)).ravel(), atol=1e-9)
    assert cells.moments[-1, -1] == pytest.approx(cells.total)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.4]), st.floats(-50, 50), st.floats(0.1, 20))
def test_other_units_are_those_of_rows_whose_gaps_were_filled(seed, gaps, centre, scale):
    """A value that is missing counts as the peer's centre, in whatever units; sums and moments say the same of it."""
    columns = people(seed, gaps)
    cells = cells_of(TWO, "one", columns)
    assert_consistent(cells)
    moved = in_units(cells, np.array([cells.centre[0], centre]), np.array([cells.scale[0], scale]))
    assert_consistent(moved)
    filled = dict(columns, z=np.where(np.isnan(columns["z"]), cells.centre[1], columns["z"]))
    whole = cells_of(TWO, "one", filled)
    expected = in_units(whole, moved.centre, moved.scale)
    np.testing.assert_allclose(moved.sums[:, 1], expected.sums[:, 1], rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(moved.moments[1], expected.moments[1], rtol=1e-7, atol=1e-5)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.3]))
def test_pooled_units_are_the_mean_and_deviation_of_all_rows(seed, gaps):
    one, two = people(seed, gaps), people(seed + 5000, gaps)
    two["z"] = 3 * two["z"] - 7
    both = (cells_of(TWO, "one", one), cells_of(TWO, "two", two))
    found = same_units(both)
    centres = [cells.centre[1] for cells in both]
    values = np.concatenate(
        [np.where(np.isnan(z), centre, z) for z, centre in zip((one["z"], two["z"]), centres, strict=True)]
    )
    for cells, before in zip(found, both, strict=True):
        assert_consistent(cells)
        assert (cells.centre[1], cells.scale[1]) == pytest.approx((values.mean(), values.std()))
        assert (cells.centre[0], cells.scale[0]) == (before.centre[0], before.scale[0])
    raw = [cells.sums[:, 1].sum() * cells.scale[1] + cells.centre[1] * cells.total for cells in found]
    assert sum(raw) == pytest.approx(values.sum())


def test_units_that_agree_are_left_alone():
    cells = cells_of(TWO, "one", people(0, 0.2))
    assert in_units(cells, cells.centre, cells.scale) is cells
    assert pooled_units((cells, cells), "z") == (cells.centre[1], cells.scale[1])


def test_noise_grows_with_the_units():
    cells = cells_of(TWO, "one", people(0, 0.0))
    noisy = replace(cells, levels=replace(cells.levels, sums=2.0, moments=3.0))
    moved = in_units(noisy, noisy.centre, noisy.scale * [1.0, 0.25])
    assert (moved.levels.sums, moved.levels.moments) == (8.0, 48.0)
    smaller = in_units(noisy, noisy.centre, noisy.scale * [1.0, 4.0])
    assert (smaller.levels.sums, smaller.levels.moments) == (2.0, 3.0), "other columns keep theirs"


def test_a_numeric_label_becomes_the_last_shared_column_in_its_units():
    columns = people(3, 0.0)
    columns["y"] = 100 + 5 * columns["y"] + columns["u"]
    cells = cells_of(NUMBER, "one", columns)
    moved = label_as_shared(cells, 90.0, 4.0)
    assert_consistent(moved)
    assert moved.columns == ("u", "z")
    label = (columns["y"] - 90) / 4
    assert float(moved.shared.toarray()[:, -1].sum()) == pytest.approx(label.sum())
    assert moved.moments[-2, -2] == pytest.approx(label @ label)
    u = (columns["u"] - cells.centre[0]) / cells.scale[0]
    assert moved.moments[0, -2] == pytest.approx(u @ label)
