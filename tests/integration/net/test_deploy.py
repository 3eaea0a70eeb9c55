"""The systemd unit and the container file: sound by the machine's own tools, and every option they use exists."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.test_cli import run  # noqa: F401
from typer.testing import CliRunner

from radocraft.cli import _commands as commands
from radocraft.cli import app
from radocraft.errors import NetworkError

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "deploy" / "radocraft-peer.service"
CONTAINER = ROOT / "deploy" / "Containerfile"


def instructions() -> list[tuple[str, str]]:
    """The container file, its continued lines joined."""
    text = re.sub(r"\\\n", " ", "\n".join(re.findall(r"(?m)^(?!#).*$", CONTAINER.read_text())))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def tool(name: str) -> str:
    """Where a tool is; a developer may lack it, where every change is tested it must be there."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None and os.environ.get("CI"):
        pytest.fail(f"no {name} here: .ci/services and `make test` install it")
    return found or pytest.skip(f"no {name} here")


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    there = UNIT.read_text().replace("/opt/radocraft/bin/radocraft", "/bin/true")
    (tmp_path / UNIT.name).write_text(there)
    words = [analyze, "verify", tmp_path / UNIT.name]
    verified = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    words = [analyze, "security", "--offline=true", "--threshold=20", tmp_path / UNIT.name]
    exposed = subprocess.run(words, check=False, capture_output=True, text=True)
    assert exposed.returncode == 0, exposed.stdout[-300:]
    (tmp_path / UNIT.name).write_text(there.replace("ProtectSystem=strict", "ProtectSystem=perhaps"))
    words = [analyze, "verify", tmp_path / UNIT.name]
    assert "perhaps" in subprocess.run(words, check=False, capture_output=True, text=True).stderr


def test_the_unit_uses_options_that_exist(run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    (line,) = re.findall(r"(?m)^ExecStart=(.*)$", UNIT.read_text())
    words = shlex.split(line)
    assert words[1:3] == ["peer", "serve"]
    helped = run("peer", "serve", "--help").out
    assert {word for word in words if word.startswith("--")} <= {*re.findall(r"--[a-z-]+", helped)}


def test_the_container_file_is_sound() -> None:
    lines = instructions()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in lines} <= known
    assert all(re.search(r":[\d.]+", rest) for word, rest in lines if word == "FROM")
    for rest in (rest for word, rest in lines if word == "COPY" and "--from" not in rest):
        assert all((ROOT / name).exists() for name in rest.split()[:-1])
    last = {word: rest for word, rest in lines}
    assert last["USER"] not in {"root", "0"}
    assert json.loads(last["ENTRYPOINT"]) == ["radocraft"]
    json.loads(last["CMD"])
    json.loads(last["HEALTHCHECK"].partition("CMD ")[2])


def test_hadolint_takes_the_container_file(tmp_path: Path) -> None:
    words = [tool("hadolint"), "--no-color", "--failure-threshold", "style"]
    taken = subprocess.run([*words, CONTAINER], check=False, capture_output=True, text=True)
    assert (taken.returncode, taken.stdout) == (0, "")
    untagged = tmp_path / "Containerfile"
    untagged.write_text(CONTAINER.read_text().replace(":3.13-slim", ""))
    refused = subprocess.run([*words, untagged], check=False, capture_output=True, text=True)
    assert (refused.returncode, "DL3006" in refused.stdout) == (1, True)


def test_without_the_extra_the_commands_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "find_spec", lambda module: None)
    for words in (["identity", "init", "authority"], ["collect", "--from", "bank=x"], ["doctor"]):
        error = CliRunner().invoke(app, words).exception
        assert isinstance(error, NetworkError)
        assert "pip install 'radocraft[net]'" in str(error)
