"""Crafting beside bare scans of the same table."""

import json
import sys
from pathlib import Path

import craft
import pytest
from craft import CODES, contract_of, write_table
from tables import records

from radocraft import rows


@pytest.mark.parametrize("options", [["--json"], []])
def test_scan_and_craft_read_the_same_table(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["craft.py", "3000x4x500", "--codec", "zstd", "--repeats", "1", *options])
    craft.main()
    printed = capsys.readouterr().out
    if not options:
        (table,) = records(printed)
        assert [row["work"] for row in table["rows"]][1:] == ["DuckDB's GROUP BY", "block sums", "sums and moments"]
        return
    (found,) = json.loads(printed)
    assert found["scan"]["finished"]
    assert found["grouped"]["result"] == found["sums"]["result"] == found["whole"]["result"][0] <= 512
    assert {"DuckDB", "DuckDB, our settings"} <= set(found["engines"])
    assert min(found["sums_ratio"], found["whole_ratio"]) > 0


def test_the_generated_table_has_the_blocks_it_promises(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", 20_000, 2, CODES[500])
    assert len(rows.craft(tmp_path / "t.parquet", contract_of(2, CODES[500]), "bank").rows) == 512
