"""Fuzz one kind of input: python -m tests.fuzz.run TARGET [--inputs 200000] [--seed 0] [--guided FOLDER].

By default inputs are mutations by chance, the same for the same seed. With ``--guided`` a corpus in that folder is
grown by coverage (atheris, which is installed by hand). A finding, that is an error that is not ours, more than two
seconds or a gigabyte more memory, stops the run. Its input is kept under ``tests/fuzz/findings/TARGET``: it fails the
tests until it is mended, and is a test for good.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sys
import time
import warnings
from pathlib import Path

from tests.fuzz.mutations import mutate

LONGEST, MOST = 2.0, 2**20
"""Seconds an input may take, and kilobytes by which memory may grow."""
FINDINGS = Path(__file__).parent / "findings"


class Finding(Exception):
    """An input that took too long, or too much memory."""


def memory() -> int:
    """The most memory ever used, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def check(target, content: bytes) -> bool:
    """Use an input within its limits; whether it was taken."""
    start, before = time.process_time(), memory()
    taken = target.run(content)
    if (seconds := time.process_time() - start) > LONGEST:
        raise Finding(f"took {seconds:.1f} s of processor time")
    if (grown := memory() - before) > MOST:
        raise Finding(f"took {grown / 2**20:.1f} GB of memory")
    return taken


def keep(target, content: bytes) -> Path:
    """Keep an input that is a finding."""
    folder = FINDINGS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(content).hexdigest()[:16]
    path.write_bytes(content)
    return path


def by_chance(target, inputs: int, seed: int) -> dict[str, int]:
    """Mutations of the corpus, which grows by what is taken."""
    rng, seeds, grown, taken = random.Random(f"{target.name} {seed}"), target.seeds(), [], 0
    for content in seeds:
        assert check(target, content), f"{target.name}: a valid input is refused"
    for _ in range(inputs):
        start = rng.choice(grown if grown and rng.random() < 0.5 else seeds)
        content = mutate(start, [*seeds, *grown], target.words, rng)
        try:
            good = check(target, content)
        except BaseException:
            print(f"finding: {keep(target, content)}", file=sys.stderr)
            raise
        taken += good
        if good and len(grown) < 200:
            grown.append(content)
    return {"inputs": inputs, "taken": taken}


def guided(target, inputs: int, folder: Path) -> None:
    """Inputs grown by coverage; ends the process."""
    import atheris

    folder.mkdir(parents=True, exist_ok=True)
    for content in target.seeds():
        (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)

    def one(content: bytes) -> None:
        try:
            check(target, content)
        except BaseException:
            print(f"finding: {keep(target, content)}", file=sys.stderr)
            raise

    atheris.Setup([sys.argv[0], f"-atheris_runs={inputs}", "-max_len=65536", "-rss_limit_mb=6000", str(folder)], one)
    atheris.Fuzz()


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("target", help="a kind of input, or all of them")
    wanted.add_argument("--inputs", type=int, default=200_000)
    wanted.add_argument("--seed", type=int, default=0)
    wanted.add_argument("--guided", type=Path, metavar="FOLDER", help="grow a corpus there by coverage")
    given = wanted.parse_args()
    warnings.simplefilter("ignore")
    if given.guided:
        import atheris

        with atheris.instrument_imports(include=["radocraft"]):
            from tests.fuzz.targets import TARGETS
        guided(TARGETS[given.target], given.inputs, given.guided / given.target)
        return
    from tests.fuzz.targets import TARGETS

    for name in [given.target] if given.target != "all" else TARGETS:
        done = by_chance(TARGETS[name], given.inputs, given.seed)
        print(f"{name}: {done['inputs']:,} inputs, {done['taken']:,} of them taken, no finding", flush=True)


if __name__ == "__main__":
    main()
