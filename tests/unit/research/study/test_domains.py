from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.research.study.data import needs_data

from radocraft.errors import StudyError
from radocraft.research.study._domains import DOMAINS, load_table

WIDTHS = {
    "wine": 13,
    "sonar": 60,
    "ionosphere": 33,
    "mice": 77,
    "winered": 11,
    "steelplates": 27,
    "statlog": 36,
    "winewhite": 11,
    "page": 10,
    "firmteacher": 16,
    "phishing": 30,
}
POSITIVE = {
    ("wine", "class-2"): 71,
    ("sonar", "mine"): 111,
    ("ionosphere", "good"): 225,
    ("mice", "genotype"): 570,
    ("mice", "treatment"): 570,
    ("mice", "behaviour"): 525,
    ("winered", "six-or-more"): 855,
    ("winered", "seven-or-more"): 217,
    ("steelplates", "other"): 673,
    ("steelplates", "bumps"): 402,
    ("statlog", "class-1"): 1072,
    ("statlog", "class-7"): 1038,
    ("winewhite", "six-or-more"): 3258,
    ("page", "text"): 4913,
    ("firmteacher", "reverse"): 4301,
    ("firmteacher", "neutral"): 407,
    ("phishing", "phishing"): 6157,
}


@needs_data
@pytest.mark.parametrize("name", list(DOMAINS))
def test_rows_and_features_are_the_papers(name: str) -> None:
    table = load_table(name)
    assert table.features.shape == (DOMAINS[name].rows, WIDTHS[name])
    assert len(table.columns) == WIDTHS[name]
    largest = DOMAINS[name].shared[1] + DOMAINS[name].peers[1]
    assert largest <= WIDTHS[name], "the paper's largest cell must leave every peer a private feature"


@needs_data
@pytest.mark.parametrize(("name", "binarisation"), list(POSITIVE))
def test_class_counts(name: str, binarisation: str) -> None:
    labels = load_table(name, binarisation).labels
    assert int((labels == 1).sum()) == POSITIVE[name, binarisation]
    assert {*labels.tolist()} == {1, -1}


@needs_data
def test_steelplates_as_in_the_paper_has_six_faults_more() -> None:
    plain, paper = load_table("steelplates"), load_table("steelplates", columns="paper")
    assert paper.features.shape == (1941, 33)
    faults = paper.features[:, 27:]
    assert np.array_equal(faults.sum(axis=1) == 0, plain.labels == 1), "the six others give the seventh away"


@needs_data
def test_groups_keep_copies_and_mice_together() -> None:
    phishing = load_table("phishing")
    assert len(phishing.labels) - len({*phishing.groups.tolist()}) == 5206
    mice = load_table("mice")
    assert np.bincount(mice.groups).tolist() == [15] * 72
    assert int(np.isnan(mice.features).sum()) == 1396


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(StudyError, match="wine, sonar"):
        load_table("iris")
    with pytest.raises(StudyError, match="genotype, treatment, behaviour"):
        load_table("mice", "colour")


def test_a_missing_or_foreign_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADOCRAFT_DATA", str(tmp_path))
    with pytest.raises(StudyError, match=r"wine\.csv"):
        load_table("wine")
    (tmp_path / "wine.csv").write_text("a,b\n1,2\n")
    with pytest.raises(StudyError, match="is not the table 'wine'"):
        load_table("wine")
