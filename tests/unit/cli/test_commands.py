"""The list of commands says what each command says of itself, and loads none of them."""

import subprocess
import sys

import pytest

from radocraft.cli._commands import COMMANDS, load


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_in_the_list_is_the_first_of_the_commands_help(name):
    told = load(name).help
    assert told.strip().splitlines()[0] == COMMANDS[name].summary


def test_the_list_loads_no_engine_no_sql_and_no_numbers():
    heavy = {"duckdb", "sqlglot", "numpy", "pydantic", "sklearn", "pyarrow"}
    script = (
        "import sys\nfrom radocraft.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print(sorted({heavy!r} & {{*sys.modules}}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "learn" in done.stdout
    assert done.stderr.strip() == "[]"


def test_importing_the_library_loads_no_engine_and_no_sql():
    script = "import sys, radocraft; print(sorted({'duckdb', 'sqlglot', 'pyspark'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
