"""From a release to a file, killed anywhere: one line in the ledger for each request, and never a part without one."""

import json
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from radocraft.offer import let_go, make_release, pending_path, resume
from radocraft.policy import Policy, Release
from radocraft.privacy.ledger import Ledger
from radocraft.privacy.pending import Pending

import radocraft as rc
from radocraft.errors import FileError, PolicyRefusal
from radocraft.parts import Part

JOB = "a" * 64


@pytest.fixture(scope="module")
def released() -> Release:
    contract, tables = rc.example_peers(rows=400)
    return make_release(tables["bank"], contract, "bank", Policy())


def policy_in(folder: Path) -> Policy:
    return Policy(ledger=str(folder / "ledger"), table="customers")


def under(released: Release, folder: Path) -> Release:
    """The release as made under the policy of a folder."""
    return replace(released, ledger=str(folder / "ledger"))


def test_a_request_is_answered_once(released: Release, tmp_path: Path) -> None:
    policy, output = policy_in(tmp_path), tmp_path / "part.parquet"
    assert resume(output, policy, JOB) == "nothing"
    part = let_go(under(released, tmp_path), policy, "t", output, job=JOB)
    assert resume(output, policy, JOB) == "released"
    assert Part.read(output).metadata == part.metadata
    with pytest.raises(PolicyRefusal, match="no request is answered twice"):
        let_go(under(released, tmp_path), policy, "t", tmp_path / "again", job=JOB)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "part.parquet"]
    output.unlink()
    with pytest.raises(FileError, match="it is not made twice"):
        resume(output, policy, JOB)


@pytest.mark.parametrize("verdict", ["approval", "refusal"])
def test_a_decision_cut_short_is_brought_to_its_end(released: Release, tmp_path: Path, verdict) -> None:  # type: ignore[no-untyped-def]
    """The ledger knows of the decision, and the process died before it wrote the part."""
    policy, output = policy_in(tmp_path), tmp_path / "part.parquet"
    let_go(under(released, tmp_path), policy, "t", output, waits=True, job=JOB)
    assert resume(output, policy, JOB) == "waiting"
    waiting = Pending.read(pending_path(output))
    waiting.decide(verdict, "A. Muster", "agreed")
    assert resume(output, policy, JOB) == {"approval": "released", "refusal": "refused"}[verdict]
    assert output.exists() == (verdict == "approval")


def test_a_device_is_written_only_after_the_ledger_knows(released: Release, tmp_path: Path) -> None:
    let_go(under(released, tmp_path), policy_in(tmp_path), "t", Path("/dev/null"), job=JOB)
    assert [line["kind"] for line in Ledger(tmp_path / "ledger").entries()] == ["release"]
    assert not list(Path("/dev").glob("null.*"))


KILLED = """
    import json, os, signal, sys
    from dataclasses import replace
    from pathlib import Path
    import radocraft as rc
    from radocraft import chain, offer, storage
    from radocraft.policy import Policy
    from radocraft.privacy import ledger, pending, record

    watched = {module.__file__ for module in (chain, offer, storage, ledger, pending, record)}
    contract, tables = rc.example_peers(rows=400)
    released = offer.make_release(tables["bank"], contract, "bank", Policy())

    def attempt(folder, waits, step):
        counted = 0
        def tick(frame, event, argument):
            nonlocal counted
            if frame.f_code.co_filename in watched:
                counted += event == "line"
                if counted == step:
                    os.kill(os.getpid(), signal.SIGKILL)
            return tick
        policy = Policy(ledger=str(folder / "ledger"), table="customers")
        sys.settrace(tick)
        ours = replace(released, ledger=policy.ledger)
        offer.let_go(ours, policy, "t", folder / "part.parquet", waits=waits, job="a" * 64)
        sys.settrace(None)
        return counted

    def killed(folder, waits, step):
        folder.mkdir(parents=True)
        child = os.fork()
        if child == 0:
            attempt(folder, waits, step)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    root, told = Path(sys.argv[1]), []
    for waits in (False, True):
        (root / str(waits)).mkdir()
        total = attempt(root / str(waits), waits, -1)
        for step in sorted({*range(1, total, max(total // 12, 1)), *range(total - 6, total)}):
            folder = root / f"{waits}-{step}"
            told.append({"folder": str(folder), "waits": waits, "killed": killed(folder, waits, step)})
    print(json.dumps(told))
"""


def test_killed_anywhere_it_leaves_once(released: Release, tmp_path: Path) -> None:
    """kill -9 at every so many lines; afterwards it goes on as the network's desk would."""
    words = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)]
    rounds = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert sum(one["killed"] for one in rounds) > 20
    stages = set()
    for one in rounds:
        folder, waits = Path(one["folder"]), one["waits"]
        policy, output = policy_in(folder), folder / "part.parquet"
        stage = resume(output, policy, JOB)
        stages.add(stage)
        if stage == "nothing":
            assert not [path for path in folder.iterdir() if path.name not in {"ledger"} and path.suffix != ".tmp"]
            let_go(under(released, folder), policy, "t", output, waits=waits, job=JOB)
        assert resume(output, policy, JOB) == ("waiting" if waits else "released")
        (line,) = Ledger(folder / "ledger").entries()
        kept = Pending.read(pending_path(output)).part if waits else Part.read(output)
        assert kept.metadata["hash"] == line["part"]
    assert stages == {"nothing", "waiting", "released"}
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("waits", [False, True])
def test_the_ledger_hears_of_no_release_that_cannot_be_written(released: Release, tmp_path: Path, waits: bool) -> None:
    (tmp_path / "folder").mkdir()
    for place, why in ((tmp_path / "folder", "it is a folder"), (tmp_path / "nowhere" / "part", "there is no folder")):
        with pytest.raises(FileError, match=why):
            let_go(under(released, tmp_path), policy_in(tmp_path), "t", place, waits=waits)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
