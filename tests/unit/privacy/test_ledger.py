"""The ledger: nothing is lost, overspent or changed unseen, whatever is killed and whoever else writes."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from radocraft.errors import FileError, PolicyRefusal, Tampered
from radocraft.privacy.ledger import Ledger

SPEND = {"kind": "release", "table": "t", "rho": 0.25}


def test_lines_are_chained_and_spends_add_up(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.spent("t") == 0
    first, second = ledger.append(SPEND), ledger.append({**SPEND, "table": "other"})
    assert second["previous"] == first["hash"]
    assert [entry["number"] for entry in ledger.entries()] == [0, 1]
    assert (ledger.spent("t"), ledger.spent("other")) == (0.25, 0.25)
    assert (tmp_path / "ledger").stat().st_mode & 0o077 == 0


def test_an_overspend_is_refused_and_leaves_no_line(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    for _ in range(4):
        ledger.append(SPEND, limit=1.0)
    with pytest.raises(PolicyRefusal, match="overspend"):
        Ledger(tmp_path / "ledger").append(SPEND, limit=1.0)
    assert len(ledger.entries()) == 4


@pytest.mark.parametrize("change", ["value", "drop first", "swap", "hash"])
def test_a_changed_line_stops_everything(tmp_path, change):
    path = tmp_path / "ledger"
    ledger = Ledger(path)
    for _ in range(3):
        ledger.append(SPEND)
    lines = path.read_text().splitlines(keepends=True)
    if change == "value":
        lines[1] = lines[1].replace("0.25", "0.01")
    elif change == "drop first":
        lines = lines[1:]
    elif change == "swap":
        lines[0], lines[1] = lines[1], lines[0]
    else:
        entry = json.loads(lines[1])
        lines[1] = json.dumps({**entry, "hash": "f" * 64}) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(Tampered, match="ledger"):
        ledger.append(SPEND)
    assert path.read_text() == "".join(lines)


def test_a_line_cut_short_by_a_crash_is_removed_by_the_next_writer(tmp_path):
    path = tmp_path / "ledger"
    ledger = Ledger(path)
    ledger.append(SPEND)
    whole = path.read_bytes()
    ledger.append(SPEND)
    line = path.read_bytes()[len(whole) :]
    for cut in range(0, len(line), 7):
        path.write_bytes(whole + line[:cut])
        assert len(ledger.entries()) == 1
        ledger.append({**SPEND, "note": "after"})
        assert [entry.get("note") for entry in ledger.entries()] == [None, "after"]


def test_a_ledger_that_cannot_be_opened_is_an_error(tmp_path):
    with pytest.raises(FileError, match="Nothing leaves without it"):
        Ledger(tmp_path / "no" / "ledger").append(SPEND)


RELEASER = """
    import os, signal, sys
    from pathlib import Path
    from radocraft import chain
    from radocraft.privacy import ledger as module
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
    entry = module.Ledger(path).append({"kind": "release", "table": "t", "rho": 0.1}, limit=1.0)
    sys.settrace(None)
    out.write_text(entry["hash"])
    print(counted)
"""


def run_releaser(path, out, step):
    words = [sys.executable, "-c", textwrap.dedent(RELEASER), str(path), str(out), str(step)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_killed_at_any_line_nothing_leaves_without_a_spend(tmp_path):
    """kill -9 at every third line the ledger executes: what left is always recorded, and the ledger always goes on."""
    path, out = tmp_path / "ledger", tmp_path / "out"
    done = run_releaser(path, out, -1)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps > 40
    killed = 0
    for step in range(1, steps + 1, max(steps // 12, 1)):
        path.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
        Ledger(path).append({"kind": "release", "table": "t", "rho": 0.1})
        done = run_releaser(path, out, step)
        killed += done.returncode == -signal.SIGKILL
        hashes = [entry["hash"] for entry in Ledger(path).entries()]
        assert not out.exists() or out.read_text() in hashes
        before = len(hashes)
        Ledger(path).append({"kind": "release", "table": "t", "rho": 0.1})
        assert len(Ledger(path).entries()) == before + 1
    assert killed >= 8


SPENDER = """
    import sys
    from radocraft.errors import PolicyRefusal
    from radocraft.privacy.ledger import Ledger
    won = 0
    for _ in range(20):
        try:
            Ledger(sys.argv[1]).append({"kind": "release", "table": "t", "rho": 0.1}, limit=1.0)
            won += 1
        except PolicyRefusal:
            pass
    print(won)
"""


def test_two_processes_cannot_overspend(tmp_path):
    words = [sys.executable, "-c", textwrap.dedent(SPENDER), str(tmp_path / "ledger")]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    won = sum(int(process.communicate()[0]) for process in both)
    assert won == 10
    assert Ledger(tmp_path / "ledger").spent("t") == pytest.approx(1.0)


def test_the_line_is_synced_before_append_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    Ledger(tmp_path / "ledger").append(SPEND)
    assert len(synced) == 2  # the folder that got a new file, and the line
