"""Whoever downloads a release can check it: same bytes twice, what it needs, a signature that tampering breaks."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release is built from a git clone"),
    pytest.mark.skipif(
        shutil.which("ssh-keygen") is None, reason="ssh-keygen is not there: apt install openssh-client"
    ),
]


def run(*words, **options):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A clone of this project, in which nothing is changed."""
    folder = tmp_path_factory.mktemp("clone")
    assert run("git", "clone", "--quiet", "--no-hardlinks", ROOT, folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def released(project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    assert run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key").returncode == 0
    done = run(sys.executable, project / "deploy/release.py", folder / "files", "--key", folder / "key")
    assert done.returncode == 0, done.stderr
    (folder / "signers").write_text("radocraft " + (folder / "key.pub").read_text())
    return folder


def verified(released, sums):
    words = ("ssh-keygen", "-Y", "verify", "-f", released / "signers", "-I", "radocraft", "-n", "release")
    return run(*words, "-s", released / "files/SHA256SUMS.sig", input=sums).returncode == 0


def test_its_sums_are_signed_and_cover_every_file(released):
    files = released / "files"
    sums = (files / "SHA256SUMS").read_text()
    assert verified(released, sums)
    assert run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=files).returncode == 0
    listed = {line.split()[1] for line in sums.splitlines()}
    assert {path.name for path in files.iterdir()} == listed | {"SHA256SUMS", "SHA256SUMS.sig"}


def test_other_files_and_other_sums_are_noticed(released, tmp_path):
    files = shutil.copytree(released / "files", tmp_path / "files")
    (wheel,) = files.glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"more")
    assert run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=files).returncode != 0
    assert not verified(released, (files / "SHA256SUMS").read_text().replace("a", "b"))


def test_it_says_what_it_is_made_of(released):
    sbom = json.loads((released / "files/sbom.json").read_text())
    assert {"numpy", "duckdb", "scikit-learn", "cryptography"} <= {part["name"] for part in sbom["components"]}
    statement = json.loads((released / "files/provenance.json").read_text())
    sums = dict(reversed(line.split()) for line in (released / "files/SHA256SUMS").read_text().splitlines())
    assert statement["subject"]
    for built in statement["subject"]:
        assert sums[built["name"]] == built["digest"]["sha256"]


def test_nothing_is_built_from_changes_that_nobody_can_see(project, tmp_path):
    (project / "stray.txt").write_text("not committed")
    done = run(sys.executable, project / "deploy/release.py", tmp_path / "files")
    assert done.returncode == 1
    assert "not committed" in done.stderr
    (project / "stray.txt").unlink()
