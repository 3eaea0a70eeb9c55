from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.research.study.data import needs_data

from radocraft.errors import StudyError
from radocraft.gate import Policy
from radocraft.research.study._fedsim import NOISE_OF_KEYS, PUBLISHED, Parties, read_frog

SPECIES = (0, 1, 5)


@needs_data
@pytest.mark.skipif(not (Path(os.environ.get("RADOCRAFT_DATA", "")) / "fedsim").is_dir(), reason="no FedSim tables")
def test_scores_of_two_parties_beat_the_columns_of_one() -> None:
    frog = read_frog("0.1")
    frog = frog.filter(pc.is_in(frog["y"], value_set=pa.array(SPECIES, frog["y"].type)))
    rows = np.random.default_rng(0).permutation(frog.num_rows)
    known, new = (frog.take(pa.array(part)) for part in np.split(rows[:1400], [900]))
    features = {"A": ("a0", "a1", "a2"), "B": ("b0", "b1", "b2")}
    parties = Parties.of(known, new, features, seed=0)
    assert parties.species == SPECIES
    commonest = pc.mode(new["y"])[0]["count"].as_py() / new.num_rows
    assert parties.accuracy("scores", Policy.exact(10)) > commonest + 0.15
    fitted = dict(parties.scorers)
    assert parties.accuracy("scores", Policy()) > commonest + 0.1
    assert parties.scorers == fitted, "a scorer is fitted once, whatever gate its scores pass"


def test_b_sees_its_own_keys_and_rows_in_an_order_of_its_own() -> None:
    keys = np.arange(8.0)
    table = pa.table({"y": [0, 1, 2, 0] * 2, "a0": keys, "b0": keys, "c0": keys, "c1": keys, "n0": -keys, "n1": keys})
    parties = Parties.of(table, table, {"A": ("a0",), "B": ("b0",)}, seed=1)
    seen = {peer: held.sort_by(f"{peer.lower()}0") for peer, held in parties.tables.items()}
    codes = {peer: sorted([held["key0"].to_pylist(), held["key1"].to_pylist()]) for peer, held in seen.items()}
    up = [0, 0, 1, 1, 2, 2, 3, 3]
    assert codes["A"] == [up, up]
    assert codes["B"] == [[0] * 8, up]
    assert parties.tables["B"]["b0"].to_pylist() != keys.tolist()


def test_the_published_table_has_every_level_and_its_absence_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {len(row) for row in PUBLISHED.values()} == {len(NOISE_OF_KEYS)}
    monkeypatch.setenv("RADOCRAFT_DATA", "nowhere")
    with pytest.raises(StudyError, match="FedSim's public recipe"):
        read_frog("0.1")
