"""Code blocks of a Markdown page, and a page as a script that runs them all."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
RUN = ("sh", "python")
PICTURES = ("", "text", "bibtex")
OUTPUT, NOISY = "output", "output; your numbers differ a little"
NUMBER = re.compile(r"(?<![\d.,])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
NEAR = 0.1
WAITS = 'radocraft() { command radocraft "$@" || [ $? = 5 ]; }\n'  # that a person has to decide is no failure
FENCE = re.compile(
    r"(<!-- not run: [^\n]+ -->\n)?^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE
)
WHOLE_PAGE = re.compile(r"<!-- no block of this page is run: [^\n]+ -->")


@dataclass(frozen=True)
class Block:
    """A block of code, its language, the file it is to be saved as, and why it is not run."""

    language: str
    title: str | None
    text: str
    excuse: str | None

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.excuse is None

    def script(self) -> str:
        if self.title is not None:
            return f"cat > {shlex.quote(self.title)} <<'END OF FILE'\n{self.text}END OF FILE\n"
        if self.language == "python":
            return f"python - <<'END OF FILE'\n{self.text}END OF FILE\n"
        return self.text


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    whole = WHOLE_PAGE.search(text)
    found = [
        Block(language, title or None, body, excuse or (whole[0] if whole else None))
        for excuse, language, title, body in FENCE.findall(text)
    ]
    fences = re.findall(r"^```", text, flags=re.MULTILINE)
    assert 2 * len(found) == len(fences), f"a fence of {page.name} is not understood"
    return found


def check(block: Block, page: Path) -> None:
    """Every block is run, saved and used, compared, read, or says why not."""
    if block.language == "toml" and block.title is None:
        tomllib.loads(block.text)
    elif block.language not in (*RUN, *PICTURES, "toml"):
        assert block.excuse is not None, f"{page.name}: a block of {block.language!r} that nothing runs:\n{block.text}"


def walk(page: Path, folder: Path, command: Path, **environment: str) -> None:
    """Run a page's blocks one after the other in one shell, as a reader would, and compare what it says they print.

    ``command`` is the folder that holds `radocraft`.
    """
    found = [block for block in blocks(page) if block.excuse is None]
    for block in found:
        check(block, page)
    steps = [block for block in found if block.runs or (block.title not in (None, OUTPUT, NOISY))]
    if not steps:
        return
    script = WAITS + "\n".join(f"echo '@@ {at}'\n{block.script()}" for at, block in enumerate(steps))
    path = os.pathsep.join([str(command), str(Path(sys.executable).parent), os.environ["PATH"]])
    place = {**os.environ, "PATH": path, "COLUMNS": "80"}
    done = subprocess.run(
        ["bash", "-e"], input=script, cwd=folder, env=place | environment, capture_output=True, text=True, check=False
    )
    printed = re.split(r"^@@ \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert done.returncode == 0, f"{page.name}, block {len(printed)}:\n{done.stderr}\n{done.stdout[-1500:]}"
    last = -1
    for block in found:
        if block in steps:
            last = steps.index(block)
        elif block.title in (OUTPUT, NOISY):
            holds = says if block.title == OUTPUT else says_about
            missing = [line for line in block.text.splitlines() if not holds(printed[last], line)]
            assert not missing, f"{page.name} says that {missing} is printed; it is:\n{printed[last]}"


def says(text: str, line: str) -> bool:
    """Whether a line is in a text, however both are spaced."""
    return squeeze(line) in squeeze(text)


def says_about(text: str, line: str) -> bool:
    """The same where numbers carry noise: every other character as it stands, each number within a tenth."""
    words = NUMBER.split(squeeze(line))
    shape = re.compile(f"(?={f'({NUMBER.pattern})'.join(map(re.escape, words))})")
    stated = [value(number) for number in NUMBER.findall(line)]
    return any(
        all(abs(value(printed) - own) <= NEAR * own for printed, own in zip(found.groups(), stated, strict=True))
        for found in shape.finditer(squeeze(text))
    )


def value(number: str) -> float:
    return float(number.replace(",", ""))


def squeeze(text: str) -> str:
    return " ".join(text.split())
