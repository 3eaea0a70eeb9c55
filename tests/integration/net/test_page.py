"""docs/network.md, walked by somebody with a terminal and an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import DOCS, blocks
from tests.docs.warm import warm_command
from tests.ports import free_port

ADOPTS = "identity adopt"  # needs a company's authority: test_refused.py


def test_the_page_works_in_an_empty_folder(tmp_path: Path) -> None:
    steps = [block.text for block in blocks(DOCS / "network.md") if block.language == "sh" and ADOPTS not in block.text]
    assert len(steps) == 4
    script = "\n".join(["trap 'kill $(jobs -p); wait' EXIT", *steps])
    script = re.sub(r"(?m)^radocraft (.* &)$", rf"{sys.executable} -m radocraft \1", script)
    for port in ("8815", "8816"):
        script = script.replace(port, str(free_port()))
    for name in ("bin", "empty"):
        (tmp_path / name).mkdir()
    with warm_command(tmp_path / "bin") as command:
        place = {**os.environ, "PATH": f"{command}:{os.environ['PATH']}", "COLUMNS": "200"}
        words = {"input": script, "cwd": tmp_path / "empty", "env": place}
        done = subprocess.run(["bash", "-e"], timeout=300, check=False, capture_output=True, text=True, **words)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Learned from bank, insurer" in done.stdout
    assert re.search(r"good\s+the other end's contract", done.stdout)
    assert "its probabilities recalibrated" in done.stdout
    assert not re.search(r"(?m)^bad", done.stdout)
    for peer in ("bank", "insurer"):
        assert len([*(tmp_path / "empty" / "trial" / f"{peer}-jobs").glob("*/model.json")]) == 2
