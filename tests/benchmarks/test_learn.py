"""Learning beside reading its parts, on parts that could be of rows."""

import json
import sys
from pathlib import Path

import learn
import numpy as np
import pytest

from radocraft.parts import Part


def test_learning_and_reading_see_the_same_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["learn.py", "500x3x5000", "--repeats", "1", "--json"])
    learn.main()
    (found,) = json.loads(capsys.readouterr().out)["sizes"]
    assert (found["blocks"], found["columns"]) == (512, 6)
    assert found["reading"]["result"] == 2 * 512
    blocks, error = found["learning"]["result"]
    assert (blocks, error < 0.45) == (512, True)
    assert min(found["ratio"], found["cpu_ratio"]) > 0


def test_a_made_up_tally_could_be_of_rows() -> None:
    """Its moments, both labels together, are those of block means and of a positive scatter inside blocks."""
    contract = learn.contract_of(3, 2)
    tally = learn.tally_of(contract, "bank", 3, 2, 500)
    moments = tally.moments.sum(axis=0)
    inside = moments[:3, :3] - (tally.sums.T / tally.rows) @ tally.sums
    assert np.linalg.eigvalsh(inside).min() > 0
    np.testing.assert_allclose(moments[:3, 3], tally.sums.sum(axis=0))
    assert moments[-1, -1] == tally.total == learn.tally_of(contract, "shop", 3, 2, 500).total


def test_a_made_up_part_is_one_that_learners_take(tmp_path: Path) -> None:
    contract = learn.contract_of(3, 2)
    learn.write_part(tmp_path / "part", "bank", 3, 2, 500)
    assert Part.read(tmp_path / "part").cells(contract).total == pytest.approx(500, abs=50)
