"""Counts of scores on their way out: the ledger first, a person in between, and once."""

import json
import time
from pathlib import Path

import pytest

import radocraft as rc
from radocraft.errors import ContractMismatch, FileError, PolicyRefusal
from radocraft.offer import pending_path, resume
from radocraft.privacy.ledger import Ledger
from radocraft.telling import SCORES, Told, WaitingScores, let_scores_go

JOB = "a" * 64
Counted = tuple[rc.Model, Told]
CONTRACT, TABLES = rc.example_peers(rows=500)


@pytest.fixture(scope="module")
def counted() -> Counted:
    parts = [rc.Part.seal(rc.release(rc.craft(TABLES[peer], CONTRACT, peer), CONTRACT)) for peer in TABLES]
    model = rc.learn(parts, CONTRACT)
    return model, rc.tell_scores(TABLES["bank"], model, "bank")


def policy_in(folder: Path, rows: int = 500) -> rc.Policy:
    """A policy whose ledger knows the part that left, of so many rows."""
    policy = rc.Policy(ledger=str(folder / "ledger"), table="customers")
    released = rc.make_release(TABLES["bank"].slice(0, rows), CONTRACT, "bank", policy)
    rc.let_go(released, policy, "t", folder / "part.parquet")
    return policy


def kinds(folder: Path) -> list[str]:
    return [line["kind"] for line in Ledger(folder / "ledger").entries()[1:]]


@pytest.mark.parametrize("verdict", ["approval", "refusal"])
def test_a_decision_cut_short_is_brought_to_its_end(counted: Counted, tmp_path: Path, verdict) -> None:  # type: ignore[no-untyped-def]
    """The ledger knows of the decision, and the process died before it wrote the counts."""
    (model, told), policy, output = counted, policy_in(tmp_path), tmp_path / "scores.json"
    let_scores_go(told, model, policy, "t", output, waits=True, job=JOB)
    assert resume(output, policy, JOB, SCORES) == "waiting"
    WaitingScores.read(pending_path(output)).decide(verdict, "A. Muster", "agreed")
    assert resume(output, policy, JOB, SCORES) == {"approval": "released", "refusal": "refused"}[verdict]
    assert output.exists() == (verdict == "approval")
    assert kinds(tmp_path) == ["scores proposal", {"approval": "scores", "refusal": "scores refusal"}[verdict]]


def test_killed_between_the_ledger_and_the_file(counted: Counted, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (model, told), policy, output = counted, policy_in(tmp_path), tmp_path / "scores.json"
    with monkeypatch.context() as cut:
        cut.setattr("radocraft.offer.os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        cut.setattr(Told, "save", lambda self, path: Path(path).write_bytes(self.encode()))
        with pytest.raises(KeyboardInterrupt):
            let_scores_go(told, model, policy, "t", output, job=JOB)
    assert not output.exists()
    assert resume(output, policy, JOB, SCORES) == "released"
    assert Told.load(output) == told
    with pytest.raises(PolicyRefusal, match="no request is answered twice"):
        let_scores_go(told, model, policy, "t", output, job=JOB)
    output.write_text(output.read_text().replace('"bank"', '"shop"'))
    with pytest.raises(FileError, match="not made twice"):
        resume(output, policy, JOB, SCORES)


def test_of_two_proposals_one_may_leave(counted: Counted, tmp_path: Path) -> None:
    (model, told), policy = counted, policy_in(tmp_path)
    outputs = [tmp_path / name for name in ("first", "second", "third")]
    for at, output in enumerate(outputs):
        let_scores_go(told, model, policy, "t", output, waits=True, job=f"{at:064x}")
    first, second, third = (WaitingScores.read(pending_path(output)) for output in outputs)
    third.decide("refusal", "A. Muster", "not now")
    first.decide("approval", "A. Muster", "agreed")
    with pytest.raises(PolicyRefusal, match="no second time"):
        second.decide("approval", "A. Muster", "once more")
    with pytest.raises(PolicyRefusal, match="decided on already"):
        third.decide("approval", "A. Muster", "changed my mind")
    stages = [resume(output, policy, f"{at:064x}", SCORES) for at, output in enumerate(outputs)]
    assert stages == ["released", "waiting", "refused"]


def test_changed_or_unknown_proposals_are_refused(counted: Counted, tmp_path: Path) -> None:
    (model, told), policy = counted, policy_in(tmp_path)
    let_scores_go(told, model, policy, "t", tmp_path / "scores.json", waits=True)
    pending = tmp_path / "scores.json.pending"
    assert pending.stat().st_mode & 0o077 == 0
    body = json.loads(pending.read_bytes())
    body["told"]["rows"][0][0] += 1
    (tmp_path / "changed").write_text(json.dumps(body))
    with pytest.raises(FileError, match="were changed"):
        WaitingScores.read(tmp_path / "changed")
    lines = (tmp_path / "ledger").read_bytes().splitlines(keepends=True)
    (tmp_path / "ledger").write_bytes(lines[0])
    with pytest.raises(PolicyRefusal, match="never proposed"):
        WaitingScores.read(pending).decide("approval", "A. Muster", "agreed")
    with pytest.raises(ContractMismatch, match=r"of 'bank', not of 'shop'"):
        told.check("shop", model)


def test_counts_need_the_part_of_the_same_rows(counted: Counted, tmp_path: Path) -> None:
    """Nothing has left, a part of fewer rows has, or another part has left since the counts were proposed."""
    model, told = counted
    nothing = rc.Policy(ledger=str(tmp_path / "empty"), table="customers")
    with pytest.raises(PolicyRefusal, match="No part of 'customers' has left"):
        let_scores_go(told, model, nothing, "t", tmp_path / "scores.json")
    (tmp_path / "fewer").mkdir()
    with pytest.raises(PolicyRefusal, match="whole cells of the part"):
        let_scores_go(told, model, policy_in(tmp_path / "fewer", rows=480), "t", tmp_path / "scores.json")
    policy = policy_in(tmp_path)
    let_scores_go(told, model, policy, "t", tmp_path / "scores.json", waits=True)
    time.sleep(1)  # a part made in another second has another hash
    policy_in(tmp_path)
    with pytest.raises(PolicyRefusal, match="Another part"):
        WaitingScores.read(tmp_path / "scores.json.pending").decide("approval", "A. Muster", "agreed")


def test_a_model_that_names_finer_blocks_gets_no_counts(tmp_path: Path) -> None:
    """An attack: what was rolled up is asked for by itself, and the few rows beside it would be what is left over."""
    policy = rc.Policy(ledger=str(tmp_path / "ledger"), table="customers", min_rows=40)
    released = rc.make_release(TABLES["bank"], CONTRACT, "bank", policy)
    part = rc.let_go(released, policy, "t", tmp_path / "part.parquet")
    other = rc.Part.seal(rc.release(rc.craft(TABLES["insurer"], CONTRACT, "insurer"), CONTRACT, rc.Policy(40)))
    honest = rc.learn([part, other], CONTRACT)
    fine = [
        rc.Part.seal(rc.release(rc.craft(TABLES[peer], CONTRACT, peer), CONTRACT, rc.Policy(10))) for peer in TABLES
    ]
    hostile = rc.learn(fine, CONTRACT)
    assert len(hostile.blocks.labels) > len(honest.blocks.labels)
    told = rc.tell_scores(TABLES["bank"], hostile, "bank", policy)
    with pytest.raises(PolicyRefusal, match="whole cells of the part"):
        let_scores_go(told, hostile, policy, "t", tmp_path / "scores.json")
    sound = rc.tell_scores(TABLES["bank"], honest, "bank", policy)
    let_scores_go(sound, honest, policy, "t", tmp_path / "scores.json")
    assert kinds(tmp_path) == ["scores"]


@pytest.mark.parametrize(("rows", "fewest", "seed"), [(150, 5, 0), (400, 10, 1), (900, 10, 1), (900, 25, 2)])
def test_a_model_of_the_parts_is_never_refused(tmp_path: Path, rows: int, fewest: int, seed: int) -> None:
    """Peers of different people and limits, so that what one rolls up another does not."""
    contract, bank = rc.example_peers(rows=rows, seed=seed)
    _, insurer = rc.example_peers(rows=rows // 2 + 50, seed=seed + 10)
    tables = {"bank": bank["bank"], "insurer": insurer["insurer"]}
    policies = {
        peer: rc.Policy(min_rows=fewest * (at + 1), ledger=str(tmp_path / peer), table=peer)
        for at, peer in enumerate(tables)
    }
    made = {peer: rc.make_release(table, contract, peer, policies[peer]) for peer, table in tables.items()}
    parts = [rc.let_go(made[peer], policies[peer], peer, tmp_path / f"{peer}.part") for peer in tables]
    model = rc.learn(parts, contract)
    for peer, table in tables.items():
        told = rc.tell_scores(table, model, peer, policies[peer])
        let_scores_go(told, model, policies[peer], peer, tmp_path / f"{peer}.scores")
        assert told.total == len(table)
