"""Build what is published, so that others can check it: python deploy/release.py FOLDER [--key SSH_KEY].

- wheel and source archive, built twice: the same bytes, or nothing is published;
- `sbom.json`, what is installed to run it, in CycloneDX's format, from the locked versions and hashes;
- `provenance.json`, from which commit and which locks it was built (in-toto statement, SLSA's predicate);
- `SHA256SUMS` of all of these, and with a key `SHA256SUMS.sig`.

Who downloads a release checks it by two commands:

    ssh-keygen -Y verify -f SIGNERS -I radocraft -n release -s SHA256SUMS.sig < SHA256SUMS
    sha256sum --check SHA256SUMS
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "locks" / "core.txt"


def run(*words: str | Path, **variables: str) -> str:
    """Run a command in the project's folder; what it prints."""
    done = subprocess.run(
        [*map(str, words)], cwd=ROOT, env=os.environ | variables, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(folder: Path, epoch: str) -> dict[str, str]:
    """Build wheel and source archive; the hash of each."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, SOURCE_DATE_EPOCH=epoch)
    return {path.name: digest(path) for path in sorted(folder.iterdir()) if path.suffix in {".whl", ".gz"}}


def provenance(built: dict[str, str], commit: str) -> dict[str, object]:
    """Which files were built, from what."""
    sources = [
        {"uri": "git+commit", "digest": {"gitCommit": commit}},
        {"uri": LOCK.relative_to(ROOT).as_posix(), "digest": {"sha256": digest(LOCK)}},
    ]
    definition = {
        "buildType": "hatchling build",
        "externalParameters": {"command": "make release"},
        "resolvedDependencies": sources,
    }
    details = {"builder": {"id": f"python {sys.version_info.major}.{sys.version_info.minor}"}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": value}} for name, value in built.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": definition, "runDetails": details},
    }


def release(folder: Path, key: Path | None) -> list[Path]:
    """Build, check and sign; all files that are published."""
    if run("git", "status", "--porcelain"):
        raise SystemExit("There are changes that are not committed. Commit them or put them aside, then build again.")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty. Name an empty folder.")
    commit, epoch = run("git", "rev-parse", "HEAD"), run("git", "log", "-1", "--format=%ct")
    built = build(folder, epoch)
    with tempfile.TemporaryDirectory() as other:
        if (again := build(Path(other), epoch)) != built:
            raise SystemExit(f"Two builds differ, so nobody could check this one: {built} and {again}.")
    sbom = ("cyclonedx_py", "requirements", LOCK, "--output-reproducible", "-o", folder / "sbom.json")
    run(sys.executable, "-m", *sbom)
    (folder / "provenance.json").write_text(json.dumps(provenance(built, commit), indent=2) + "\n")
    published = sorted(folder.iterdir())
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{digest(path)}  {path.name}\n" for path in published))
    if key is None:
        return [*published, sums]
    run("ssh-keygen", "-Y", "sign", "-f", key, "-n", "release", sums)
    return [*published, sums, sums.with_name("SHA256SUMS.sig")]


def main() -> None:
    """Build a release."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("folder", type=Path)
    wanted.add_argument("--key", type=Path, help="an SSH key to sign with")
    given = wanted.parse_args()
    for path in release(given.folder.resolve(), given.key and given.key.resolve()):
        print(path.name)


if __name__ == "__main__":
    main()
