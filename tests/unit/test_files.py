"""Files are written whole or not at all, also on a full disk and when the process dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from radocraft.errors import FileError
from radocraft.files import writing

FULL = """
import resource, sys
from radocraft.errors import FileError
from radocraft.files import writing
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with writing(sys.argv[1]) as file:
        file.write(b"x" * 1_000_000)
except FileError as error:
    print(error)
    raise SystemExit(7)
"""

SLOW = """
import sys, time
from radocraft.files import writing
with writing(sys.argv[1]) as file:
    file.write(b"x" * 1_000_000)
    file.flush()
    print("half way", flush=True)
    time.sleep(600)
"""


def test_a_file_is_there_after_the_block_and_not_before(tmp_path):
    target = tmp_path / "a.bin"
    with writing(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_an_error_inside_leaves_the_old_file_and_passes_on(tmp_path):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), writing(target) as file:
        file.write(b"x" * (1 // 0))
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(target)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (7, "")
    assert "Nothing was changed" in done.stdout
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_killed_process_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with subprocess.Popen([sys.executable, "-c", SLOW, str(target)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    assert target.read_bytes() == b"old"
    with writing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="the device is Linux's")
def test_a_device_is_written_to_and_stays_a_device():
    with pytest.raises(FileError, match="No space left"), writing("/dev/full") as file:
        file.write(b"x")
    assert Path("/dev/full").is_char_device()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with writing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("place", ["nowhere/a.bin", "folder"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=place) as error, writing(tmp_path / place) as file:
        file.write(b"x")
    assert error.value.exit_code == 1
    assert os.listdir(tmp_path) == ["folder"]
