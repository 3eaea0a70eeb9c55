"""Contracts of scores over real sockets and TLS: asked and dialled out, by review, again on grown tables."""

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.integration.net.live import live
from tests.integration.net.world import PEERS, World, tables
from tests.integration.test_cli import run  # noqa: F401
from tests.unit.scored import scored_model

from radocraft.ledger import Leaving
from radocraft.model import ScoreModel, load_model
from radocraft.rows import Scorer

CONTRACT = """
name = "default within a year"
label = { column = "defaulted", positive = "yes", negative = "no" }
shared = [{ name = "region", categories = ["north", "east", "south", "west"] }]
key = [{ name = "phone", hash = 64, secret = "SECRET" }]
peers.bank.features = { bank_score = { kind = "score", model = "linear", folds = 2 } }
peers.insurer.features = { insurer_score = { kind = "score", model = "linear", folds = 2 } }
peers.shop.features = { shop_score = { kind = "score", of = ["visits", "basket"], model = "linear", folds = 2 } }
"""
SECRET = b"a secret of the peers, which the learner lacks"


@pytest.fixture
def scored(town: World) -> World:
    """The town under a contract of scores with a key that is hashed."""
    (town.folder / "contract.toml").write_text(CONTRACT.replace("SECRET", hashlib.sha256(SECRET).hexdigest()))
    (town.folder / "secret").write_bytes(SECRET)
    fill(town, 1200)
    return town


def fill(town: World, rows: int) -> None:
    for peer, table in tables(rows).items():
        phone = [f"+41 79 {at * 7919 % 10**7:07d}" for at in range(rows)]
        pq.write_table(table.append_column("phone", [phone]), town.folder / peer / "table.parquet")


def test_two_are_asked_and_one_dials_out(scored: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    secret = ("--secret", scored.folder / "secret")
    served = scored.serve("bank", "insurer", more=secret)
    places = {peer: port for peer, (_, port) in served.items()} | {"shop": "mailbox"}
    collector = scored.collect(places, "--listen", "127.0.0.1:0")
    pusher = scored.push("shop", scored.mailbox_port(collector), "--once", *secret)
    assert collector.wait() == 0, scored.log("collector")
    assert pusher.wait() == 0, scored.log("shop")
    for process, _ in served.values():
        assert process.end() == 0
    model = load_model(scored.folder / "model.json")
    assert isinstance(model, ScoreModel)
    assert (model.peers, model.relation.source) == (PEERS, "linked groups")
    for peer in PEERS:
        (job,) = [path for path in (scored.folder / peer / "jobs").iterdir() if path.is_dir()]
        assert (job / "model.json").read_bytes() == (scored.folder / "model.json").read_bytes()
        assert not [*(scored.folder / "job").rglob("*.scorer")]
        assert Scorer.load(scored.folder / peer / f"{peer}.scorer").peer == peer
    by_file(scored, run, secret)


def by_file(world: World, run, secret: tuple[object, ...]) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """The same part comes by file, at no cost: the scorer is the one that the network left."""
    where, part = world.folder / "bank", world.folder / "bank" / "part.parquet"
    words = ("-c", world.folder / "contract.toml", "-p", "bank", where / "table.parquet", "--exact", *secret)
    crafted = run("craft", *words, "-o", part, "--policy", where / "policy.toml", "--sign", where / "identity")
    assert crafted.code == 0, crafted.err
    assert "given again, nothing spent" in " ".join(crafted.err.split())
    assert part.read_bytes() == (world.folder / "job" / "bank.part.parquet").read_bytes()


def test_what_is_asked_again_of_a_grown_table_is_scored_by_the_same_scorer(scored: World) -> None:
    with live(scored, "bank", secret=scored.folder / "secret") as bank:
        first = bank.request("a" * 32)
        assert bank.ask(bank.call(), first).state == "ready"
        kept = (scored.folder / "bank" / "bank.scorer").read_bytes()
        fill(scored, 1500)
        assert bank.ask(bank.call(), bank.request("b" * 32)).state == "ready"
        assert (scored.folder / "bank" / "bank.scorer").read_bytes() == kept
        rows = [line.rows for line in bank.ledger() if isinstance(line, Leaving)]
        assert rows == [pytest.approx(1200, abs=80), pytest.approx(1500, abs=80)]


def test_review_stands_between_request_and_part(scored: World) -> None:
    scored.ask_a_person("bank")
    with live(scored, "bank", secret=scored.folder / "secret") as bank:
        assert bank.ask(bank.call(), bank.request()).state == "waiting"
        (pending,) = (scored.folder / "bank" / "jobs").glob("*/part.parquet.pending")
        assert not [*pending.parent.glob("*.scorer")]


def test_without_the_secret_nothing_leaves(scored: World) -> None:
    with live(scored, "bank") as bank:
        answer = bank.ask(bank.call(), bank.request())
        assert answer.state == "failed"  # the learner hears no more than that; the peer's log says why
        assert not bank.ledger()


def test_there_is_no_second_round_of_a_model_of_scores(scored: World, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    model = scored_model(rows=1000)
    model.save(tmp_path / "model.json")
    refused = run("count", tmp_path / "model.json", "t.parquet", "-p", "bank", "-o", tmp_path / "c.json", "--json")
    assert (refused.code, "no second round" in json.loads(refused.err)["message"]) == (1, True)
