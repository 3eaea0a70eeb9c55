"""The first hour with one's own data: two files as companies have them, a model at the end, and no cleaning by hand."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
from sklearn.metrics import roc_auc_score
from tests import messy
from tests.integration.test_cli import run  # noqa: F401 - a fixture

import radocraft as rc

ROWS = int(os.environ.get("RADOCRAFT_MESSY_ROWS", "6000"))
WITHIN = 0.005
EXACT = 'mode = "exact"\ngives_away_rows = true\n'  # so that nothing but cleaning makes a difference
CLEAN = """
name = "default"
label = { column = "default", positive = true, negative = false }
key = [{ name = "birth_date", day_of_year = true }]

[[shared]]
name = "region"
categories = ["east", "north", "south", "west"]

[[shared]]
name = "age"
edges = [34, 50, 65]

[peers.bank.features]
bank_score = { kind = "score", of = ["Balance", "Income", "Married", "Occupation", "Postcode"] }
[peers.bank.columns]
default = "Default"
region = "Region"
age = "Age"
birth_date = "Date of birth"
[peers.insurer.features]
insurer_score = { kind = "score", of = ["premium", "claims", "smoker", "customer_since"] }
[peers.insurer.columns]
age = "age_at_signing"
"""


def by_hand(clean: dict[str, pa.Table], new: dict[str, pa.Table], folder: Path) -> Any:
    """Log-odds of new people from tables that somebody cleaned in an afternoon."""
    contract = rc.Contract.parse(CLEAN)
    scorers: list[Any] = []
    parts = [
        rc.share(
            clean[peer],
            contract,
            peer,
            policy=rc.Policy.exact(10),
            output=folder / f"{peer}.part.parquet",
            on_scorer=scorers.append,
        )
        for peer in contract.peers
    ]
    model = rc.learn(parts, contract)
    return rc.predict(model, [scorer.score(new[scorer.peer]) for scorer in scorers]).score


def test_two_messy_files_become_a_model_as_good_as_after_cleaning_by_hand(
    tmp_path: Path,
    monkeypatch: Any,
    run: Any,  # noqa: F811
) -> None:
    (tmp_path / "exact.toml").write_text(EXACT)
    (tmp_path / "new").mkdir()
    (tmp_path / "by hand").mkdir()
    monkeypatch.chdir(tmp_path)
    rng, tables = np.random.default_rng(7), messy.tables(messy.truth(ROWS))
    orders = {peer: rng.permutation(ROWS) for peer in tables}
    people = messy.truth(10_000, seed=1)
    new = messy.tables(people, seed=2)
    for peer, (words, _) in tables.items():
        messy.write(tmp_path, peer, words, orders[peer])
        messy.write(tmp_path / "new", peer, new[peer][0])
        (tmp_path / f"{peer}.json").write_text(run("profile", f"{peer}.csv", "--outline", "--json").out)
    profiles = ("bank=bank.json", "insurer=insurer.json")
    drafted = run("contract", "new", *profiles, "--name", "default", "--label", "default", "-o", "contract.toml")
    assert drafted.code == 0, drafted.err
    text = Path("contract.toml").read_text()
    assert text.count("# AGREE:") <= 10
    assert run("contract", "check", "contract.toml").code == 0  # nothing had to be edited but what people must agree on
    for column in ("Kundennummer", "Remarks", "Currency", "id"):
        assert f"# left out: {column}, " in text
    for peer in tables:
        agreed = ("-c", "contract.toml", "-p", peer, "--policy", "exact.toml")
        done = run("craft", f"{peer}.csv", *agreed, "-o", f"{peer}.part.parquet")
        assert done.code == 0, done.err
        assert run("score", f"{peer}.scorer", f"new/{peer}.csv", "-o", f"{peer}.scores.parquet").code == 0
    parts = ("bank.part.parquet", "insurer.part.parquet")
    assert run("learn", *parts, "-c", "contract.toml", "-o", "model.json").code == 0
    assert run("report", "model.json", "-o", "report.html").code == 0
    scores = ("bank.scores.parquet", "insurer.scores.parquet")
    assert run("predict", "model.json", *scores, "-o", "scores.csv").code == 0
    found = roc_auc_score(people["bad"], pcsv.read_csv("scores.csv")["score"].to_numpy())
    clean = {peer: pa.table(values).take(pa.array(orders[peer])) for peer, (_, values) in tables.items()}
    expected = by_hand(clean, {peer: pa.table(values) for peer, (_, values) in new.items()}, tmp_path / "by hand")
    expected = roc_auc_score(people["bad"], expected)
    print(f"AUC {found:.4f} from messy files, {expected:.4f} after cleaning by hand")
    assert expected > 0.7
    assert abs(found - expected) <= WITHIN
