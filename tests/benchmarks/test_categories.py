"""What is measured of many categories is the whole road."""

from pathlib import Path

from categories import WORKS, contract_of, write_table

from radocraft.contract import private_columns
from radocraft.model import Model


def test_every_kind_of_work_runs(tmp_path: Path) -> None:
    table = tmp_path / "rows.parquet"
    write_table(table, 3_000, 20)
    done = [work(table, 20, tmp_path) for work in WORKS.values()]
    assert done[0] == len(private_columns(contract_of(20), "bank")) == 24
    assert done[-1] == 3_000
    assert Model.load(tmp_path / "model.json").peers == ("bank", "shop")
