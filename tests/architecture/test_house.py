"""The rules of the house, read off the syntax tree of the source.

Rooms stand in the order in which the data walks, and a room imports only rooms above
it, by what their ``__all__`` offers. An import for types alone counts like any other.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "radocraft"
LONGEST = 400
MOST_NAMES, MOST_PUBLIC = 20, 250

# Tools with one meaning each, then the rooms, top to bottom. The gate stands above `rows`, since units of columns
# that are left to the data are estimated with its noise; the model above `peer`, which counts its scores.
LAYERS = [
    *("errors", "arrays", "files", "progress"),
    *("contract", "sums", "gate", "rows", "ledger", "parts", "model", "peer", "learning", "pages", "net"),
    *("demo", "research", "cli"),
]
LEVEL = {name: at for at, name in enumerate(LAYERS)}
ROOMS = LAYERS[4:]
SHELL = {"__init__", "__main__"}
ENGINES = {"duckdb", "pyspark", "polars", "pandas", "psycopg", "adbc_driver_manager", "adbc_driver_postgresql"}
SQL = {"sqlglot"}
SEES_PEOPLE = {"learning._linked_rows"}  # the few rows whose people agreed
BORDERS = {  # where a file's content is not yet, or no more, a value of ours
    *("contract._contract", "contract._disagreements", "contract._keys", "contract._features", "contract._mistakes"),
    *(
        "gate._policy",
        "parts._audit",
        "parts._check",
        "parts._footer",
        "parts._metadata",
        "parts._part",
        "parts._scores",
    ),
    *(
        "cli._identity",
        "cli._review",
        "cli._scorer",
        "cli._study",
        "contract._labels",
        "demo._example",
        "ledger._chain",
    ),
    *("model._output", "model._scores", "net._audit", "net._members", "net._messages", "pages._review"),
    *("research.study._cell", "research.study._compare", "research.study._fedsim", "research.study._figures"),
    "rows._archive",
    *("research.study._methods", "research.study._results", "rows._estimators", "rows._features", "rows._scorer"),
    *("rows._scorer_file", "rows.engines._embedded", "sums._bounds", "sums._pieces", "sums._tally"),
}


def name_of(path: Path) -> str:
    """``a.b`` for ``radocraft/a/b.py``, ``a`` for ``radocraft/a/__init__.py``, nothing for the package itself."""
    steps = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(steps[:-1] if steps[-1] == "__init__" else steps)


PATHS = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}
MODULES = [name for name in TREES if name]


def room_of(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


class WithoutTypes(ast.NodeTransformer):
    """Takes out what stands under ``if TYPE_CHECKING``: it is never run."""

    def visit_If(self, node: ast.If) -> ast.AST:
        return ast.Pass() if ast.unparse(node.test).endswith("TYPE_CHECKING") else self.generic_visit(node)


@cache
def run(name: str) -> set[str]:
    """Modules of ours that a module imports when it runs."""
    tree = WithoutTypes().visit(ast.parse(PATHS[name].read_text(encoding="utf-8")))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("radocraft"):
            module = (node.module or "").removeprefix("radocraft").removeprefix(".")
            inner = {f"{module}.{alias.name}".removeprefix(".") for alias in node.names}
            found |= {other if other in TREES else module for other in inner}
    return {other for other in found if other in TREES} - {name, ""}


@cache
def imported(name: str) -> list[tuple[str, str]]:
    """(module, name) of every import, wherever in the text."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: imports are absolute"
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


@cache
def own(name: str) -> list[tuple[str, str]]:
    """The same of our own modules, without the package's name."""
    ours = [(module, what) for module, what in imported(name) if module.split(".")[0] == "radocraft"]
    return [(module.removeprefix("radocraft").removeprefix("."), what) for module, what in ours]


@cache
def offered(room: str) -> frozenset[str]:
    """What a room's ``__all__`` says."""
    for node in TREES[room].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def definitions(name: str) -> list[str]:
    """Names of a module's own functions and classes that do not begin with an underscore."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in TREES[name].body if isinstance(node, kinds) and not node.name.startswith("_")]


def test_every_top_level_name_has_its_place():
    names = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert names == {*LAYERS, *SHELL}
    assert len(names) <= MOST_NAMES


@pytest.mark.parametrize("name", MODULES)
def test_a_room_imports_only_rooms_above_it(name):
    if name in SHELL:
        return
    others = {room_of(module) for module, _ in own(name) if module} - {room_of(name)}
    assert not [other for other in others if LEVEL[other] > LEVEL[room_of(name)]]


@pytest.mark.parametrize("name", MODULES)
def test_other_rooms_are_imported_by_what_they_offer(name):
    for module, what in own(name):
        room = room_of(module)
        if room in ROOMS and room != room_of(name) and name not in SHELL:
            assert room in (module, "cli"), f"{name} reaches into {module}"
            assert what in offered(room), f"{name} takes '{what}', which {room} does not offer"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_offers_what_is_there(room):
    assert len((ast.get_docstring(TREES[room]) or "").split(".")) > 2
    assert offered(room)
    named = {alias for module, alias in imported(room) if module.startswith("radocraft")}
    assigned = {ast.unparse(node.targets[0]) for node in TREES[room].body if isinstance(node, ast.Assign)}
    assert offered(room) <= named | assigned | {*definitions(room)}


def test_no_module_is_in_a_circle():
    edges = {name: run(name) for name in MODULES}
    for name in MODULES:
        seen, todo = set(), [*edges[name]]
        while todo:
            step = todo.pop()
            if step not in seen:
                seen.add(step)
                todo += [*edges[step]]
        assert name not in seen, f"{name} imports itself through others"


@pytest.mark.parametrize("name", MODULES)
def test_engines_and_sql_are_in_rows_alone(name):
    heads = {module.split(".")[0] for module, _ in imported(name)}
    assert room_of(name) == "rows" or not heads & (ENGINES | SQL)


@pytest.mark.parametrize("name", MODULES)
def test_who_learns_talks_or_draws_sees_no_rows(name):
    if room_of(name) in {"learning", "net", "pages", "contract", "sums", "gate", "parts", "ledger"}:
        assert name in SEES_PEOPLE or not [module for module, _ in own(name) if room_of(module) == "rows"]


def callers(what: str) -> set[str]:
    """Rooms where this is called."""
    return {
        room_of(name)
        for name in MODULES
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Call) and ast.unparse(node.func) == what
    }


def test_only_the_gate_makes_a_release_and_only_the_peer_a_part_of_it():
    assert callers("Release") == {"gate"}
    assert callers("Part") <= {"parts"}
    assert callers("Part.of") <= {"peer"}


def test_no_public_class_is_there_twice():
    classes = Counter(
        node.name
        for name in MODULES
        for node in TREES[name].body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in classes.items() if count > 1]


def test_public_definitions_are_few():
    """Public are the functions and classes of tools, and those that rooms offer; their own modules are private."""
    for name in MODULES:
        assert (
            room_of(name) not in ROOMS
            or name == room_of(name)
            or name.split(".")[-1].startswith("_")
            or (PATHS[name].name == "__init__.py" and not definitions(name))
        )
    defined = {what for name in MODULES for what in definitions(name)}
    public = sum(len(definitions(name)) for name in LAYERS[:4]) + sum(len(offered(r) & defined) for r in ROOMS)
    assert public <= MOST_PUBLIC


@pytest.mark.parametrize("name", MODULES)
def test_no_module_has_the_name_of_a_public_function(name):
    leaf = name.split(".")[-1]
    assert room_of(name) == "cli" or leaf not in {what for room in ROOMS for what in offered(room)} - {"demo"}


@pytest.mark.parametrize("name", ["", *MODULES])
def test_modules_are_short(name):
    assert len(PATHS[name].read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("name", MODULES)
def test_bare_dictionaries_are_at_borders_alone(name):
    bare = "dict[str, Any]" in PATHS[name].read_text(encoding="utf-8")
    assert not bare or name in BORDERS


def test_there_is_no_drawer_for_things_without_a_place():
    drawers = {"utils", "util", "misc", "common", "helpers", "helper", "manager", "tools"}
    assert not [name for name in MODULES if drawers & {step.strip("_") for step in name.split(".")}]


def test_unit_tests_stand_in_the_same_rooms_under_the_same_names():
    unit = ROOT / "tests" / "unit"
    for path in sorted(unit.rglob("test_*.py")):
        room = path.parent.relative_to(unit)
        stem = path.stem.removeprefix("test_")
        folder = SOURCE / room if room != Path() else SOURCE
        names = {module.stem.lstrip("_") for module in folder.glob("*.py")}
        assert stem in names, f"{path.relative_to(ROOT)} tests no module of {room}"
