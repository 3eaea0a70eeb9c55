from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.research.study.test_summary import record

from radocraft.errors import StudyError
from radocraft.research.study._figures import corruption_figure, draw_figures, oracle_figure, pick
from radocraft.research.study._panels import grid_of

pytest.importorskip("matplotlib", reason="pip install radocraft[study]")
PAPER = {"intercept": False, "encoding": "ordinal-standard"}


def results() -> list[dict[str, Any]]:
    records = []
    for domain in ("sonar", "mice", "ionosphere"):
        for peers, shared in ((2, 1), (2, 3), (4, 1)):
            for bins in (2, 4):
                place = {"domain": domain, "peers": peers, "shared": shared, "bins": bins}
                error = 0.1 + 0.02 * peers + 0.03 * shared
                records += [record(name, error, **place, **PAPER) for name in ("drl", "drl-identity", "oracle")]
                told = {"reliability": [[0.4, 0.1, 0.15], [0.6, 0.9, 0.85]], "calibration_error": 0.05}
                records.append(record("matching", error - 0.05, caution=0.25, **place, **told))
                records += [record("oracle", 0.1, **place), record("drl", error, **place)]
    return records


def test_every_figure_is_written_and_is_a_png(tmp_path: Path) -> None:
    written = draw_figures(results(), tmp_path / "new")
    names = {path.stem for path in written}
    assert names == {
        *(f"domain-{name}" for name in ("sonar", "mice", "ionosphere")),
        *("overview", "bins-ionosphere", "oracle-sonar", "gamma", "reliability"),
    }
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_corruption_is_drawn_beside_the_same_cells_without_it(tmp_path: Path) -> None:
    records = []
    for corrupted, corruption in (("nothing", 0.0), ("signatures", 0.1), ("signatures", 0.2)):
        place = {"domain": "wine", "corrupted": corrupted, "corruption": corruption, "algorithms": "linkage"}
        records += [record("matching", 0.1 + corruption / 10, caution=0.25, **place)]
        records += [record(name, 0.1 + corruption, **place) for name in ("splink", "zip", "oracle")]
    figure = corruption_figure(records)
    assert figure is not None
    (axes,) = figure.axes
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    np.testing.assert_allclose(lines["matching 0.25"], [10, 11, 12])
    np.testing.assert_allclose(lines["Splink"], [10, 20, 30])
    assert "corruption" in {path.stem for path in draw_figures(records, tmp_path)}
    assert corruption_figure([r for r in records if not r["corruption"]]) is None


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no cell for any figure"):
        draw_figures([record("zip", 0.1, setting="random", share=0.5)], tmp_path)


def test_the_scatter_sorts_cells_by_significance() -> None:
    places = {"domain": "sonar", **PAPER}
    records = [
        record("drl", 0.3, oracle_p=0.01, **places),
        record("drl", 0.3, oracle_p=0.2, peers=3, **places),
        record("drl", 0.05, oracle_p=0.01, peers=4, **places),
    ]
    figure = oracle_figure(records, "sonar")
    assert figure is not None
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["significantly worse (1)", "no significant difference (1)", "significantly better (1)"]


def test_a_surface_has_one_value_for_every_pair() -> None:
    cells = pick(results(), "matching", domain="sonar", paper=False)
    values = grid_of(cells, "delta", [2, 4], [1, 3])
    np.testing.assert_allclose(values, [[-0.08, -0.04], [-0.02, np.nan]], atol=1e-12)
