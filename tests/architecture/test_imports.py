"""The rules of the layout, read off the syntax tree of the source: who may import whom, and who makes a release.

An import of ``radocraft.a.b`` counts as one of that module. That Python also
runs the packages' ``__init__`` on the way is left out of account: the package's
own ``__init__`` gathers every public name, and so would tie everything to all.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "radocraft"
LONGEST = 400

# Read top to bottom: a module imports only what stands above it. Modules on one line are equals that do
# not import each other; a folder stands for all that is in it. Modules not listed have no fixed place, but
# no module may import itself through others.
LAYERS = [
    ["version", "errors", "arrays", "progress"],
    ["mistakes", "storage", "chain", "losses"],
    ["contract"],
    ["encoding"],
    ["sources"],
    ["shift"],
    ["tally", "totals"],
    ["stream"],
    ["craft", "cells"],
    ["policy"],
    ["part"],
    ["blocks"],
    ["learners"],
    ["model"],
    ["learn"],
    ["estimator"],
    ["report"],
    ["review"],
    ["net"],
    ["study"],
    ["cli"],
]
LEVEL = {module: at for at, layer in enumerate(LAYERS) for module in layer}
ENGINES = {"duckdb", "pyspark", "polars", "pandas", "psycopg", "adbc_driver_manager", "adbc_driver_postgresql"}
ROWS = {"sources", "shift", "totals", "stream", "craft"}
SEALED_OFF = {"net", "learners"}


class WithoutTypes(ast.NodeTransformer):
    """Takes out what stands under ``if TYPE_CHECKING``: it is never run."""

    def visit_If(self, node: ast.If) -> ast.AST:
        return ast.Pass() if ast.unparse(node.test).endswith("TYPE_CHECKING") else self.generic_visit(node)


WITHOUT_TYPES = WithoutTypes()


def name_of(path: Path) -> str:
    """``a.b`` for ``radocraft/a/b.py``, ``a`` for ``radocraft/a/__init__.py``, nothing for the package itself."""
    steps = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(steps[:-1] if steps[-1] == "__init__" else steps)


TREES = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
PATHS = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
MODULES = sorted(name for name in TREES if name)


def top(name: str) -> str:
    """The line of the layout that a module belongs to."""
    return name.split(".", maxsplit=1)[0]


@cache
def imported(name: str) -> set[str]:
    """Full names of the modules a module imports, wherever in its text; for types alone does not count."""
    found = set()
    here = ["radocraft", *name.split(".")]
    package = here if PATHS[name].name == "__init__.py" else here[:-1]
    for node in ast.walk(WITHOUT_TYPES.visit(TREES[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            members = {f"{origin}.{alias.name}" for alias in node.names}
            found |= {member if member.removeprefix("radocraft.") in TREES else origin for member in members}
    return found


@cache
def own(name: str) -> set[str]:
    """Modules of ours that a module imports."""
    full = {found.removeprefix("radocraft").removeprefix(".") for found in imported(name) if top(found) == "radocraft"}
    return {module for module in full if module in TREES} - {name}


def reach(name: str) -> set[str]:
    """Modules of ours that a module imports, directly or through others."""
    seen, todo = set(), [name]
    while todo:
        for module in own(todo.pop()) - seen:
            seen.add(module)
            todo.append(module)
    return seen


def test_the_tests_see_the_source():
    assert {"contract", "craft", "sources", "sources.embedded", "learners.matching", "blocks"} <= {*MODULES}
    assert {"contract", "errors"} <= own("craft")
    assert {"part", "cells", "tally", "contract"} <= reach("learners.matching")
    assert "sources.base" in reach("craft")
    assert "duckdb" in imported("sources.embedded")


@pytest.mark.parametrize("name", [name for name in MODULES if top(name) in SEALED_OFF])
def test_code_that_learns_or_talks_to_others_cannot_reach_rows(name):
    assert not {module for module in reach(name) if top(module) in ROWS}


@pytest.mark.parametrize("name", MODULES)
def test_engines_are_imported_in_sources_alone(name):
    """But for the benchmark, whose yardstick is the bare engine."""
    engines = {found.split(".")[0] for found in imported(name)} & ENGINES
    assert not engines or top(name) == "sources" or name == "bench.scan"


@pytest.mark.parametrize("name", MODULES)
def test_only_the_gate_makes_a_release(name):
    makers = [
        node.lineno
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Release"
    ]
    assert not makers or top(name) == "policy"


def test_a_part_is_sealed_from_a_release_alone():
    """`Part(...)` and `replace(part, ...)` are called inside its own module only."""
    callers = {
        name
        for name in MODULES
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Part"
    }
    assert callers <= {"part"}


@pytest.mark.parametrize("name", [name for name in MODULES if top(name) in LEVEL])
def test_imports_only_go_upwards(name):
    others = [module for module in own(name) if top(module) != top(name)]
    assert not [module for module in others if LEVEL.get(top(module), -1) >= LEVEL[top(name)]]


def test_no_two_modules_import_each_other():
    assert not [name for name in MODULES if name in reach(name)]


@pytest.mark.parametrize("name", ["", *MODULES])
def test_modules_are_short(name):
    assert len(PATHS[name].read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_there_is_no_drawer_for_things_without_a_place():
    drawers = {"utils", "util", "misc", "common", "helpers", "helper", "manager", "tools"}
    assert not [name for name in MODULES if drawers & {*name.split(".")}]
