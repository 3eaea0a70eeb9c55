"""The second round: what leaves, what it adds up to, and what is refused."""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radocraft.policy.bins import joined_bins
from radocraft.telling import Told
from typer.testing import CliRunner

import radocraft as rc
from radocraft.cli import app
from radocraft.errors import ContractMismatch, FileError, LearnError, PolicyRefusal
from radocraft.learning._metrics import auc, error_rate
from radocraft.ledger._ledger import Ledger
from radocraft.peer._counting import count_scores

SKEWED = rc.Contract.parse("""
name = "skewed"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
""")


def skewed(rows: int, seed: int) -> pa.Table:
    """Independent inside blocks and far from normal: exponential under one label, two-humped under the other."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    u = np.where(y == 1, rng.exponential(1.0, rows), rng.choice([-0.5, 0.9], rows) + 0.05 * rng.normal(size=rows))
    v = np.where(y == 1, rng.exponential(1.0, rows), rng.choice([-0.4, 0.8], rows) + 0.05 * rng.normal(size=rows))
    return pa.table({"y": y, "s": np.array(["a", "b"])[s], "u": u, "v": v + s})


def log_loss(probability: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.mean(np.log(np.where(labels > 0, probability, 1 - probability))))


@pytest.fixture(scope="module")
def learned() -> tuple[rc.Model, dict[str, pa.Table]]:
    whole = skewed(20_000, 0)
    tables = {"one": whole.select(["y", "s", "u"]), "two": whole.select(["y", "s", "v"])}
    parts = [rc.Part.seal(rc.release(rc.craft(tables[peer], SKEWED, peer), SKEWED)) for peer in tables]
    return rc.learn(parts, SKEWED, caution=0.0), tables


@given(counts=st.lists(st.integers(0, 30), min_size=1, max_size=40), limit=st.integers(1, 25))
def test_no_bin_is_small_and_no_row_is_lost(counts, limit):
    starts, rows = joined_bins(np.array(counts), limit)
    if sum(counts) < limit:
        assert (starts, rows) == ((), ())
        return
    assert min(rows) >= limit
    assert starts[0] == 0
    assert list(rows) == np.add.reduceat(counts, starts).tolist()


def test_counts_are_of_the_peers_own_rows(learned):
    model, tables = learned
    for peer, table in tables.items():
        assert count_scores(rc.open_source(table), model, peer).sum() == table.num_rows


def test_the_estimate_needs_no_normal_scores(learned):
    model, tables = learned
    told = [rc.tell_scores(table, model, peer) for peer, table in tables.items()]
    assert min(rows for one in told for block in one.rows for rows in block) >= 10
    better = rc.recalibrate(model, told)
    found = better.second_round
    new = skewed(200_000, 1)
    labels = np.where(new["y"].to_numpy() == 1, 1, -1)
    log_odds = better.odds.log_odds(rc.predict(better, new).score)
    true_error, true_auc = error_rate(log_odds, labels), auc(log_odds, labels)
    assert abs(found.error - true_error) < 0.01 < abs(model.estimate.error - true_error)
    assert abs(found.auc - true_auc) < 0.01
    assert found.true_positive_rate[0] <= 0.01
    told_before, told_now = rc.predict(model, new).probability, rc.predict(better, new).probability
    assert log_loss(told_now, labels) < log_loss(told_before, labels)
    assert found.true_positive_rate[-1] == pytest.approx(1.0)


def test_counts_of_a_table_leave_once(learned, tmp_path):
    model, tables = learned
    policy = rc.Policy(ledger=str(tmp_path / "one.ledger"), table="customers")
    rc.let_go(rc.make_release(tables["one"], SKEWED, "one", policy), policy, "t", tmp_path / "one.part.parquet")
    told = rc.tell_scores(tables["one"], model, "one", policy)
    rc.let_scores_go(told, model, policy, "t", tmp_path / "one.json")
    _, line = Ledger(tmp_path / "one.ledger").entries()
    assert (line["kind"], line["part"]) == ("scores", sha256((tmp_path / "one.json").read_bytes()).hexdigest())
    with pytest.raises(PolicyRefusal, match="no second time"):
        rc.let_scores_go(told, model, policy, "t", tmp_path / "again.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "one.ledger", "one.part.parquet"]


@pytest.mark.parametrize("false", [1e-3, 1e-9])
def test_a_model_that_asks_for_bins_too_fine_gets_no_counts(learned, false):
    """An attack: effects far smaller than they are would give edges that tell the scores of single rows."""
    model, tables = learned
    hostile = model.model_copy(update={"effects": {name: false * value for name, value in model.effects.items()}})
    with pytest.raises((PolicyRefusal, LearnError), match="bins"):
        rc.tell_scores(tables["one"], hostile, "one")


def test_what_does_not_fit_together_is_refused(learned, tmp_path):
    model, tables = learned
    one, two = (rc.tell_scores(table, model, peer) for peer, table in tables.items())
    with pytest.raises(LearnError, match="each peer"):
        rc.recalibrate(model, [one])
    with pytest.raises(LearnError, match="each peer"):
        rc.recalibrate(model, [one, one])
    with pytest.raises(ContractMismatch, match="another model"):
        rc.recalibrate(model, [one, two.model_copy(update={"model": "0" * 64})])
    with pytest.raises(LearnError, match="not learned from"):
        rc.tell_scores(tables["one"], model, "three")
    private = {"epsilon": 1.0}
    rules = rc.Policy(mode="differential-privacy", privacy=private, ledger=str(tmp_path / "l"))
    with pytest.raises(PolicyRefusal, match="protection"):
        rc.tell_scores(tables["one"], model, "one", rules)
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(FileError, match="radocraft count"):
        Told.load(tmp_path / "broken.json")


def test_the_second_round_on_the_command_line(learned, tmp_path):
    import pyarrow.parquet as pq  # noqa: PLC0415

    model, tables = learned
    model.save(tmp_path / "model.json")
    for peer, table in tables.items():
        pq.write_table(table, tmp_path / f"{peer}.parquet")
        command = ["count", str(tmp_path / "model.json"), str(tmp_path / f"{peer}.parquet"), "--peer", peer]
        assert CliRunner().invoke(app, [*command, "-o", str(tmp_path / f"{peer}.json")]).exit_code == 0
    files = [str(tmp_path / f"{name}.json") for name in ("model", "one", "two")]
    told = CliRunner().invoke(app, ["recalibrate", *files, "-o", str(tmp_path / "judged.json"), "--json"])
    assert told.exit_code == 0, told.output
    kept = rc.Model.load(tmp_path / "judged.json")
    assert kept.second_round is not None
    assert json.loads(told.output)["error"] == kept.second_round.error
    assert "counts of scores" in CliRunner().invoke(app, ["explain", str(tmp_path / "judged.json")]).output
