"""What is loaded, and when: nothing heavy before it is needed."""

import json
import subprocess
import sys

import pytest

ENGINES = {"duckdb", "sqlglot", "pyspark", "polars", "pandas", "adbc_driver_postgresql"}
HEAVY = {"sklearn", "scipy.stats", "scipy.signal", "matplotlib", "skops", "joblib"}

WATCH = "import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
HELP = """
import contextlib, io, sys
sys.argv = ["radocraft", *{words}]
from radocraft.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
"""


def loaded(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", WATCH.format(code=code)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_loads_no_engine_and_no_sql():
    assert not loaded("import radocraft as rc; dir(rc)") & (ENGINES | HEAVY | {"numpy", "pydantic", "pyarrow"})


def test_the_list_of_commands_loads_no_command():
    modules = loaded(HELP.format(words=["--help"]))
    assert not modules & (ENGINES | HEAVY | {"numpy", "pydantic", "pyarrow"})


@pytest.mark.parametrize("word", ["craft", "learn", "predict", "inspect", "contract", "report", "example", "demo"])
def test_a_command_loads_scikit_learn_and_the_like_when_it_runs(word):
    assert not loaded(HELP.format(words=[word, "--help"])) & HEAVY


def test_a_contract_is_read_without_engine_and_sql():
    assert not loaded("import radocraft as rc; rc.Contract, rc.Policy, rc.Part, rc.Tally, rc.release") & ENGINES
