"""The ledger: nothing is lost, overspent or changed unseen, whatever is killed and whoever else writes."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from tests.unit.ledger.entries import leaving

from radocraft.errors import FileError, PolicyRefusal, Tampered
from radocraft.ledger._chain import FIRST, Chain
from radocraft.ledger._chain import _hash as chain_hash
from radocraft.ledger._ledger import Ledger
from radocraft.ledger._lines import Limits

TWICE = Limits(delta=1e-6, releases=2)


def test_lines_are_chained_and_spends_add_up(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.spent("t").rho == 0
    assert ledger.history().head == FIRST
    ledger.append(leaving("a", delta=1e-7))
    second = ledger.append(leaving("b", table="other"))
    assert [line.number for line in ledger.lines()] == [0, 1]
    assert (ledger.spent("t").rho, ledger.spent("t").delta, ledger.spent("other").rho) == (0.25, 1e-7, 0.25)
    assert ledger.history().head == second.hash
    assert ledger.lines()[0].entry == leaving("a", delta=1e-7)
    assert (tmp_path / "ledger").stat().st_mode & 0o077 == 0


def test_an_overspend_is_refused_and_leaves_no_line(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    for file in "ab":
        ledger.append(leaving(file, limits=TWICE))
    with pytest.raises(PolicyRefusal, match=r"2 releases, together epsilon .* 0 of 2 releases left"):
        Ledger(tmp_path / "ledger").append(leaving("c", limits=TWICE))
    assert len(ledger.lines()) == 2


@pytest.mark.parametrize("change", ["value", "value and hash", "drop first", "swap", "hash"])
def test_a_changed_line_stops_everything(tmp_path, change):
    path = tmp_path / "ledger"
    ledger = Ledger(path)
    for file in "abc":
        ledger.append(leaving(file))
    lines = path.read_text().splitlines(keepends=True)
    if change == "value":
        lines[1] = lines[1].replace("0.25", "0.01")
    elif change == "value and hash":  # a line that is whole in itself
        entry = json.loads(lines[1].replace("0.25", "0.0"))
        del entry["hash"]
        lines[1] = json.dumps({**entry, "hash": chain_hash(entry)}) + "\n"
    elif change == "drop first":
        lines = lines[1:]
    elif change == "swap":
        lines[0], lines[1] = lines[1], lines[0]
    else:
        entry = json.loads(lines[1])
        lines[1] = json.dumps({**entry, "hash": "f" * 64}) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(Tampered, match="ledger"):
        ledger.append(leaving("d"))
    assert path.read_text() == "".join(lines)


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "gift", "table": "t"},
        {"table": "t"},
        {**leaving().model_dump(mode="json"), "colour": "red"},
        {**leaving().model_dump(mode="json"), "rho": -1},
        {**leaving().model_dump(mode="json"), "rho": "much"},
        {**leaving().model_dump(mode="json"), "file": "../../etc/passwd"},
        {**leaving().model_dump(mode="json"), "kind": "proposal"},
    ],
)
def test_a_line_that_no_ledger_writes_counts_as_changed(tmp_path, entry):
    """However well it is chained."""
    Ledger(tmp_path / "ledger").append(leaving())
    Chain(tmp_path / "ledger").append(entry)
    with pytest.raises(Tampered, match="Line 2 of the ledger"):
        Ledger(tmp_path / "ledger").lines()


def test_a_line_cut_short_by_a_crash_is_removed_by_the_next_writer(tmp_path):
    path = tmp_path / "ledger"
    ledger = Ledger(path)
    ledger.append(leaving("a"))
    whole = path.read_bytes()
    ledger.append(leaving("b"))
    line = path.read_bytes()[len(whole) :]
    for cut in range(0, len(line) - 1, 7):
        path.write_bytes(whole + line[:cut])
        assert len(ledger.lines()) == 1
        ledger.append(leaving("c"))
        assert [one.entry.file[0] for one in ledger.lines()] == ["a", "c"]


def test_a_whole_last_line_counts_without_its_newline(tmp_path):
    """An editor may have taken the newline away, and what the line speaks of may have left."""
    path = tmp_path / "ledger"
    ledger = Ledger(path)
    ledger.append(leaving("a"))
    ledger.append(leaving("b"))
    path.write_bytes(path.read_bytes()[:-1])
    assert ledger.spent("t").rho == 0.5
    ledger.append(leaving("c"))
    assert [one.entry.file[0] for one in ledger.lines()] == ["a", "b", "c"]
    path.write_bytes(path.read_bytes().replace(b'"rho": 0.25', b'"rho": 0.01')[:-1])
    with pytest.raises(Tampered):
        ledger.lines()


def test_a_ledger_that_cannot_be_opened_or_keeps_nothing_is_an_error(tmp_path):
    with pytest.raises(FileError, match="Nothing leaves without it"):
        Ledger(tmp_path / "no" / "ledger").append(leaving())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="is not a file"):
        Ledger(tmp_path / "pipe").append(leaving())


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "ledger"
    Ledger(path).append(leaving("a"))
    before, real = path.read_bytes(), os.pwrite

    def full(handle: int, data: bytes, place: int) -> int:
        if len(data) < 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data[: len(data) // 2], place)

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(FileError, match="No space left"):
            Ledger(path).append(leaving("b"))
    assert path.read_bytes() == before


RELEASER = """
    import os, signal, sys
    from pathlib import Path
    from tests.unit.ledger.entries import leaving
    from radocraft.ledger import _chain as chain, _ledger as module
    path, out, step = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    counted = 0
    def tick(frame, event, argument):  # kill at the step-th line executed inside the ledger
        global counted
        if frame.f_code.co_filename in (module.__file__, chain.__file__):
            counted += event == "line"
            if counted == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return tick
    sys.settrace(tick)
    line = module.Ledger(path).append(leaving("b"))
    sys.settrace(None)
    out.write_text(line.hash)
    print(counted)
"""


def run_releaser(path, out, step):
    words = [sys.executable, "-c", textwrap.dedent(RELEASER), str(path), str(out), str(step)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_killed_at_any_line_nothing_leaves_without_a_spend(tmp_path):
    """kill -9 at every so many lines the ledger executes: what left is always recorded, and the ledger goes on."""
    path, out = tmp_path / "ledger", tmp_path / "out"
    done = run_releaser(path, out, -1)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps > 40
    killed = 0
    for step in range(1, steps + 1, max(steps // 12, 1)):
        path.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
        Ledger(path).append(leaving("a"))
        done = run_releaser(path, out, step)
        killed += done.returncode == -signal.SIGKILL
        hashes = [line.hash for line in Ledger(path).lines()]
        assert not out.exists() or out.read_text() in hashes
        before = len(hashes)
        Ledger(path).append(leaving("c"))
        assert len(Ledger(path).lines()) == before + 1
    assert killed >= 8


def test_two_at_once_cannot_overspend(tmp_path):
    """While one is between reading the ledger and writing its line, another waits, and then reads that line."""
    ledger, inside, go_on = Ledger(tmp_path / "ledger"), threading.Event(), threading.Event()
    once = Limits(delta=1e-6, releases=1)
    refused = []

    def slow(history):
        inside.set()
        assert go_on.wait(10)

    def quick():
        try:
            Ledger(tmp_path / "ledger").append(leaving("b", limits=once))
        except PolicyRefusal as refusal:
            refused.append(str(refusal))

    with ThreadPoolExecutor() as both:
        first = both.submit(ledger.append, leaving("a", limits=once), slow)
        assert inside.wait(10)
        second = both.submit(quick)
        wait([second], 0.5)  # without a lock it would be done by now
        go_on.set()
        first.result(10)
        second.result(10)
    assert [line.entry.file[0] for line in ledger.lines()] == ["a"]
    assert len(refused) == 1
    assert "1 release, together" in refused[0]


def test_the_line_is_synced_before_append_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    Ledger(tmp_path / "ledger").append(leaving())
    assert len(synced) == 2  # the folder that got a new file, and the line
