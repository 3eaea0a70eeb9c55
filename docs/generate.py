"""Writes the pages of the reference that follow from the code: python docs/generate.py.

A test fails when a page on disk differs from what this gives.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "radocraft"
WIDTH = 80
NOTE = "<!-- written by docs/generate.py: change the code, not this page -->\n\n"


def pages() -> dict[str, str]:
    """Every generated page by its name."""
    written = {
        "cli.md": command_line(),
        "contract.md": contract(),
        "policy.md": policy(),
        "part.md": part(),
        "errors.md": errors(),
        "api.md": api(),
        "glossary.md": glossary(),
    }
    written = {f"reference/{name}": text for name, text in written.items()} | {"design.md": design()}
    return {name: NOTE + text.rstrip() + "\n" for name, text in written.items()}


def command_line() -> str:
    """The help of every command, as the terminal shows it."""
    os.environ |= {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    os.environ.pop("FORCE_COLOR", None)
    from typer.testing import CliRunner

    from radocraft.cli import app

    runner = CliRunner()
    text = [
        "# Command line\n",
        "Every command takes `--help`; those with a result take `--json`. Colours respect `NO_COLOR`. Shell "
        "completion: `radocraft --install-completion`. Exit codes are in [errors](errors.md).\n",
    ]
    for path in _commands(None, ()):
        shown = runner.invoke(app, [*path, "--help"], prog_name="radocraft").output
        lines = "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())
        text.append(f"## {' '.join(['radocraft', *path])}\n\n```text\n{lines.strip()}\n```\n")
    return "\n".join(text)


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    from radocraft.cli._commands import COMMANDS, load

    yield path
    inside = {name: load(name) for name in COMMANDS} if not path else getattr(command, "commands", {})
    for name, inner in inside.items():
        yield from _commands(inner, (*path, name))


def contract() -> str:
    """The fields of a contract."""
    from radocraft import Contract
    from radocraft.contract import Cleaning, Key
    from radocraft.contract import _features as features
    from radocraft.contract import _labels as labels

    module = _module_of(Contract)
    text = ["# Contract\n", _module_text(module)]
    text.append(_fields("The file", module.Contract))
    text += [_fields(f"[label], {kind}", model) for kind, model in _labels(labels)]
    text.append(_fields("[[shared]]", features.Shared))
    text.append(_fields("[[key]]", Key))
    text.append(_fields("[peers.NAME]", module.Peer))
    text.append(_fields("[peers.NAME.cleaning]", Cleaning))
    text.append('## Kinds of private features\n\nA bare word stands for the kind: `income = "numeric"`.\n')
    kinds = (
        features.Score,
        features.Numeric,
        features.Log,
        features.Date,
        features.Boolean,
        features.Categorical,
        features.Spline,
        features.Interact,
    )
    for model in kinds:
        text.append(_fields(f'kind = "{model.model_fields["kind"].default}"', model, "###"))
    return "\n".join(text)


def _labels(module: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    from radocraft.contract import Record

    for name, model in vars(module).items():
        own = inspect.isclass(model) and issubclass(model, Record) and model.__module__ == module.__name__
        if own and not name.startswith("_"):
            yield re.sub(r"(?<!^)([A-Z])", r" \1", name).lower(), model


def policy() -> str:
    """The fields of a policy."""
    from radocraft import Policy

    return "\n".join(["# Policy\n", _module_text(_module_of(Policy)), _fields("The file", Policy)])


def part() -> str:
    """The format of a part."""
    from radocraft import Part

    return "# Part\n\n" + _module_text(_module_of(Part))


def errors() -> str:
    """The tree of errors and what the command line returns."""
    from radocraft import errors as module

    tree = re.search(r"::\n\n(.*?)\n\n(?=\S)", module.__doc__ or "", flags=re.DOTALL)
    assert tree is not None
    rows = [
        f"| `{name}` | {error.exit_code} | {(inspect.getdoc(error) or '').splitlines()[0].replace('``', '`')} |"
        for name, error in vars(module).items()
        if inspect.isclass(error) and issubclass(error, module.RadocraftError)
    ]
    drawn = inspect.cleandoc(tree[1])
    return (
        "# Errors and exit codes\n\n"
        "All errors raised on purpose are `RadocraftError`s. A message says what happened, what was expected and "
        "what to do next; it never holds a row's value or a small count. With `--json` the error itself is JSON, on "
        "standard error.\n\n"
        "| exit code | means |\n|---|---|\n| 0 | done |\n| 1 | failed |\n| 2 | the command was used wrongly |\n"
        "| 3 | two things made under different contracts were brought together |\n"
        "| 4 | refused by the peer's policy |\n| 5 | nothing is wrong: it waits for a person |\n"
        "| 130 | interrupted |\n\n"
        f"```text\n{drawn}\n```\n\n| error | exit code | when |\n|---|---|---|\n" + "\n".join(rows)
    )


ROOMS = [
    "contract",
    "sums",
    "gate",
    "rows",
    "ledger",
    "parts",
    "model",
    "peer",
    "learning",
    "pages",
    "net",
    "demo",
    "research",
    "cli",
]
TOOLS = ("errors", "arrays", "files", "progress")
SHAPE = """# The shape of the software

```
contract ──> rows ──> tally ──> gate ──> part ══(file, or network)══> blocks ──> learn ──> model ──> pages
 (agreed)   (stay)  (stays too) (bound,  (the only thing              (merged)
                                 noise)   that leaves)
```

`src/radocraft/` is divided into rooms, in the order in which the data passes through them. A room imports only rooms
that are above it in the first table, and only what their `__init__.py` exports; all other files of a room are private.
Tests in `tests/architecture/` enforce this, and `tests/unit/` has the same rooms and file names. [Choices worth
knowing](choices.md) explains why things are as they are; the [glossary](reference/glossary.md) explains the words.
"""


def design() -> str:
    """The rooms and their files, from their docstrings."""
    docs = {room: _docstring(SOURCE / room / "__init__.py") for room in ROOMS}
    text = [SHAPE, "## The rooms\n", "| room | holds |\n|---|---|"]
    tools = ", ".join(f"`{tool}.py`" for tool in TOOLS)
    text.append(f"| {tools} | errors, arrays, files, and the progress of long work |")
    text += [f"| [`{room}/`](#{room}) | {_first_line(doc)} |" for room, doc in docs.items()]
    text += ["\n## Where to add something\n", "| to add | go to |\n|---|---|", *_tasks(docs)]
    for room, doc in docs.items():
        said = re.sub(r"\n+To add .*", "", doc, flags=re.DOTALL)
        text.append(f"\n## {room}\n\n{_restructured(said)}\n\n| file | holds |\n|---|---|")
        files = sorted(path for path in (SOURCE / room).rglob("*.py") if path.name != "__init__.py")
        for path in files:
            text.append(f"| `{path.relative_to(SOURCE)}` | {_first_line(_docstring(path)).replace('``', '`')} |")
    return "\n".join(text)


def _tasks(docs: dict[str, str]) -> Iterator[str]:
    """Rows of the table of what to add where; files are named from `src/radocraft/` on."""
    for room, doc in docs.items():
        joined = re.sub(r"\n +", " ", doc)
        for what, where in re.findall(r"^To add (.*?): (.*)$", joined, flags=re.MULTILINE):
            named = re.sub(r"`(?=_|engines/|study/)", f"`{room}/", where)
            yield f"| {what} | {named} |"
    yield "| an error | a class in `errors.py`, and its line in the tree at its head |"
    yield "| a benchmark | a script in `benchmarks/` beside `craft.py`, which prints its page's table |"


def glossary() -> str:
    """Each word with its meaning, then each class that rooms offer."""
    words = tomllib.loads((DOCS / "glossary.toml").read_text(encoding="utf-8"))
    text = [
        "# Glossary\n",
        "Each word has one meaning, in code, messages, files and pages.\n",
        "| word | means |\n|---|---|",
    ]
    text += [f"| **{word}** | {meaning} |" for word, meaning in sorted(words.items())]
    text += [
        "\n## Classes\n",
        "The classes that rooms export to each other. A user needs few of them.\n",
        "| class | is | room |\n|---|---|---|",
    ]
    for name, (room, doc) in sorted(_offered_classes().items()):
        text.append(f"| `{name}` | {_first_line(doc).replace('``', '`')} | `{room}` |")
    return "\n".join(text)


def _offered_classes() -> dict[str, tuple[str, str]]:
    """Each class in a room's ``__all__``: its room and docstring."""
    found = {}
    for room in ROOMS:
        tree = ast.parse((SOURCE / room / "__init__.py").read_text(encoding="utf-8"))
        lists = [
            node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        offered = set(ast.literal_eval(lists[0].value))
        for path in sorted((SOURCE / room).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and node.name in offered:
                    found[node.name] = (room, ast.get_docstring(node) or "")
    return found


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _first_line(doc: str) -> str:
    return doc.split("\n", maxsplit=1)[0]


TASKS = {
    "Agree": ("Contract", "profile", "Policy"),
    "At a peer": ("share", "craft", "release", "share_counts", "open_source", "Part", "Tally", "Scorer"),
    "Learn and use": (
        *("learn", "predict", "explain", "report", "advise", "recalibrate", "load_model"),
        *("Model", "ScoreModel", "RadocraftClassifier"),
    ),
    "Try, and what goes wrong": ("example_peers", "RadocraftError"),
}


def api() -> str:
    """Every public name, by what one does with it, for mkdocstrings to fill in."""
    import radocraft

    text = ["# Python\n", "`import radocraft as rc`; every name below is a name of the package itself.\n"]
    text.append("| | |\n|---|---|")
    for names in TASKS.values():
        for name in names:
            summary = (inspect.getdoc(getattr(radocraft, name)) or "").splitlines()[0].replace("``", "`")
            text.append(f"| [`rc.{name}`](#radocraft.{name}) | {summary} |")
    for task, names in TASKS.items():
        text.append(f"\n## {task}\n")
        text += [f"::: radocraft.{name}\n" for name in names]
    return "\n".join(text)


def _module_of(model: type) -> Any:
    return sys.modules[model.__module__]


def _module_text(module: Any) -> str:
    return _restructured(inspect.getdoc(module) or "", "toml") + "\n"


def _restructured(text: str, language: str = "text") -> str:
    """The little reStructuredText our docstrings have, as Markdown: literals, a table, and blocks after ``::``."""
    text = text.replace("``", "`")
    out: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        if re.fullmatch(r"=+ +=+", lines[at]):
            end = max(i for i, line in enumerate(lines) if re.fullmatch(r"=+ +=+", line))
            out += _table(lines[at + 1 : end], lines[at].index(" "))
            at = end + 1
        elif lines[at].endswith("::"):
            out += [lines[at][:-1], "", f"```{language}"]
            at += 2
            while at < len(lines) and (not lines[at] or lines[at].startswith("    ")):
                out.append(lines[at][4:])
                at += 1
            while not out[-1]:
                out.pop()
            out += ["```", ""]
        else:
            out.append(lines[at])
            at += 1
    return "\n".join(out)


def _table(lines: list[str], width: int) -> list[str]:
    rows: list[list[str]] = []
    for line in lines:
        if line[:width].strip():
            rows.append([line[:width].strip(), line[width:].strip()])
        else:
            rows[-1][1] += " " + line.strip()
    return ["| | |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]


def _fields(title: str, model: type[BaseModel], level: str = "##") -> str:
    said = _said(model)
    rows = [
        f"| `{name}` | {_kind(field.annotation, field.metadata)} | {_default(field)} | {said.get(name, '')} |"
        for name, field in model.model_fields.items()
        if name != "kind"
    ]
    summary = (inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ").rstrip(".") + "."
    table = "\n".join(["| field | is | if left out | |", "|---|---|---|---|", *rows]) if rows else "No further fields."
    return f"{level} {title}\n\n{summary.replace('``', '`')}\n\n{table}\n"


def _said(model: type[BaseModel]) -> dict[str, str]:
    """What stands below each field in the source."""
    out: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind.__module__.startswith("radocraft"):
            lines = ast.parse(dedent(inspect.getsource(kind))).body[0].body
            for field, text in pairwise(lines):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    out[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return out


def _default(field: Any) -> str:
    if field.is_required():
        return "**needed**"
    value = field.default_factory() if field.default is PydanticUndefined else field.default
    if value in (None, (), {}):
        return "nothing"
    return f"`{str(value).lower() if isinstance(value, bool) else repr(value)}`".replace("'", '"')


def _kind(annotation: Any, metadata: list[Any]) -> str:
    """A type in words, with its limits."""
    text = _type(annotation)
    limits = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    found = re.findall(r"(gt|ge|lt|le)=([-\d.e]+)", " ".join(map(repr, [annotation, *metadata])))
    said = ", ".join(f"{limits[name]} {value}" for name, value in found)
    return f"{text}, {said}" if said else text


def _type(annotation: Any) -> str:
    words = repr(annotation)
    if "tuple[" in words and "[int," in words:
        return "a list of numbers, or a whole number"
    if literals := re.search(r"Literal\[([^\]]*)\]", words):
        return " or ".join(f"`{text.strip()}`".replace("'", '"') for text in literals[1].split(","))
    named = (
        ("_contract.Peer]", "one section per peer"),
        ("Shared, ...", "a list of sections"),
        ("_keys.Key", "a list of one section"),
        ("dict[str, str]", "names"),
        ("Cleaning]", "one line per column"),
        ("dict[str, typing.Annotated[bool", "pairs: what stands there, and what is meant"),
        ("datetime.date", "a day, such as 2025-01-01"),
        ("dict[str,", "one line per feature"),
        ("TwoValues", "a section"),
        ("tuple[str, str]", "two names"),
        ("int | tuple[", "a whole number, or a list of numbers"),
        ("tuple[str, ...]", "a list of names"),
        ("bool | int | float | str", "text, a number, true or false"),
        ("Finite", "a number"),
        ("float", "a number"),
        ("bool", "true or false"),
        ("int", "a whole number"),
        ("str", "text"),
    )
    found = next((text for key, text in named if key in words), words)
    several = words.startswith("tuple[") or "tuple[typing.Annotated" in words
    if several and found in ("text, a number, true or false", "a number"):
        return "a list of values" if found.startswith("text") else "a list of numbers"
    return found


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
