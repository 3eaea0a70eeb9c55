"""Whatever estimator a peer brings: it is shared, and its scorer is kept or the peer is told that it is not."""

from pathlib import Path

import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.unit.rows.people import agree, lines, people

import radocraft as rc
from radocraft.errors import ContractMismatch
from radocraft.rows import Scorer, score_rows

CONTRACT = agree()
BOOSTING = LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1)
NUMBERS = make_pipeline(SimpleImputer(), StandardScaler())
WORDS = OneHotEncoder(handle_unknown="ignore")
PIPELINE = make_pipeline(
    ColumnTransformer(
        [
            ("numbers", NUMBERS, ["income", "age", "since"]),
            ("words", WORDS, make_column_selector(dtype_include="category")),
        ]
    ),
    LogisticRegression(max_iter=500),
)


class Watched(LGBMClassifier):
    """It remembers what it is given."""

    seen: list[pd.DataFrame] = []  # noqa: RUF012

    def fit(self, rows, classes):  # type: ignore[no-untyped-def]
        self.seen.append(rows)
        return super().fit(rows, classes)


def test_lightgbm_is_given_categories_dates_and_gaps_as_they_are() -> None:
    table, before = people(), len(Watched.seen)
    score_rows(table, CONTRACT, "bank", scorer=Watched(n_estimators=3, verbose=-1, n_jobs=1))
    given = max(Watched.seen[before:], key=len)
    assert len(given) == len(table)
    assert given["job"].dtype == "category"
    assert {*given["job"].cat.categories} >= {"clerk", "farmer", "it's"}
    for name in ("income", "job", "member"):
        column = table[name].to_pandas()
        assert given[name].isna().sum() == column.isna().sum() > 0
    assert given["since"].nunique() == table["since"].to_pandas().nunique()


def test_lightgbm_takes_columns_of_any_name() -> None:
    """LightGBM by itself refuses some."""
    table = people()
    odd = table.rename_columns([{"income": "income: {CHF}"}.get(name, name) for name in table.column_names])
    rows, scorer = score_rows(odd, CONTRACT, "bank", scorer=BOOSTING)
    assert "income: {CHF}" in {column.name for column in scorer.columns}
    assert lines(rows) == lines(score_rows(table, CONTRACT, "bank", scorer=BOOSTING)[0])


@pytest.mark.parametrize("model", [BOOSTING, PIPELINE], ids=["lightgbm", "pipeline"])
def test_any_estimator_is_shared_kept_and_read_back(model: object, tmp_path: Path) -> None:
    """The file that was kept scores new rows alike, and the peer's own rows for another release alike."""
    seen, said = list[Scorer](), list[str]()
    output, kept = tmp_path / "bank.part.parquet", tmp_path / "bank.scorer"
    part = rc.share(
        people(),
        CONTRACT,
        "bank",
        scorer=model,
        output=output,
        keep_scorer=kept,
        on_scorer=seen.append,
        say=said.append,
    )
    assert part.peer == "bank"
    assert seen[0].performance.auc is not None
    assert seen[0].performance.auc > 0.7
    again = Scorer.load(kept)
    assert again.score(people(seed=1)).equals(seen[0].score(people(seed=1)))
    given = score_rows(people(), CONTRACT, "bank", scorer=model)[0]
    assert lines(score_rows(people(), CONTRACT, "bank", keep=again)[0]) == lines(given)
    assert again.save(tmp_path / "again") == seen[0].save(tmp_path / "other") == seen[0].save(kept)
    assert (tmp_path / "again").read_bytes() == kept.read_bytes()
    assert not [words for words in said if "not kept" in words]


def test_a_scorer_that_cannot_be_kept_is_shared_all_the_same_and_the_peer_is_told(tmp_path: Path) -> None:
    said, seen = list[str](), list[Scorer]()
    model = make_pipeline(SimpleImputer(), LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1, linear_tree=True))
    contract = agree('{ kind = "score", of = ["income"] }')
    part = rc.share(
        people(),
        contract,
        "bank",
        scorer=model,
        output=tmp_path / "bank.part.parquet",
        say=said.append,
        on_scorer=seen.append,
    )
    assert part.peer == "bank"
    assert not list(tmp_path.glob("*.scorer"))
    (words,) = [words for words in said if "not kept" in words]
    assert "cannot be written to a file that is safe to load: its leaves are linear models" in words
    assert "use an estimator of scikit-learn" in words
    again = rc.share(people(), contract, "bank", scorer=seen[0], output=tmp_path / "bank.part.parquet")
    assert again.metadata["hash"] == part.metadata["hash"]


@pytest.mark.parametrize("label", ["classes = [0, 1, 2]", 'kind = "numeric"'])
def test_labels_of_other_kinds_are_refused_before_anything_is_fitted(label: str, tmp_path: Path) -> None:
    output = tmp_path / "bank.part"
    with pytest.raises(ContractMismatch, match="one contract per class"):
        rc.share(people(), agree(label=label), "bank", output=output)
    assert not output.exists()
