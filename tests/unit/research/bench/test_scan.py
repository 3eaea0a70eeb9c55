"""Crafting beside bare scans of the same table."""

import json
from pathlib import Path

from typer.testing import CliRunner

from radocraft.cli._bench import app
from radocraft.research.bench._scan import CODES, contract_of, write_table
from radocraft.rows import craft


def test_scan_and_craft_read_the_same_table() -> None:
    options = ["craft", "--rows", "3000", "--width", "4", "--repeats", "1", "--json"]
    printed = CliRunner().invoke(app, options)
    assert printed.exit_code == 0, printed.output
    found = json.loads(printed.output)
    assert found["scan"]["finished"]
    assert found["grouped"]["result"] == found["sums"]["result"] == found["whole"]["result"][0] <= 512
    assert {"DuckDB", "DuckDB, our settings"} <= set(found["engines"])
    assert min(found["sums_ratio"], found["whole_ratio"]) > 0


def test_the_generated_table_has_the_blocks_it_promises(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", 20_000, 2, CODES[500])
    assert len(craft(tmp_path / "t.parquet", contract_of(2, CODES[500]), "bank").rows) == 512
