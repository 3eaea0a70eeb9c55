"""kill -9 of a peer at one line after the other of its work on a request: it leaves once, and is paid for once."""

import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path

import pytest
from tests.integration.net.test_faults import check_spends
from tests.integration.net.world import World

from radocraft.gate._policy import Policy
from radocraft.ledger._chain import Chain
from radocraft.ledger._ledger import Ledger
from radocraft.net._audit import Audit
from radocraft.net._chunks import sha256_of
from radocraft.net._identity import Identity
from radocraft.net._jobs import Jobs
from radocraft.net._members import Member
from radocraft.net._messages import Answer, Fetch, Receipt, Request
from radocraft.net._metrics import Metrics
from radocraft.peer._decision import conclude
from radocraft.peer._pending import Pending
from radocraft.peer._responder import Responder
from radocraft.rows.engines._opening import open_source

ROOT = Path(__file__).parents[3]
ASKS = Member(name="collector")
KILLED = """
    import json, os, shutil, signal, sys, threading
    from pathlib import Path
    from radocraft.ledger import Ledger
    from radocraft.net._messages import Request
    from tests.integration.net.test_killed import work
    from tests.integration.net.world import World

    rooms = ("radocraft.files", "radocraft.ledger", "radocraft.net._audit", "radocraft.net._jobs", "radocraft.peer")
    watched = {module.__file__ for name, module in sys.modules.items() if name.startswith(rooms)}
    root, request, kills = Path(sys.argv[1]), Request.decode(sys.argv[2].encode()), int(sys.argv[3])

    def attempt(folder, step):
        lines, entered = [], []
        def tick(frame, event, argument):
            if frame.f_code.co_filename not in watched:
                return None
            if event == "line":
                lines.append((frame.f_code.co_filename, frame.f_lineno))
                if len(lines) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
            if event == "return" and frame.f_code is Ledger.append.__code__:
                entered.append(len(lines))
            return tick
        threading.settrace(tick)
        sys.settrace(tick)
        work(World(folder), request)
        sys.settrace(None)
        firsts = {line: number for number, line in reversed([*enumerate(lines, 1)])}
        steps = {*sorted(firsts.values())[:: len(firsts) // kills], *range(entered[0], entered[0] + 8)}
        (folder / "steps").write_text(json.dumps(sorted(steps)))

    def child(name, step):
        shutil.copytree(root / "new", root / name)
        pid = os.fork()
        if pid == 0:
            attempt(root / name, step)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert child("whole", 0) == 0
    for number, step in enumerate(json.loads((root / "whole" / "steps").read_text())):
        assert child(f"killed-{number}", step) == -signal.SIGKILL
"""


def work(world: World, request: Request) -> Answer | None:
    """Answer a request and hand out what is ready, as the service would; none if that is done already."""
    where = world.folder / "bank"
    jobs, own, policy = where / "jobs", Identity.read(where / "identity"), Policy.load(where / "policy.toml")
    agreed, table = (world.contract,), where / "table.parquet"
    responder = Responder("bank", policy, agreed, lambda: open_source(table), "t", own.private)
    jobs.mkdir(exist_ok=True)
    handling = Jobs(jobs, "bank", responder, Audit(jobs / "audit.log"), Metrics())
    try:
        if (jobs / request.job / "done.json").exists():
            return None
        answer = handling.answer(ASKS, request)
        if answer.state == "working":
            handling._running[request.job].result()
            answer = handling.answer(ASKS, request)
        if answer.state == "ready":
            handling.hand_out(ASKS, Fetch(what="part", job=request.job))
            handling.received(ASKS, Receipt(job=request.job, sha256=str(answer.sha256)))
        return answer
    finally:
        handling.close()


@pytest.mark.parametrize(("review", "kills"), [(False, 20), (True, 10)])
def test_killed_at_any_line_a_part_leaves_once(tmp_path: Path, review: bool, kills: int) -> None:
    (tmp_path / "new").mkdir()
    world = World.make(tmp_path / "new")
    if review:
        world.ask_a_person("bank")
    contract = world.contract
    request = Request.now("bank", contract.name, contract.fingerprint, timedelta(hours=1), id="a" * 32)
    words = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), request.encode().decode(), str(kills)]
    subprocess.run(words, check=True, cwd=ROOT)
    folders, begun = [*tmp_path.glob("killed-*")], 0
    assert len(folders) > kills
    for folder in folders:
        bank, jobs = World(folder), folder / "bank" / "jobs"
        before = [*Ledger(folder / "bank" / "ledger").history().leaving()]
        begun += bool(before)
        check_spends(folder / "bank" / "ledger", jobs, min(len(before), 1))
        assert before or not [line for line in Chain(jobs / "audit.log").entries() if line["kind"] == "sending"]
        if folder.name[-1] in "13579":  # the table changes before the peer is up again
            bank.fill(601)
        answer = work(bank, request)
        if review:
            assert answer is not None
            assert answer.state == "waiting"
            pending = jobs / request.job / "part.parquet.pending"
            assert [Pending.read(pending).line] == [*Ledger(folder / "bank" / "ledger").history().leaving()]
            conclude(pending, "approval", "A. Muster", "agreed")
            answer = work(bank, request)
        assert answer is None or answer.state == "ready"
        check_left(folder / "bank", request)
    assert 0 < begun < len(folders)


def check_left(bank: Path, request: Request) -> None:
    """One line in the ledger, one part, and it is what was sent."""
    check_spends(bank / "ledger", bank / "jobs", 1)
    (part,) = (bank / "jobs").glob("*/part.parquet")
    audit = Chain(bank / "jobs" / "audit.log").entries()
    assert [line["kind"] for line in audit].count("request") == 1
    assert {line["sha256"] for line in audit if line["kind"] in {"ready", "sending", "received"}} == {sha256_of(part)}
