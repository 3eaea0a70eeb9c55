"""A scorer's file: whole or refused with a reason, whatever is done to it."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from tests.unit.rows.people import agree, people

from radocraft.errors import FileError, Tampered
from radocraft.rows import Scorer, score_rows
from radocraft.rows._scorer_file import packed, unpacked, write_scorer


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return score_rows(people(), agree('{ kind = "score", folds = 2 }'), "bank", scorer=LogisticRegression())[1]


@pytest.fixture(scope="module")
def kept(scorer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("scorer") / "bank.scorer"
    scorer.save(path)
    return path


FREE = {"None": ("group",), "[]": ("notes", "repeated", "reliability", "strata"), "-1": ("rows",)}


def rewritten(scorer: Scorer, path: Path, **changed) -> Path:
    """The file with other words in it, and a hash that fits."""
    write_scorer(path, {**scorer._described(), **changed}, scorer.models)
    return path


def test_a_scorer_comes_back_as_it_was(scorer, kept):
    again = Scorer.load(kept)
    for name in ("contract", "peer", "columns", "form", "maps", "group", "performance", "reliability", "rows", "notes"):
        assert getattr(again, name) == getattr(scorer, name), name
    np.testing.assert_array_equal(again.deal.cuts, scorer.deal.cuts)
    np.testing.assert_array_equal(again.lottery.repeated, scorer.lottery.repeated)
    rows = people(seed=1)
    assert again.score(rows).equals(scorer.score(rows))


def test_the_same_fit_has_the_same_hash_and_the_same_file(scorer, kept, tmp_path):
    """Of a scorer that is saved twice, read back and saved, or fitted twice."""
    contract = agree('{ kind = "score", folds = 2 }')
    other = score_rows(people(), contract, "bank", scorer=LogisticRegression())[1]
    hashes = {each.save(tmp_path / "one") for each in (scorer, scorer, Scorer.load(kept), other)}
    assert len(hashes) == 1
    assert (tmp_path / "one").read_bytes() == kept.read_bytes()


def test_its_owner_alone_may_read_it(scorer, tmp_path):
    scorer.save(tmp_path / "one")
    assert stat.S_IMODE(os.stat(tmp_path / "one").st_mode) == 0o600


def test_changed_words_do_not_fit_the_hash(kept, tmp_path):
    with ZipFile(kept) as archive, ZipFile(tmp_path / "changed", "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            changed.writestr(name, content.replace(b'"bank"', b'"bonk"') if name == "scorer.json" else content)
    with pytest.raises(Tampered, match="does not match its hash"):
        Scorer.load(tmp_path / "changed")


@pytest.mark.parametrize("junk", [None, "x", -1, [], [[1]], {"a": 1}], ids=str)
def test_nonsense_with_a_fitting_hash_is_refused(scorer, junk):
    """Some entries may be anything of their kind; what is wrong with others is said as `read_scorer` expects it."""
    read, held = [], scorer._described()
    for name in held:
        with suppress(KeyError, TypeError, ValueError):
            Scorer._of({**held, name: junk}, scorer.models)
            read.append(name)
    assert {*read} <= {*FREE.get(str(junk), ())}


def test_another_contract_another_number_of_folds_and_no_scorer_are_refused(scorer, kept, tmp_path):
    with pytest.raises(Tampered):
        Scorer.load(rewritten(scorer, tmp_path / "a", fingerprint="0" * 64))
    with pytest.raises(Tampered):
        Scorer.load(rewritten(scorer, tmp_path / "b", folds=3))
    with pytest.raises(FileError, match="Check the path"):
        Scorer.load(tmp_path / "nowhere")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileError, match="no scorer's file"):
        Scorer.load(tmp_path / "text")


def test_other_versions_are_refused(scorer, tmp_path):
    with pytest.raises(FileError, match="another version of radocraft"):
        Scorer.load(rewritten(scorer, tmp_path / "a", format=2))
    with pytest.raises(FileError, match=r"fitted with scikit-learn 0\.1\.2"):
        Scorer.load(rewritten(scorer, tmp_path / "b", sklearn="0.1.2"))


def test_models_of_unknown_types_are_refused_though_the_hash_fits(scorer, tmp_path, monkeypatch):
    evil = skops.io.dumps([os.system])
    monkeypatch.setattr("radocraft.rows._scorer_file.save_models", lambda models: evil)
    scorer.save(tmp_path / "evil")
    with pytest.raises(FileError, match="could run code"):
        Scorer.load(tmp_path / "evil")


@given(st.lists(st.integers(0, 2**64 - 1), max_size=5))
def test_lots_come_back_from_text(numbers):
    np.testing.assert_array_equal(
        unpacked(packed(np.array(numbers, dtype=np.uint64))), np.array(numbers, dtype=np.uint64)
    )
