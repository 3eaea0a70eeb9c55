"""radocraft count and radocraft recalibrate, by files."""

import json
from pathlib import Path

import pyarrow.parquet as pq
from tests.unit.noisy import noisy_part
from typer.testing import CliRunner

import radocraft as rc
from radocraft.cli import app


def test_counts_go_from_file_to_file(tmp_path: Path) -> None:
    contract, tables = rc.example_peers(rows=2000)
    model, paths = rc.learn([noisy_part(tables[peer], contract, peer) for peer in tables], contract), []
    model.save(tmp_path / "model.json")
    for peer, table in tables.items():
        pq.write_table(table, tmp_path / f"{peer}.parquet")
        paths.append(str(tmp_path / f"{peer}.json"))
        command = ["count", str(tmp_path / "model.json"), str(tmp_path / f"{peer}.parquet"), "--peer", peer]
        done = CliRunner().invoke(app, [*command, "-o", paths[-1]])
        assert done.exit_code == 0, done.output
        assert "rows counted in 128 bins" in " ".join(done.output.split())
    judged = tmp_path / "judged.json"
    given = ["recalibrate", str(tmp_path / "model.json"), *paths, "-o", str(judged)]
    done = CliRunner().invoke(app, [*given, "--json"])
    assert done.exit_code == 0, done.output
    kept = rc.Model.load(judged)
    assert kept.second_round is not None
    assert json.loads(done.output)["error"] == kept.second_round.error
    shown = CliRunner().invoke(app, ["explain", str(judged)]).output
    assert kept.expectation in " ".join(shown.split())
