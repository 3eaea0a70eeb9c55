"""The second round over the network: counts of a model's scores, by the same road as parts."""

import json
import shutil
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pyarrow.flight as fl
import pytest
from pydantic import ConfigDict
from tests.integration.net.live import Live, live
from tests.integration.net.test_refused import put
from tests.integration.net.world import EXACT, PEERS, Running, World, tables
from tests.integration.test_cli import run  # noqa: F401

from radocraft import share
from radocraft.errors import IdentityError, NetworkError
from radocraft.learning._learn import learn
from radocraft.ledger._chain import Chain
from radocraft.ledger._ledger import Ledger
from radocraft.ledger._lines import Decision, Leaving
from radocraft.net._channel import Channel
from radocraft.net._messages import Answer, Delivery, Fetch, Nothing, Receipt, Request
from radocraft.parts._histograms import Histograms


def second_round(town: World, ports: dict[str, object], *more: object) -> Running:
    """The collector's second command."""
    said = ",".join(f"{peer}={at if at == 'mailbox' else f'{town.host(peer)}:{at}'}" for peer, at in ports.items())
    given = ("-c", "contract.toml", "--from", said, "-i", "collector", "--second-round", "model.json")
    return town.start("collect", *given, "-o", "model2.json", "--job", "second", *more, log="collector.log")


def test_counts_and_model_are_those_of_the_file_route(town: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """Without noise (bank) made anew they are the same to the bit; with noise they are given again, at no cost."""
    folder = town.folder
    town.rule("bank", EXACT)
    served = town.serve("bank", "insurer")
    places = {peer: port for peer, (_, port) in served.items()} | {"shop": "mailbox"}
    listen = ("--listen", f"{town.host('collector')}:0")
    first = town.collect(places, *listen)
    pusher = town.push("shop", town.mailbox_port(first), "--once")
    assert (first.wait(), pusher.wait()) == (0, 0), town.log("collector")
    before = town.size("collector")
    second = second_round(town, places, *listen)
    pusher = town.push("shop", town.mailbox_port(second, before), "--once")
    assert (second.wait(), pusher.wait()) == (0, 0), town.log("collector", before)
    assert "On new rows expect" in town.log("collector", before)
    for peer in PEERS:
        given = (folder / "model.json", folder / peer / "table.parquet", "--peer", peer)
        policy = folder / peer / "file.toml"
        ledger = "file.ledger" if peer == "bank" else "ledger"
        policy.write_text((folder / peer / "policy.toml").read_text().replace('"ledger"', f'"{ledger}"'))
        told = run("count", *given, "--policy", policy, "-o", folder / f"{peer}.json")
        assert told.code == 0, told.err
        assert (folder / f"{peer}.json").read_bytes() == (folder / "second" / f"{peer}.scores.json").read_bytes()
        check_logs(folder, peer)
    files = [folder / f"{peer}.json" for peer in PEERS]
    assert run("recalibrate", folder / "model.json", *files, "-o", folder / "by-file.json").code == 0
    assert (folder / "by-file.json").read_bytes() == (folder / "model2.json").read_bytes()
    assert json.loads((folder / "model2.json").read_bytes())["second_round"] is not None


def lines_of(folder: Path, peer: str) -> list[Leaving | Decision]:
    return [line.entry for line in Ledger(folder / peer / "ledger").lines()]


def check_logs(folder: Path, peer: str) -> None:
    """Ledger and both audit logs speak of the same counts, and the peer has the new model."""
    lines = lines_of(folder, peer)
    counts = (folder / "second" / f"{peer}.scores.json").read_bytes()
    assert [(line.kind, line.what) for line in lines] == [("release", "part"), ("release", "scores")]
    assert lines[1].file == sha256(counts).hexdigest()
    job = lines[1].job
    audit = [line for line in Chain(folder / peer / "jobs" / "audit.log").entries() if line.get("job") == job]
    assert [line["kind"] for line in audit] == ["request", "ready", "sending", "received", "model"]
    assert {line["sha256"] for line in audit[1:4]} == {sha256(counts).hexdigest()}
    heard = [line for line in Chain(folder / "second" / "audit.log").entries() if line.get("job") == job]
    assert [line["sha256"] for line in heard if line["kind"] == "received"] == [sha256(counts).hexdigest()]
    assert (folder / peer / "jobs" / job / "model.json").read_bytes() == (folder / "model2.json").read_bytes()


def test_killed_in_the_second_round_counts_leave_once(town: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """A peer while a person decides, the collector after; both are started again with the same words."""
    served = town.serve("bank", "insurer")
    places = {peer: port for peer, (_, port) in served.items()}
    assert town.collect(places).wait() == 0, town.log("collector")
    served["bank"][0].end(9)
    town.ask_a_person("bank")
    served |= town.serve("bank", port=served["bank"][1])
    before = town.size("collector")
    collector = second_round(town, places)
    town.read(collector, "collector", r"(bank: a person at the peer has yet to decide)", before)
    served["bank"][0].end(9)
    (pending,) = (town.folder / "bank" / "jobs").glob("*/scores.json.pending")
    shown = run("review", pending)
    assert "rows in 128 bins" in shown.out
    assert run("review", pending, "--web").code == 2
    town.serve("bank", port=served["bank"][1])
    collector.end(9)
    assert not (town.folder / "second" / "bank.scores.json").exists()
    assert run("review", pending, "--approve", "--name", "A. Muster", "--reason", "agreed").code == 0
    assert run("review", pending, "--approve", "--name", "A. Muster", "--reason", "again").code == 1
    again = second_round(town, places)
    assert again.wait() == 0, town.log("collector", before)
    lines = lines_of(town.folder, "bank")
    assert [(line.kind, line.what) for line in lines] == [
        ("release", "part"),
        ("proposal", "scores"),
        ("approval", "scores"),
    ]
    assert isinstance(lines[2], Decision)
    assert lines[2].name == "A. Muster"
    third = second_round(town, places, "--job", "third", "--force")
    assert third.wait() == 0, town.log("collector", before)
    for peer in ("bank", "insurer"):  # the same counts, paid for and approved already
        second, again = (town.folder / job / f"{peer}.scores.json" for job in ("second", "third"))
        assert second.read_bytes() == again.read_bytes()
    assert lines_of(town.folder, "bank") == lines
    assert [line.what for line in lines_of(town.folder, "insurer")] == ["part", "scores"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What was learned from the peers of every world here."""
    contract, path = World.make(tmp_path_factory.mktemp("world")).contract, tmp_path_factory.mktemp("model") / "model"
    learn([share(table, contract, peer) for peer, table in tables(600).items()], contract).save(path)
    return path.read_bytes()


def give_model(bank: Live, channel: Channel, model: bytes, id: str = "a" * 32) -> None:
    """The first round: a part, and the model that comes back."""
    request = bank.request(id)
    answer = bank.ask(channel, request)
    channel.act("received", Receipt(job=request.job, sha256=str(answer.sha256)), Nothing)
    facts = {"job": request.job, "size": len(model), "sha256": sha256(model).hexdigest()}
    put(channel, Delivery(what="model", **facts), [model])


def scores_of(bank: Live, model: bytes, id: str = "d" * 32) -> Request:
    contract = bank.world.contract
    facts = {"id": id, "model": sha256(model).hexdigest()}
    return Request.now("bank", contract.name, contract.fingerprint, timedelta(hours=1), **facts)


def fetched(channel: Channel, what: str, request: Request) -> bytes:
    ticket = fl.Ticket(Fetch(what=what, job=request.job).encode())  # type: ignore[arg-type]
    with channel._explaining():
        stream = channel.flight.do_get(ticket, channel._options(30)).read_all()
    return b"".join(value.as_py() for value in stream.column("bytes"))


def test_a_replayed_request_for_scores_releases_nothing_twice(world: World, model: bytes) -> None:
    with live(world) as bank, bank.call() as channel:
        give_model(bank, channel, model)
        request = scores_of(bank, model)
        answer = bank.ask(channel, request)
        assert (answer.state, bank.ask(channel, request)) == ("ready", answer)
        with pytest.raises(NetworkError, match="no part of this job"):
            fetched(channel, "part", request)
        counts = fetched(channel, "scores", request)
        assert sha256(counts).hexdigest() == answer.sha256
        assert Histograms.model_validate_json(counts).noise >= 1
        channel.act("received", Receipt(job=request.job, sha256=str(answer.sha256)), Nothing)
        with pytest.raises(IdentityError, match="nothing is sent twice"):
            fetched(channel, "scores", request)
        again = bank.ask(channel, scores_of(bank, model, "e" * 32))
        assert (again.state, again.sha256) == ("ready", answer.sha256)
    assert [(line.kind, line.what) for line in bank.ledger()] == [("release", "part"), ("release", "scores")]


def test_scores_of_one_model_after_the_other_are_paid_for_until_nothing_is_left(world: World, model: bytes) -> None:
    tree = json.loads(model)
    later = json.dumps(tree | {"created": "2100-01-01T00:00:00+00:00"}).encode()  # the same scores: nothing new to tell
    other = json.dumps(tree | {"intercept": tree["intercept"] + 1}).encode()
    world.rule("bank", "lifetime_releases = 2")
    answers = []
    with live(world) as bank, bank.call() as channel:
        for id, given in enumerate((model, later, other)):
            give_model(bank, channel, given, f"{id:032x}")
            answers.append(bank.ask(channel, scores_of(bank, given, f"{id:032x}")))
        assert [line.what for line in bank.ledger()] == ["part", "scores"]
    assert [answer.state for answer in answers] == ["ready", "ready", "refused"]
    assert (answers[0].sha256, answers[2].exit_code) == (answers[1].sha256, 4)


def test_scores_of_a_model_that_never_came(world: World, model: bytes) -> None:
    """It is a failure, which may be mended, and not a refusal; another's model does not count."""
    (world.folder / "bank" / "identity" / "members.toml").write_text("[collector]\n[shop]\n")
    with live(world) as bank, bank.call() as channel, bank.call("shop/identity") as other:
        request = scores_of(bank, model)
        early = bank.ask(channel, request)
        assert (early.state, "could not make the scores (FileError)" in str(early.reason)) == ("failed", True)
        give_model(bank, channel, model)
        assert bank.ask(other, scores_of(bank, model, "e" * 32)).state == "failed"
        assert bank.ask(channel, request).state == "ready"


def test_a_file_that_is_no_model_makes_nothing_leave(world: World, model: bytes) -> None:
    other = model.replace(b'"visits"', b'"visit"')  # of another contract
    assert other != model
    for id, wrong in enumerate((b"not a model", b"{}", other)):
        with live(world) as bank, bank.call() as channel:
            give_model(bank, channel, wrong)
            answer = bank.ask(channel, scores_of(bank, wrong, f"{id:032x}"))
            assert answer.state == "failed"
            assert [line.what for line in bank.ledger()] == ["part"]
        shutil.rmtree(world.folder / "bank" / "jobs")
        (world.folder / "bank" / "ledger").unlink()


def test_a_request_for_scores_names_a_model_and_no_other_does(world: World) -> None:
    with live(world) as bank, bank.call() as channel:
        sound = json.loads(bank.request().encode())
        for change in ({"kind": "scores"}, {"model": "0" * 64}, {"kind": "rows"}):
            with pytest.raises(NetworkError, match="not a Request"):
                channel.act("request", Raw.model_validate(sound | change), Answer)


class Raw(Nothing):
    """A message as it is, right or wrong."""

    model_config = ConfigDict(extra="allow")


def test_mistakes_of_the_learner(world: World, run, model: bytes) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    folder = world.folder
    (folder / "model.json").write_bytes(model)
    given = ("-i", folder / "collector", "--second-round", folder / "model.json", "-o", folder / "m2")
    every = ",".join(f"{peer}=127.0.0.1:1" for peer in PEERS)
    some = run("collect", "-c", folder / "contract.toml", "--from", "bank=127.0.0.1:1", *given)
    assert (some.code, "asks every peer of the model" in " ".join(some.err.split())) == (2, True)
    learning = run("collect", "-c", folder / "contract.toml", "--from", every, *given, "--method", "drl")
    assert learning.code == 2
    other = (folder / "contract.toml").read_text().replace("[30, 45, 60]", "[30, 45]")
    (folder / "other.toml").write_text(other)
    mismatch = run("collect", "-c", folder / "other.toml", "--from", every, *given)
    assert (mismatch.code, "another contract" in " ".join(mismatch.err.split())) == (3, True)
    assert not (folder / "m2.job").exists()
