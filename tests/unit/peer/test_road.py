"""From a table to a file, killed anywhere: what leaves has a line in the ledger, and what has one is paid for once."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.unit.ledger.entries import leaving

import radocraft as rc
from radocraft.errors import AwaitsReview, FileError, PolicyRefusal, Tampered
from radocraft.gate._account import epsilon_of
from radocraft.ledger._ledger import Ledger
from radocraft.parts._part import Part
from radocraft.peer import _sharing as sharing
from radocraft.peer._decision import conclude
from radocraft.peer._pending import Pending, pending_path
from radocraft.peer._recovery import resume
from radocraft.peer._road import AGAIN

JOB = "a" * 64
CONTRACT, TABLES = rc.example_peers(rows=1500)
TABLE = TABLES["bank"]


def rules(folder: Path, **rules: object) -> rc.Policy:
    return rc.Policy(**{"ledger": str(folder / "ledger"), "table": "customers", **rules})  # type: ignore[arg-type]


def share(folder: Path, output: str | Path = "part.parquet", *, job: str | None = None, **more: object) -> rc.Part:
    return rc.share(TABLE, CONTRACT, "bank", policy=rules(folder, **more), output=folder / output, job=job)


def seen(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- the same release, asked again ----------------------------------------------------------------


def test_the_same_release_gives_the_same_file_and_spends_nothing(tmp_path: Path) -> None:
    first = share(tmp_path)
    file, ledger = (tmp_path / "part.parquet").read_bytes(), (tmp_path / "ledger").read_bytes()
    said: list[str] = []
    for output in ("part.parquet", "copy.parquet"):
        again = rc.share(TABLE, CONTRACT, "bank", policy=rules(tmp_path), output=tmp_path / output, say=said.append)
        assert again.metadata == first.metadata
        assert (tmp_path / output).read_bytes() == file
    assert said == [AGAIN, AGAIN]
    assert (tmp_path / "ledger").read_bytes() == ledger
    assert seen(tmp_path) == ["copy.parquet", "ledger", "ledger.parts", "part.parquet"]


def test_rows_in_another_order_are_the_same_table(tmp_path: Path) -> None:
    share(tmp_path)
    turned = TABLE.take(list(range(TABLE.num_rows))[::-1])
    rc.share(turned, CONTRACT, "bank", policy=rules(tmp_path), output=tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "part.parquet").read_bytes()
    assert len(Ledger(tmp_path / "ledger").lines()) == 1


@pytest.mark.parametrize("change", ["row", "noise", "min_rows", "epsilon"])
def test_another_release_is_drawn_anew_and_paid_for(tmp_path: Path, change: str) -> None:
    share(tmp_path)
    table = TABLE.slice(1) if change == "row" else TABLE
    more = {"noise": {"noise": 0.6}, "min_rows": {"min_rows": 11}, "epsilon": {"epsilon": 5.0}}.get(change, {})
    rc.share(table, CONTRACT, "bank", policy=rules(tmp_path, **more), output=tmp_path / "other.parquet")
    one, other = (Part.read(tmp_path / name) for name in ("part.parquet", "other.parquet"))
    assert one.metadata["hash"] != other.metadata["hash"]
    ledger = Ledger(tmp_path / "ledger")
    spends = [entry.spend.rho for entry in ledger.history().leaving("customers")]
    assert min(spends) > 0.01
    assert ledger.spent("customers").rho == pytest.approx(sum(spends))
    assert other.metadata["ledger"] == ledger.lines()[0].hash


def test_a_lost_copy_is_told_and_paid_for(tmp_path: Path) -> None:
    first, said = share(tmp_path), list[str]()
    (copy,) = (tmp_path / "ledger.parts").iterdir()
    copy.unlink()
    again = rc.share(TABLE, CONTRACT, "bank", policy=rules(tmp_path), output=tmp_path / "part.parquet", say=said.append)
    assert again.metadata["hash"] != first.metadata["hash"]
    assert "paid for, once more" in said[0]
    assert Ledger(tmp_path / "ledger").history().count("customers") == 2


def test_a_changed_copy_is_not_given(tmp_path: Path) -> None:
    share(tmp_path)
    (copy,) = (tmp_path / "ledger.parts").iterdir()
    other = rc.share(TABLE, CONTRACT, "bank", output=tmp_path / "elsewhere.parquet")
    other.write(copy)
    with pytest.raises(Tampered, match="is not the file that the ledger speaks of"):
        share(tmp_path, "again.parquet")
    assert not (tmp_path / "again.parquet").exists()


def test_a_ledger_is_kept_beside_the_part_unless_the_policy_names_one(tmp_path: Path) -> None:
    rc.share(TABLE, CONTRACT, "bank", output=tmp_path / "part.parquet")
    assert seen(tmp_path) == ["bank.ledger", "bank.ledger.parts", "part.parquet"]
    assert [entry.table for entry in Ledger(tmp_path / "bank.ledger").history().leaving()] == ["bank"]
    assert (tmp_path / "bank.ledger.parts").stat().st_mode & 0o077 == 0


def test_a_ledger_that_began_after_a_part_had_left_says_so(tmp_path: Path) -> None:
    share(tmp_path)
    (tmp_path / "ledger").unlink()
    said: list[str] = []
    rc.share(TABLE, CONTRACT, "bank", policy=rules(tmp_path), output=tmp_path / "part.parquet", say=said.append)
    assert "what left before this ledger began is not counted" in said[0]


# --- one road out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_without_an_output_the_part_stays(tmp_path: Path, exact: bool) -> None:
    """Where a policy names a ledger, no part is written that the ledger does not know, whatever the mode."""
    more = {"mode": "exact", "gives_away_rows": True} if exact else {}
    part = rc.share(TABLE, CONTRACT, "bank", policy=rules(tmp_path, **more))
    with pytest.raises(PolicyRefusal, match="is in no ledger"):
        part.write(tmp_path / "part.parquet")
    assert seen(tmp_path) == []


@pytest.mark.parametrize("exact", [False, True])
def test_review_is_obeyed_in_the_library(tmp_path: Path, exact: bool) -> None:
    more = {"mode": "exact", "gives_away_rows": True} if exact else {}
    with pytest.raises(AwaitsReview, match="radocraft review") as raised:
        share(tmp_path, review=True, **more)
    assert raised.value.pending == pending_path(tmp_path / "part.parquet")
    with pytest.raises(PolicyRefusal, match="is in no ledger"):
        rc.share(TABLE, CONTRACT, "bank", policy=rules(tmp_path, review=True, **more)).write(tmp_path / "part.parquet")
    waiting = Pending.read(raised.value.pending)
    with pytest.raises(PolicyRefusal, match="is in no ledger"):
        waiting.content.write(tmp_path / "part.parquet")
    with pytest.raises(PolicyRefusal, match="Nobody has approved"):
        waiting.let_out(tmp_path / "part.parquet")
    assert not (tmp_path / "part.parquet").exists()
    conclude(raised.value.pending, "approval", "A. Muster", "agreed")
    assert Part.read(tmp_path / "part.parquet").metadata == waiting.content.metadata
    assert [line.entry.kind for line in Ledger(tmp_path / "ledger").lines()] == ["proposal", "approval"]


def test_what_was_refused_is_not_given_when_asked_again(tmp_path: Path) -> None:
    with pytest.raises(AwaitsReview) as raised:
        share(tmp_path, review=True)
    refused = Pending.read(raised.value.pending)
    conclude(raised.value.pending, "refusal", "A. Muster", "no")
    with pytest.raises(PolicyRefusal, match="Nobody has approved"):
        refused.let_out(tmp_path / "part.parquet")
    with pytest.raises(AwaitsReview) as raised:
        share(tmp_path, review=True)
    waiting = Pending.read(raised.value.pending)
    assert waiting.encoded == refused.encoded
    assert waiting.line.rho == 0
    assert not (tmp_path / "part.parquet").exists()


def test_what_was_approved_is_given_again_without_another_review(tmp_path: Path) -> None:
    with pytest.raises(AwaitsReview) as raised:
        share(tmp_path, review=True)
    conclude(raised.value.pending, "approval", "A. Muster", "agreed")
    share(tmp_path, "again.parquet", review=True)
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "part.parquet").read_bytes()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"contracts": ["0" * 64]}, "does not allow the contract"),
        ({"features": ["income"]}, "does not allow the feature"),
    ],
)
def test_what_the_policy_does_not_allow_any_more_is_not_given_again(tmp_path: Path, more: dict, said: str) -> None:
    share(tmp_path)
    with pytest.raises(PolicyRefusal, match=said):
        share(tmp_path, "again.parquet", **more)
    assert not (tmp_path / "again.parquet").exists()


def test_the_budget_of_a_life_is_kept_and_nothing_is_left_of_what_exceeds_it(tmp_path: Path) -> None:
    share(tmp_path, lifetime_releases=2)
    share(tmp_path, "second.parquet", lifetime_releases=2, min_rows=11)
    kept = {*(tmp_path / "ledger.parts").iterdir()}
    with pytest.raises(PolicyRefusal, match="would exceed the lifetime budget of 'customers'"):
        share(tmp_path, "third.parquet", lifetime_releases=2, min_rows=12)
    spent = epsilon_of(Ledger(tmp_path / "ledger").spent("customers").rho, 1e-6)
    with pytest.raises(PolicyRefusal, match="with this release it would be epsilon"):
        share(tmp_path, "third.parquet", lifetime_epsilon=spent + 0.1, min_rows=12)
    assert {*(tmp_path / "ledger.parts").iterdir()} == kept
    assert seen(tmp_path) == ["ledger", "ledger.parts", "part.parquet", "second.parquet"]
    share(tmp_path, "again.parquet", lifetime_releases=2)


# --- requests -------------------------------------------------------------------------------------


def test_a_request_is_answered_once(tmp_path: Path) -> None:
    output, ledger = tmp_path / "part.parquet", tmp_path / "ledger"
    assert resume(output, ledger, JOB) == "nothing"
    part = share(tmp_path, job=JOB)
    assert resume(output, ledger, JOB) == "released"
    assert Part.read(output).metadata == part.metadata
    with pytest.raises(PolicyRefusal, match="no request is answered twice"):
        share(tmp_path, "again.parquet", job=JOB, min_rows=11)
    assert seen(tmp_path) == ["ledger", "ledger.parts", "part.parquet"]
    output.unlink()
    assert resume(output, ledger, JOB) == "released"
    assert Part.read(output).metadata == part.metadata
    output.write_bytes(b"something else")
    with pytest.raises(FileError, match="it is not made twice"):
        resume(output, ledger, JOB)


@pytest.mark.parametrize("verdict", ["approval", "refusal"])
def test_a_decision_cut_short_is_brought_to_its_end(tmp_path: Path, verdict) -> None:  # type: ignore[no-untyped-def]
    """The ledger knows of the decision, and the process died before it wrote the part."""
    output, ledger = tmp_path / "part.parquet", tmp_path / "ledger"
    with pytest.raises(AwaitsReview):
        share(tmp_path, job=JOB, review=True)
    assert resume(output, ledger, JOB) == "waiting"
    Pending.read(pending_path(output)).decide(verdict, "A. Muster", "agreed")
    assert resume(output, ledger, JOB) == {"approval": "released", "refusal": "refused"}[verdict]
    assert output.exists() == (verdict == "approval")


# --- killed, crowded, full ------------------------------------------------------------------------

KILLED = """
    import json, os, signal, sys
    from contextlib import suppress
    from pathlib import Path
    from tests.unit.peer.test_road import JOB, share
    from radocraft import files, ledger, parts, peer
    from radocraft.errors import AwaitsReview

    rooms = [Path(room.__file__).parent for room in (ledger, peer)]
    watched = {files.__file__, str(Path(parts.__file__).with_name("_part.py"))}
    watched |= {str(path) for room in rooms for path in room.glob("*.py")}

    def attempt(folder, step, review):
        '''Share, killed before such a line is executed; how many there were.'''
        counted = 0
        def line(frame, event, argument):
            nonlocal counted
            counted += event == "line"
            if counted == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return line
        sys.settrace(lambda frame, event, argument: line if frame.f_code.co_filename in watched else None)
        with suppress(AwaitsReview):
            share(folder, job=JOB, review=review)
        sys.settrace(None)
        (folder / "lines").write_text(str(counted))

    def apart(folder, step, review):
        folder.mkdir(parents=True)
        child = os.fork()
        if child == 0:
            attempt(folder, step, review)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    root, told = Path(sys.argv[1]), []
    for review in (False, True):
        assert not apart(root / str(review), -1, review)
        total = int((root / str(review) / "lines").read_text())
        for step in sorted({*range(1, total, max(total // 10, 1)), *range(total - 40, total, 4)}):
            folder = root / f"{review}-{step}"
            told.append({"folder": str(folder), "review": review, "killed": apart(folder, step, review)})
    print(json.dumps(told))
"""


def test_killed_anywhere_nothing_left_without_a_line_and_no_spend_is_lost(tmp_path: Path) -> None:
    """kill -9 at every so many lines of the road; afterwards the peer goes on, as the network's does or by hand."""
    words = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rounds, stages = json.loads(done.stdout), list[str]()
    for one in rounds:
        folder, review = Path(one["folder"]), one["review"]
        output, book = folder / "part.parquet", Ledger(folder / "ledger")
        left = [path for path in (output, pending_path(output)) if path.exists()]
        lines = book.lines()
        assert len(left) <= len(lines) <= 1, folder
        for entry in book.history().leaving():
            assert book.copy_of("part", entry.file).exists(), folder
        stages.append(resume(output, folder / "ledger", JOB))
        assert (stages[-1] == "nothing") == (not lines), folder
        try:
            share(folder, job=JOB, review=review)
        except AwaitsReview:
            assert review
        assert resume(output, folder / "ledger", JOB) == ("waiting" if review else "released")
        (line,) = book.lines()
        assert line.entry.rho > 0
        kept = Pending.read(pending_path(output)).encoded if review else output.read_bytes()
        assert kept == book.copy_of("part", line.entry.file).read_bytes()
        assert output.exists() != review
    assert sum(one["killed"] for one in rounds) > 30
    assert {*stages} == {"nothing", "waiting", "released"}


RACER = """
    import sys, time
    from pathlib import Path
    from radocraft.errors import PolicyRefusal
    from tests.unit.peer.test_road import share
    folder, me, same = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "same"
    print("ready", flush=True)
    for turn in map(int, sys.stdin):
        number = 10 + turn if same else 10 + 2 * turn + me
        try:
            share(folder, f"{turn}-{me}.parquet", min_rows=number, lifetime_releases=3)
            print("left", flush=True)
        except PolicyRefusal:
            print("refused", flush=True)
"""


def race(folder: Path, which: str, turns: int) -> list[tuple[str, str]]:
    """Two processes share at the same time, so many times; what became of each."""
    words = [sys.executable, "-c", textwrap.dedent(RACER), str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([*words, str(at), which], **pipes) for at in (0, 1)]  # type: ignore[call-overload]
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
    told = []
    for turn in range(turns):
        for process in both:
            process.stdin.write(f"{turn}\n")
            process.stdin.flush()
        told.append(tuple(process.stdout.readline().strip() for process in both))
    for process in both:
        process.communicate()
    return told


def test_two_processes_at_once_give_the_same_release_once(tmp_path: Path) -> None:
    assert race(tmp_path, "same", 3) == [("left", "left")] * 3
    for turn in range(3):
        files = [(tmp_path / f"{turn}-{me}.parquet").read_bytes() for me in (0, 1)]
        assert files[0] == files[1]
    assert len(Ledger(tmp_path / "ledger").lines()) == 3


def test_two_processes_at_once_cannot_overspend(tmp_path: Path) -> None:
    told = race(tmp_path, "other", 3)
    left = [f"{turn}-{me}.parquet" for turn, both in enumerate(told) for me, word in enumerate(both) if word == "left"]
    assert len(left) == 3
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == left
    files = {Part.read(tmp_path / name).metadata["hash"] for name in left}
    ledger = Ledger(tmp_path / "ledger")
    assert {entry.file for entry in ledger.history().leaving()} == files
    assert {path.stem for path in (tmp_path / "ledger.parts").iterdir()} == files


@pytest.mark.parametrize("step", ["craft", "release"])
@pytest.mark.parametrize("first", [True, False])
def test_another_process_was_quicker(tmp_path: Path, monkeypatch, step: str, first: bool) -> None:  # type: ignore[no-untyped-def]
    """It made the same release while this one was crafting, or drawing noise: its file is given."""
    if not first:
        share(tmp_path, "earlier.parquet", min_rows=11)
    real, calls = getattr(sharing, step), list[int]()

    def overtaken(*words: object, **more: object) -> object:
        done = real(*words, **more)
        calls.append(len(calls))
        if len(calls) == 1:
            share(tmp_path, "other.parquet")
        return done

    monkeypatch.setattr(sharing, step, overtaken)
    share(tmp_path)
    assert (tmp_path / "part.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    assert len(Ledger(tmp_path / "ledger").lines()) == 2 - first
    assert len({*(tmp_path / "ledger.parts").iterdir()}) == 2 - first


FULL = """
    import resource, sys
    from pathlib import Path
    from radocraft.errors import FileError
    from tests.unit.peer.test_road import share
    folder, room = Path(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    try:
        share(folder)
    except FileError as error:
        print(error)
        raise SystemExit(7)
"""


def out_of_room(folder: Path, room: int) -> str:
    """Share where no file may grow beyond so many bytes."""
    words = [sys.executable, "-c", textwrap.dedent(FULL), str(folder), str(room)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, ""), done
    return done.stdout


@pytest.mark.parametrize("room", [0, 500, 9000])
def test_a_disk_too_full_for_the_part_leaves_nothing(tmp_path: Path, room: int) -> None:
    said = out_of_room(tmp_path, room)
    assert "Nothing was changed; make room" in said
    assert Ledger(tmp_path / "ledger").lines() == []
    assert [path.name for path in tmp_path.rglob("*") if path.name not in {"ledger", "ledger.parts"}] == []
    share(tmp_path)
    assert len(Ledger(tmp_path / "ledger").lines()) == 1


def test_a_disk_too_full_for_the_ledger_leaves_nothing(tmp_path: Path) -> None:
    """The part would have had room."""
    book, at = Ledger(tmp_path / "ledger"), 0
    while (tmp_path / "ledger").stat().st_size < 60_000 if at else True:
        book.append(leaving(table="other", limits=None, rho=None, constants={"many": tuple(range(1000))}))
        at += 1
    before = (tmp_path / "ledger").read_bytes()
    assert "Nothing leaves without it" in out_of_room(tmp_path, len(before) + 100)
    assert (tmp_path / "ledger").read_bytes() == before
    assert [*(tmp_path / "ledger.parts").iterdir()] == []
    assert seen(tmp_path) == ["ledger", "ledger.parts"]
    share(tmp_path)
    assert len(book.lines()) == at + 1
    assert (tmp_path / "part.parquet").stat().st_size < len(before)


def test_a_device_gets_its_bytes_after_the_ledger_knows(tmp_path: Path) -> None:
    share(tmp_path, Path("/dev/null"))
    with pytest.raises(FileError, match="No space left"):
        share(tmp_path, Path("/dev/full"), min_rows=11)
    assert Ledger(tmp_path / "ledger").history().count("customers") == 2
    assert not [*Path("/dev").glob("null.*"), *Path("/dev").glob("full.*")]
    with pytest.raises(FileError, match="no place beside it for a ledger"):
        rc.share(TABLE, CONTRACT, "bank", output="/dev/null")
    with pytest.raises(FileError, match="what waits for review needs one"):
        share(tmp_path, Path("/dev/null"), review=True)


@pytest.mark.parametrize("review", [False, True])
def test_the_ledger_hears_of_no_release_that_cannot_be_written(tmp_path: Path, review: bool) -> None:
    (tmp_path / "folder").mkdir()
    for place, why in (("folder", "it is a folder"), ("nowhere/part", "there is no folder")):
        with pytest.raises(FileError, match=why):
            share(tmp_path, place, review=review)
    assert seen(tmp_path) == ["folder"]


def test_interrupted_while_it_writes_the_spend_stays_and_the_file_can_be_given(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Ctrl-C just after the ledger heard of it."""
    real = os.replace

    def interrupted(source: object, target: Path) -> None:
        if Path(target).name == "part.parquet":
            os.kill(os.getpid(), signal.SIGINT)
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            share(tmp_path)
    assert seen(tmp_path) == ["ledger", "ledger.parts"]
    share(tmp_path)
    (line,) = Ledger(tmp_path / "ledger").lines()
    assert Part.read(tmp_path / "part.parquet").metadata["hash"] == line.entry.file
