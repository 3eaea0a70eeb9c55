"""The whole road with a model of each peer's own, on the command line and in the library."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.integration.test_cli import Ran, flat, run  # noqa: F401

import radocraft as rc
from radocraft.demo._example import example_people, write_example
from radocraft.errors import ContractMismatch, MissingColumn
from radocraft.model import ScoreModel, load_model
from radocraft.rows import Scorer

CONTRACT = """
name = "default within a year"
label = { column = "defaulted", positive = "yes", negative = "no" }
shared = [{ name = "region", categories = ["north", "east", "south", "west"] }, { name = "age", edges = [30, 45, 60] }]
peers.bank.features = { bank_score = "score" }
peers.insurer.features = { insurer_score = { kind = "score", model = "linear", folds = 3 } }
peers.insurer.columns = { age = "age_at_signing" }
"""
TABLES = {"bank": "bank.csv", "insurer": "insurer.parquet"}


@pytest.fixture(scope="module")
def crafted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both peers' parts and scorers, and the model, by the library."""
    folder = tmp_path_factory.mktemp("scores")
    write_example(folder, rows=1500)
    (folder / "scores.toml").write_text(CONTRACT)
    contract = rc.Contract.parse(CONTRACT)
    parts = [
        rc.share(folder / table, contract, peer, output=folder / f"{peer}.part.parquet")
        for peer, table in TABLES.items()
    ]
    rc.learn(parts, contract).save(folder / "model.json")
    people = example_people(200, seed=5).drop_columns(["defaulted"])
    people = people.append_column("customer", pa.array([f"c{at}" for at in range(200)]))
    pa.csv.write_csv(people, folder / "people.csv")
    return folder


@pytest.fixture
def road(crafted: Path, tmp_path: Path) -> Path:
    shutil.copytree(crafted, tmp_path, dirs_exist_ok=True)
    return tmp_path


def craft(run, road: Path, peer: str, table: object, *more: object) -> Ran:  # type: ignore[no-untyped-def]  # noqa: F811
    words = ("craft", "-c", road / "scores.toml", "-p", peer, table, "-o", road / f"{peer}.part.parquet", *more)
    ran: Ran = run(*words)
    return ran


def probabilities(path: Path) -> np.ndarray:  # type: ignore[type-arg]
    return pd.read_csv(path)["probability"].to_numpy()


def test_the_whole_road(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    write_example(tmp_path, rows=1500)
    (tmp_path / "scores.toml").write_text(CONTRACT)
    for peer, table in TABLES.items():
        made = craft(run, tmp_path, peer, tmp_path / table)
        assert (made.code, "a model that has not seen it: error" in flat(made.out)) == (0, True), made.err
        assert "Calibration, by tenths of the rows" in flat(made.out)
        assert "Wrote" in made.out
        assert (tmp_path / f"{peer}.scorer").stat().st_mode & 0o077 == 0
    parts = [tmp_path / f"{peer}.part.parquet" for peer in TABLES]
    learned = run("learn", "-c", tmp_path / "scores.toml", *parts, "-o", tmp_path / "model.json")
    assert (learned.code, "What peers add" in learned.out) == (0, True), learned.err
    for peer in TABLES:
        words = (tmp_path / f"{peer}.scorer", tmp_path / "people.csv", "-o", tmp_path / f"{peer}.scores.parquet")
        assert run("score", *words).code == 0
    scores = [tmp_path / f"{peer}.scores.parquet" for peer in TABLES]
    given = run("predict", tmp_path / "model.json", *scores, "-o", tmp_path / "given.csv")
    assert (given.code, "1,000 rows, of them predicted yes" in flat(given.out)) == (0, True), given.err


def test_score_files_tables_with_scorers_and_a_mix_say_the_same(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    people, keep = road / "people.csv", ("--keep", "customer")
    for peer in TABLES:
        assert run("score", road / f"{peer}.scorer", people, "-o", road / f"{peer}.scores.csv", *keep).code == 0
    files = (road / "bank.scores.csv", road / "insurer.scores.csv")
    both = ("--scorer", road / "bank.scorer", "--scorer", road / "insurer.scorer")
    ways = {
        "files": (*files, "--on", "customer"),
        "scorers": (people, *both, *keep),
        "mix": (people, files[0], "--scorer", road / "insurer.scorer", "--on", "customer"),
    }
    for name, words in ways.items():
        assert run("predict", road / "model.json", *words, "-o", road / f"{name}.csv").code == 0
    texts = {(road / f"{name}.csv").read_text() for name in ways}
    assert len(texts) == 1
    assert list(pd.read_csv(road / "mix.csv").columns) == ["customer", "score", "probability", "class"]


def test_rows_are_brought_together_by_a_key_of_the_users_choice(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    people, keep = road / "people.csv", ("--keep", "customer")
    shuffled = pd.read_csv(people).sample(frac=1.0, random_state=0)
    shuffled.to_csv(road / "shuffled.csv", index=False)
    assert run("score", road / "bank.scorer", people, "-o", road / "a.parquet", *keep).code == 0
    assert run("score", road / "insurer.scorer", road / "shuffled.csv", "-o", road / "b.parquet", *keep).code == 0
    joined = ("predict", road / "model.json", road / "a.parquet", road / "b.parquet")
    assert run(*joined, "--on", "customer", "-o", road / "joined.csv").code == 0
    whole = load_model(road / "model.json").predict(people, scorers=[road / "bank.scorer", road / "insurer.scorer"])
    np.testing.assert_allclose(probabilities(road / "joined.csv"), whole.probability, rtol=1e-12)


def test_with_one_peer_alone_the_other_is_integrated_out(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    words = (road / "people.csv", "--scorer", road / "bank.scorer", "-o", road / "alone.csv")
    alone = run("predict", road / "model.json", *words)
    assert "No scores of insurer were given; the prediction averages over them." in flat(alone.out)
    model = load_model(road / "model.json")
    assert isinstance(model, ScoreModel)
    people = example_people(20_000, seed=6)
    told = model.predict(people, scorers=[road / "bank.scorer"]).probability
    true = people.column("defaulted").to_numpy() == "yes"
    assert told is not None
    assert abs(told.mean() - true.mean()) < 0.03  # calibrated: the mean of probabilities is the share


def test_the_wrong_scorers_are_refused_with_words(road: Path, tmp_path: Path) -> None:
    model, people = load_model(road / "model.json"), road / "people.csv"
    with pytest.raises(MissingColumn, match="lacks 'car_age'"):
        model.predict(road / "bank.csv", scorers=[road / "insurer.scorer"])
    with pytest.raises(ContractMismatch, match="Two scorers belong to the same peer"):
        model.predict(people, scorers=[road / "bank.scorer", road / "bank.scorer"])
    other = rc.Contract.parse(CONTRACT.replace("default within", "default during"))
    rc.share(road / "bank.csv", other, "bank", keep_scorer=tmp_path / "other.scorer")
    with pytest.raises(ContractMismatch, match="another contract than the model's"):
        model.predict(people, scorers=[tmp_path / "other.scorer"])


def test_crafting_again_keeps_the_scorer_unless_asked(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    before = (road / "bank.scorer").read_bytes()
    same = craft(run, road, "bank", road / "bank.csv")
    assert "as it is, fitted on 1,500 rows" in flat(same.err)
    assert "given again, nothing spent" in flat(same.err)
    grown = pd.concat([pd.read_csv(road / "bank.csv"), example_people(500, seed=9).to_pandas()])
    grown[pd.read_csv(road / "bank.csv").columns].to_csv(road / "grown.csv", index=False)
    refused = craft(run, road, "bank", road / "grown.csv", "--refit")
    assert (refused.code, "already exists" in flat(refused.err)) == (1, True)
    made = craft(run, road, "bank", road / "grown.csv", "--json", "--force")
    assert made.json()["rows"] == pytest.approx(2000, abs=200)
    assert (road / "bank.scorer").read_bytes() == before
    anew = craft(run, road, "bank", road / "grown.csv", "--refit", "--force")
    assert "each scored by a model that has not seen it" in flat(anew.out)
    assert Scorer.load(road / "bank.scorer").rows == 2000


def test_rows_that_came_since_are_scored_by_a_model_that_never_saw_them(road: Path) -> None:
    """Labels of new rows turned round: had the scorer seen them, it would say what they say."""
    contract = rc.Contract.parse(CONTRACT)
    old, scorer = pd.read_csv(road / "bank.csv"), Scorer.load(road / "bank.scorer")
    new = example_people(1500, seed=11).to_pandas()[old.columns]
    turned = new.assign(defaulted=np.where(new["defaulted"] == "yes", "no", "yes"))
    cells = [
        rc.share(pd.concat([old, more]), contract, "bank", scorer=scorer, policy=rc.Policy.exact()).scores(contract)
        for more in (new, turned)
    ]
    centred = [c.sums.sum() * 2.0 + c.centre * c.rows.sum() for c in cells]
    assert centred[0] == pytest.approx(centred[1], rel=0.02)  # the same scores, whatever the labels are


def test_a_scorer_of_another_contract_is_not_used(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    (road / "scores.toml").write_text(CONTRACT.replace("45", "50"))
    refused = craft(run, road, "bank", road / "bank.csv")
    assert (refused.code, "--refit" in refused.err) == (3, True), refused.err
    assert craft(run, road, "bank", road / "bank.csv", "--refit", "--force").code == 0


FORESTS = {
    "forest": RandomForestClassifier(n_estimators=20, min_samples_leaf=10, random_state=0),
    "pipeline": make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["region", "job"]), remainder=StandardScaler()
        ),
        LogisticRegression(),
    ),
}


@pytest.mark.parametrize("name", FORESTS)
def test_any_estimator_takes_the_place_of_boosting(road: Path, name: str) -> None:
    contract = rc.Contract.parse(CONTRACT)
    seen: list[Scorer] = []
    own = rc.share(road / "bank.csv", contract, "bank", scorer=FORESTS[name], on_scorer=seen.append)
    assert (seen[0].performance.auc or 0.0) > 0.75
    model = rc.learn([own, road / "insurer.part.parquet"], contract)
    told = model.predict(road / "people.csv", scorers=[*seen, road / "insurer.scorer"])
    assert told.view == ("bank", "insurer")


def test_machines_get_it_as_json(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    told = craft(run, road, "bank", road / "bank.csv", "--json").json()["scorer"]
    assert told["out_of_fold"]["rows"] == 1500
    assert len(told["calibration"][0]) == 10
    words = (road / "bank.scorer", road / "people.csv", "-o", road / "s.parquet", "--json")
    assert run("score", *words).json() == {"scores": str(road / "s.parquet"), "peer": "bank", "rows": 200}
    explained = run("explain", road / "model.json", "--json").json()
    assert explained["method"] == "scores"
    assert json.dumps(explained)


def test_all_that_leaves_is_shown_before_it_does(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    (road / "policy.toml").write_text('review = true\nledger = "reviewed.ledger"\n')
    waiting = road / "reviewed.part.parquet"
    words = ("-c", road / "scores.toml", "-p", "bank", road / "bank.csv", "-o", waiting)
    made = run("craft", *words, "--policy", road / "policy.toml")
    assert (made.code, waiting.exists()) == (5, False)
    assert "error" in made.out  # how good its model is, the peer hears all the same
    pending = f"{waiting}.pending"
    told = flat(run("review", pending, "--cells", 0).out)
    part = json.loads(run("review", pending, "--json").out)
    for label, histogram in part["metadata"]["scores"]["histogram"].items():
        assert " ".join(f"{rows:,.4g}" for rows in histogram[:4]) in told, label
    assert "Rows by agreed signature" in told
    assert "given the peer's model" in told
    assert run("review", pending, "--approve", "--name", "A", "--reason", "agreed").code == 0
    assert run("inspect", waiting, "-c", road / "scores.toml").code == 0
    assert "sum of distances" in run("inspect", waiting).out


def test_explaining_and_reporting_speak_of_weights_and_absences(road: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    explained = flat(run("explain", road / "model.json").out)
    assert "Bayes' rule" in explained
    assert "Without bank the error to expect is" in explained
    assert run("report", road / "model.json", "-o", road / "report.html").code == 0
    assert "What each peer adds" in (road / "report.html").read_text()
