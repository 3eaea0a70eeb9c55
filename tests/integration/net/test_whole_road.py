"""Four processes, real sockets, real TLS: what comes over the network is what files would have brought, to the bit."""

import json
from pathlib import Path

import pytest
from tests.integration.net.world import EXACT, PEERS, World
from tests.integration.test_cli import run  # noqa: F401

from radocraft.ledger._chain import Chain
from radocraft.ledger._ledger import Ledger
from radocraft.ledger._lines import Leaving
from radocraft.net._identity import Identity
from radocraft.parts._part import Part
from radocraft.parts._sign import check_signature, public_key


def test_two_are_asked_one_dials_out_and_all_is_as_by_file(place: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """Without noise (bank) a part made anew is the same to the bit; with noise it is given again, at no cost."""
    town = place
    town.rule("bank", EXACT)
    served = town.serve("bank", "insurer")
    places = {peer: port for peer, (_, port) in served.items()} | {"shop": "mailbox"}
    collector = town.collect(places, "--listen", f"{town.host('collector')}:0")
    pusher = town.push("shop", town.mailbox_port(collector), "--once")
    assert collector.wait() == 0, town.log("collector")
    assert pusher.wait() == 0, town.log("shop")
    for process, _ in served.values():
        assert process.end() == 0

    folder = town.folder
    for peer in PEERS:
        (job,) = [path for path in (folder / peer / "jobs").iterdir() if path.is_dir()]
        arrived = folder / "job" / f"{peer}.part.parquet"
        assert arrived.read_bytes() == (job / "part.parquet").read_bytes()
        assert (job / "model.json").read_bytes() == (folder / "model.json").read_bytes()
        check_logs(town, peer, job.name)
        by_file(town, run, peer, arrived)
    check_nothing_secret(folder)
    parts = [folder / peer / "part.parquet" for peer in PEERS]  # by file
    learned = run("learn", "-c", folder / "contract.toml", *parts, "-o", folder / "by-file.json")
    assert learned.code == 0, learned.err
    assert undated(folder / "by-file.json") == undated(folder / "model.json")


def undated(path: Path) -> dict[str, object]:
    """A model file but for when it was made, and which of the bank's two parts it was learned from."""
    model = json.loads(path.read_bytes())
    origins = [part if part["peer"] != "bank" else {"peer": "bank"} for part in model["learned_from"]]
    return {**model, "created": None, "learned_from": origins}


def by_file(world: World, run, peer: str, arrived: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """What `radocraft craft` gives, the bank's under another ledger."""
    where, before = world.folder / peer, Ledger(world.folder / peer / "ledger").lines()
    policy = (where / "policy.toml").read_text()
    (where / "file.toml").write_text(policy.replace('"ledger"', '"file.ledger"') if peer == "bank" else policy)
    words = ("-c", world.folder / "contract.toml", "-p", peer, where / "table.parquet", "--exact")
    signed = ("--policy", where / "file.toml", "--sign", where / "identity")
    crafted = run("craft", *words, "-o", where / "part.parquet", *signed)
    assert crafted.code == 0, crafted.err
    assert Ledger(where / "ledger").lines() == before
    if peer == "bank":
        ours, theirs = Part.read(where / "part.parquet"), Part.read(arrived)
        assert ours.table.equals(theirs.table)
        new = {"created": None, "hash": None, "signature": None}
        assert {**ours.metadata, **new} == {**theirs.metadata, **new}
    else:
        assert (where / "part.parquet").read_bytes() == arrived.read_bytes()


def check_logs(world: World, peer: str, job: str) -> None:
    """Ledger and both audit logs speak of the same part, which the peer signed."""
    (line,) = [line.entry for line in Ledger(world.folder / peer / "ledger").lines()]
    part = Part.read(world.folder / "job" / f"{peer}.part.parquet")
    assert isinstance(line, Leaving)
    assert (line.kind, line.file, line.job) == ("release", part.metadata["hash"], job)
    own = Identity.read(world.folder / peer / "identity").private
    check_signature(part.metadata["hash"], part.metadata["signature"], public_key(own), peer)
    kinds = [entry["kind"] for entry in Chain(world.folder / peer / "jobs" / "audit.log").entries()]
    assert kinds == ["start", "request", "ready", "sending", "received", "model", "stop"]
    heard = [entry for entry in Chain(world.folder / "job" / "audit.log").entries() if entry.get("who") == peer]
    assert [entry["sha256"] for entry in heard if entry["kind"] == "received"]
    assert {entry["job"] for entry in heard} == {job}


def check_nothing_secret(folder: Path) -> None:
    """No log holds a token, or a fact of another kind than those of the audit log's description."""
    logs = [*folder.rglob("*.log"), *folder.rglob("ledger")]
    assert len(logs) == 1 + 4 + 3 + 1 + 3  # the authority's, what processes said, audit logs, ledgers
    secrets = [path.read_bytes().strip() for path in folder.rglob("token")]
    assert len(secrets) == 4
    for log in logs:
        assert not [secret for secret in secrets if secret in log.read_bytes()], log
    facts = {"kind", "who", "job", "what", "contract", "fingerprint", "state", "reason", "sha256", "bytes", "from"}
    own = {"number", "time", "previous", "hash", "peers"}
    for log in folder.rglob("audit.log"):
        assert {name for line in Chain(log).entries() for name in line} <= facts | own


def test_the_model_goes_to_those_who_may_have_it(town: World) -> None:
    (town.folder / "collector" / "members.toml").write_text("[bank]\ngets_model = false\n[shop]\ngets_model = false\n")
    served = town.serve("bank", "insurer")
    places = {peer: port for peer, (_, port) in served.items()} | {"shop": "mailbox"}
    collector = town.collect(places, "--listen", "127.0.0.1:0")
    pusher = town.push("shop", town.mailbox_port(collector), "--once")
    assert (collector.wait(), pusher.wait()) == (0, 0), town.log("collector")
    assert "does not have the model" not in town.log("collector")
    have = {path.parts[-4] for path in town.folder.glob("*/jobs/*/model.json")}
    assert have == {"insurer"}
    sent = [line["who"] for line in Chain(town.folder / "job" / "audit.log").entries() if line["kind"] == "sending"]
    assert sent == ["insurer"]


def test_review_stands_between_request_and_part(town: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    town.ask_a_person("bank")
    served = town.serve("bank", "insurer")
    collector = town.collect({peer: port for peer, (_, port) in served.items()})
    town.read(collector, "collector", r"(bank: a person at the peer has yet to decide)")
    (pending,) = (town.folder / "bank" / "jobs").glob("*/part.parquet.pending")
    assert not (town.folder / "job" / "bank.part.parquet").exists()
    assert run("review", pending, "--approve", "--name", "A. Muster", "--reason", "agreed").code == 0
    assert collector.wait() == 0, town.log("collector")
    assert [line.entry.kind for line in Ledger(town.folder / "bank" / "ledger").lines()] == ["proposal", "approval"]


def test_a_refused_review_is_told_with_the_peers_name(town: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    town.ask_a_person("bank")
    served = town.serve("bank", "insurer")
    collector = town.collect({peer: port for peer, (_, port) in served.items()})
    town.read(collector, "collector", r"(bank: a person at the peer has yet to decide)")
    (pending,) = (town.folder / "bank" / "jobs").glob("*/part.parquet.pending")
    assert run("review", pending, "--refuse", "--name", "A. Muster", "--reason", "not now").code == 0
    assert collector.wait() == 4
    said = town.log("collector")
    assert "bank: refuses: a person at the peer decided against it" in said
    assert (town.folder / "job" / "insurer.part.parquet").exists()
    assert not (town.folder / "job" / "bank.part.parquet").exists()


@pytest.mark.parametrize("command", [("peer", "serve"), ("peer", "push"), ("collect",), ("identity", "issue")])
def test_help_has_an_example(run, command) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    assert "Example: radocraft" in run(*command, "--help").out
