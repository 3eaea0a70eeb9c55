"""What breaks: processes, wires, disks. The job completes after a restart, or says why not; nothing leaves twice."""

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow.flight as fl
import pytest
from tests.integration.net.big import big_contract, ready
from tests.integration.net.live import Live, live
from tests.integration.net.proxy import Wire
from tests.integration.net.world import World
from tests.ports import free_port

from radocraft.contract._contract import Contract
from radocraft.errors import NetworkError
from radocraft.ledger._chain import Chain
from radocraft.ledger._ledger import Ledger
from radocraft.net import _channel as channel_module
from radocraft.net._channel import Channel
from radocraft.net._collection import Wanted
from radocraft.net._collector import Collector
from radocraft.net._identity import Identity
from radocraft.net._members import Member
from radocraft.net._messages import Fetch, Hello, Nothing, Request
from radocraft.net._peer import PeerNode
from radocraft.net._push import Pusher
from radocraft.parts._part import Part


def test_killed_at_ten_random_points(town: World) -> None:
    """kill -9 of a peer that is asked, one that dials out, or the collector, until ten struck a job under way.

    In two rounds of three the tables are new.
    """
    chance, took, struck, versions = random.Random(8), 1.5, 0, 0
    for peer in ("bank", "shop"):
        town.rule(peer, "lifetime_releases = 100")
    served = town.serve("bank")
    for round in range(40):
        if round % 3 < 2:
            versions += 1
            town.fill(600 + versions)
        before, job = town.size("collector"), f"job-{round}"
        places = {peer: port for peer, (_, port) in served.items()} | {"shop": "mailbox"}
        started = time.monotonic()
        collector = town.collect(places, "--listen", f"127.0.0.1:{free_port()}", "--force", job=job)
        port = town.mailbox_port(collector, before)
        pusher = town.push("shop", port, "--once")
        victim = chance.choice(["bank", "shop", "collector"])
        time.sleep(chance.uniform(0, took))
        struck += collector.poll() is None
        if victim == "bank":
            served["bank"][0].end(9)
            served |= town.serve("bank", port=served["bank"][1])
        elif victim == "shop":
            pusher.end(9)
            pusher = town.push("shop", port, "--once")
        else:
            collector.end(9)
            collector = town.collect(places, "--listen", f"127.0.0.1:{port}", "--force", job=job)
        assert collector.wait() == 0, town.log("collector", before)
        took = min(took, time.monotonic() - started)
        pusher.end()
        for peer in ("bank", "shop"):
            check_agreement(town, job, peer)
            check_spends(town.folder / peer / "ledger", town.folder / peer / "jobs", versions)
        if struck == 10:
            break
    assert struck == 10
    for peer, (process, _) in served.items():
        assert process.end() == 0, town.log(peer)


def check_agreement(town: World, job: str, peer: str) -> None:
    """A peer's part is in its ledger, and in its audit log before it left; it has the same bytes at the collector."""
    part = town.folder / job / f"{peer}.part.parquet"
    history = Ledger(town.folder / peer / "ledger").history()
    audit = Chain(town.folder / peer / "jobs" / "audit.log").entries()
    name = Request.model_validate(json.loads((town.folder / job / "job.json").read_bytes())[peer]).job
    (line,) = [line for line in history.leaving() if line.file == Part.read(part).metadata["hash"]]
    assert line.kind == "release"
    assert part.read_bytes() == (town.folder / peer / "jobs" / name / "part.parquet").read_bytes()
    kinds = [one["kind"] for one in audit if one.get("job") == name]
    assert kinds.count("request") == 1
    assert "sending" in kinds
    asked = {one["job"] for one in audit if one["kind"] == "request"}
    assert {line.job for line in history.leaving()} <= asked
    heard = [one for one in Chain(town.folder / job / "audit.log").entries() if one.get("who") == peer]
    got = {one["sha256"] for one in heard if one["kind"] == "received"}
    assert got == {one["sha256"] for one in audit if one.get("job") == name and one["kind"] == "ready"}


def check_spends(ledger: Path, jobs: Path, versions: int) -> None:
    """Noise was paid for once for each state that the table has had, and each part there is has its line."""
    lines = [*Ledger(ledger).history().leaving()]
    assert len(lines) == len({line.file for line in lines}) == versions
    assert all(line.rho is not None and line.rho > 0 for line in lines)
    left = {Part.read(path).metadata["hash"] for path in jobs.glob("*/part.parquet")}
    assert left <= {line.file for line in lines}


def test_a_wire_cut_anywhere_costs_nothing(world: World) -> None:
    """Each connection is cut a little later than the one before, from the handshake to the receipt."""
    cuts, said = [*range(500, 30_000, 2_500)], list[str]()
    with live(world) as bank, Wire(bank.port, cuts) as wire:
        part = gather(world, world.contract, wire.port, world.folder / "job", said)
        assert wire.left < len(cuts) - 3
        (job,) = [path for path in (world.folder / "bank" / "jobs").iterdir() if path.is_dir()]
        assert part.read_bytes() == (job / "part.parquet").read_bytes()
        kinds = [line["kind"] for line in bank.audit()]
    check_spends(world.folder / "bank" / "ledger", world.folder / "bank" / "jobs", 1)
    assert (kinds.count("request"), kinds.count("ready")) == (1, 1)
    assert [text for text in said if "Trying again" in text]


def test_a_full_disk_at_a_peer(world: World) -> None:
    """It has room for a little more of its work each time it is asked; the part leaves once all of it is there."""
    jobs, policy = world.folder / "bank" / "jobs", world.folder / "bank" / "policy.toml"
    policy.write_text(policy.read_text().replace('"ledger"', '"jobs/ledger"'))
    jobs.mkdir()
    failures = 0
    with small_disk(jobs), live(world) as bank, bank.call() as channel:
        request = bank.request()
        for pages in range(200):
            leave_room(jobs, 4096 * pages)
            with suppress(NetworkError):
                answer = bank.ask(channel, request)
                if answer.state == "ready":
                    break
                assert (answer.state, "(FileError)" in str(answer.reason)) == ("failed", True)
            failures += 1
            check_spends(jobs / "ledger", jobs, min(len(Ledger(jobs / "ledger").lines()), 1))
        assert failures > 3
        assert answer.state == "ready"
        check_spends(jobs / "ledger", jobs, 1)
        ((line,), (part,)) = Ledger(jobs / "ledger").history().leaving(), jobs.glob("*/part.parquet")
        assert Part.read(part).metadata["hash"] == line.file


def leave_room(disk: Path, wanted: int) -> None:
    """Fill a disk but for so many bytes."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
    if free > wanted:
        filler.write_bytes(bytes(free - wanted))


@pytest.fixture(scope="module")
def many() -> Contract:
    return big_contract(64, 100)


@contextmanager
def big_bank(world: World, many: Contract) -> Iterator[Live]:
    """A bank whose part has megabytes."""
    identity = Identity.read(world.folder / "bank" / "identity")
    with PeerNode(identity, "bank", ready(many), world.folder / "bank" / "jobs") as node:
        yield Live(world, "bank", node, node.serve("127.0.0.1:0"))


def gather(world: World, many: Contract, port: int, job: Path, said: list[str]) -> Path:
    own = Identity.load(world.folder / "collector")
    given = {"wait": timedelta(minutes=5), "report": lambda _, text: said.append(text)}
    with Collector(own, Wanted.parts(many), job, {"bank": f"127.0.0.1:{port}"}, **given) as collector:
        return collector.gather()["bank"]


def test_a_wire_cut_mid_stream(world: World, many: Contract) -> None:
    said: list[str] = []
    with big_bank(world, many) as bank, Wire(bank.port, [2_000_000, 3_000_000]) as wire:
        part = gather(world, many, wire.port, world.folder / "job", said)
        assert wire.left == 0
        (job,) = [path for path in (world.folder / "bank" / "jobs").iterdir() if path.is_dir()]
        assert part.read_bytes() == (job / "part.parquet").read_bytes()
        starts = [line["from"] for line in bank.audit() if line["kind"] == "sending"]
    assert (len(starts), starts[0]) == (3, 0)
    assert 0 < starts[1] < starts[2]  # each time it went on from where it was
    assert [text for text in said if "Trying again" in text]


@pytest.mark.parametrize("cuts", [[2_000_000, 3_000_000], []])
def test_a_peer_that_dials_out_goes_on_from_the_last_byte(world: World, many: Contract, cuts: list[int]) -> None:
    """Its wire is cut twice; and, without cuts, all comes at once."""
    said: list[str] = []
    with big_bank(world, many) as bank, mailbox(world, many) as collector:
        with Wire(int(collector.port or 0), cuts, up=True) as wire, pushing(world, bank, wire.port, said):
            part = collector.gather()["bank"]
            assert wire.left == 0
        (job,) = [path for path in (world.folder / "bank" / "jobs").iterdir() if path.is_dir()]
        assert part.read_bytes() == (job / "part.parquet").read_bytes()
        starts = [line["from"] for line in bank.audit() if line["kind"] == "sending"]
    assert (len(starts), starts) == (1 + len(cuts), sorted(starts))
    assert bool([text for text in said if "Trying again" in text]) == bool(cuts)


@contextmanager
def mailbox(world: World, many: Contract, job: str = "job") -> Iterator[Collector]:
    """A collector to which the bank dials in."""
    own, given = Identity.load(world.folder / "collector"), {"wait": timedelta(minutes=5), "listen": "127.0.0.1:0"}
    with Collector(own, Wanted.parts(many), world.folder / job, {"bank": None}, **given) as collector:
        yield collector


@contextmanager
def pushing(world: World, bank: Live, port: int, said: list[str]) -> Iterator[None]:
    """The bank dials out, in a thread."""
    identity, stop = Identity.read(world.folder / "bank" / "identity"), Event()
    pusher = Pusher(identity, Member(name="collector"), f"127.0.0.1:{port}", bank.node.jobs, said.append)
    thread = Thread(target=pusher.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_full_disk_at_the_mailbox(world: World, many: Contract) -> None:
    """The collector ends with the reason, and the peer goes on trying until there is room."""
    job, said = world.folder / "job", list[str]()
    job.mkdir()
    with small_disk(job), big_bank(world, many) as bank:
        filler = job / "filler"
        filler.write_bytes(bytes(17_000_000))
        with (
            mailbox(world, many) as collector,
            pushing(world, bank, int(collector.port or 0), said),
            pytest.raises(NetworkError, match=r"bank: Cannot write .*No space left on device"),
        ):
            collector.gather()
        assert [text for text in said if "It failed (FileError)" in text]
        filler.unlink()
        with mailbox(world, many) as collector, pushing(world, bank, int(collector.port or 0), said):
            assert Part.read(collector.gather()["bank"]).peer == "bank"
        starts = [line["from"] for line in bank.audit() if line["kind"] == "sending"]
    assert starts[0] == 0 < starts[-1]


def test_a_wire_that_goes_dead_without_a_word(world: World, many: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "STALLED_SECONDS", 0.5)
    said: list[str] = []
    with big_bank(world, many) as bank, Wire(bank.port, [2_000_000], dead=True) as wire:
        assert Part.read(gather(world, many, wire.port, world.folder / "job", said)).peer == "bank"
    assert [text for text in said if "Trying again" in text]


def test_a_wire_that_goes_dead_on_the_way_up(world: World, many: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery ends when the call's time is over, which follows its size."""
    monkeypatch.setattr(channel_module, "CALL_SECONDS", 3.0)
    monkeypatch.setattr(channel_module, "_SLOWEST", 100_000_000)
    said: list[str] = []
    with (
        big_bank(world, many) as bank,
        mailbox(world, many) as collector,
        Wire(int(collector.port or 0), [2_000_000], dead=True, up=True) as wire,
        pushing(world, bank, wire.port, said),
    ):
        assert Part.read(collector.gather()["bank"]).peer == "bank"
        assert wire.left == 0
    assert [text for text in said if "Trying again" in text]


def test_a_write_that_outlasts_its_call_is_left_behind(
    world: World, many: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC waits for bytes that the system has taken already, however late it is."""
    monkeypatch.setattr(channel_module, "CALL_SECONDS", 3.0)
    monkeypatch.setattr(channel_module, "_SLOWEST", 100_000_000)
    monkeypatch.setattr(channel_module, "_GRACE", 0.1)
    said, stuck, first, write = list[str](), Event(), Event(), Channel._write

    def write_late(self: Channel, *given: Any) -> None:
        if first.is_set():
            write(self, *given)
        else:
            first.set()
            stuck.wait()

    monkeypatch.setattr(Channel, "_write", write_late)
    with (
        big_bank(world, many) as bank,
        mailbox(world, many) as collector,
        pushing(world, bank, int(collector.port or 0), said),
    ):
        assert Part.read(collector.gather()["bank"]).peer == "bank"
    stuck.set()
    assert [text for text in said if "no bytes are arriving. Trying again" in text]


def test_a_slow_reader_holds_back_only_itself(world: World) -> None:
    more = big_contract(128, 150)
    request = Request.now("bank", more.name, more.fingerprint, timedelta(hours=1), id="b" * 32)
    with big_bank(world, more) as bank, bank.call() as slow, bank.call() as other, ExitStack() as stack:
        answer = bank.ask(slow, request)
        ticket = fl.Ticket(Fetch(what="part", job=request.job).encode())
        reader = slow.flight.do_get(ticket, slow._options(60))
        stack.callback(reader.cancel)
        first = reader.read_chunk()
        assert other.act("hello", Nothing(), Hello).name == "bank"
        sent = float(bank.node.metrics.sent._value.get())
        assert sent < float(answer.size or 0) / 2, "the stream does not wait for its reader"
        second = other.flight.do_get(ticket, other._options(60))
        stack.callback(second.cancel)
        second.read_chunk()
        third = other.flight.do_get(ticket, other._options(60))
        with pytest.raises(fl.FlightUnavailableError, match="already in transfer"):
            third.read_chunk()
        assert first.data.num_rows == 1


def test_a_full_disk_at_the_collector(world: World, many: Contract) -> None:
    job = world.folder / "job"
    job.mkdir()
    with small_disk(job), big_bank(world, many) as bank:
        filler = job / "filler"
        filler.write_bytes(bytes(17_000_000))
        with pytest.raises(NetworkError, match=r"bank: Cannot write .*No space left on device") as full:
            gather(world, many, bank.port, job, [])
        assert "make room" in str(full.value)
        filler.unlink()
        assert Part.read(gather(world, many, bank.port, job, [])).peer == "bank"
        starts = [line["from"] for line in bank.audit() if line["kind"] == "sending"]
    assert len(starts) == 2
    assert starts[1] > 0


@contextmanager
def small_disk(where: Path) -> Iterator[None]:
    """A disk of twenty megabytes."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting needs root")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(where)], check=False)
    if made.returncode:
        pytest.skip("this machine does not mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def test_one_peer_that_fails_is_named_and_the_others_parts_are_kept(town: World) -> None:
    """The bank's table lacks a column: its operator mends it, and the same job goes on."""
    table = town.folder / "bank" / "table.parquet"
    table.rename(town.folder / "kept")
    served = town.serve("bank", "insurer")
    places = {peer: port for peer, (_, port) in served.items()}
    first = town.collect(places)
    assert first.wait() == 1
    assert "bank: failed: it could not make the part (FileError)" in town.log("collector")
    assert (town.folder / "job" / "insurer.part.parquet").exists()
    (town.folder / "kept").rename(table)
    assert town.collect(places).wait() == 0, town.log("collector")


def test_asking_a_peer_that_is_not_there_yet(town: World) -> None:
    port = free_port()
    served = town.serve("insurer")
    collector = town.collect({"bank": port, "insurer": served["insurer"][1]})
    town.read(collector, "collector", r"(bank: Cannot connect to 'bank' .* Trying again)")
    town.serve("bank", port=port)
    assert collector.wait() == 0, town.log("collector")


def test_a_job_out_of_time_says_so(town: World) -> None:
    collector = town.collect({"bank": free_port(), "insurer": free_port()}, "--wait", "0.0003")
    assert collector.wait() == 1
    assert "No part of bank, insurer: bank: Cannot connect" in town.log("collector")
    assert town.collect({"bank": 1, "insurer": 1}).wait() == 1
    assert "Take a new folder for a new request" in town.log("collector")
