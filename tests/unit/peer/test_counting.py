"""Counts of scores: of a peer's own rows, and with noise before they leave."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

import radocraft as rc
from radocraft.errors import FileError, LearnError, PolicyRefusal
from radocraft.gate import Noise
from radocraft.ledger import Ledger
from radocraft.parts import BINS, Histograms
from radocraft.peer._counting import Counts, count_scores

CONTRACT = rc.Contract.parse("""
name = "counted"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
""")
ROWS = 3000


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, ROWS), rng.integers(0, 2, ROWS)
    u, v = rng.normal(size=(2, ROWS)) + y
    who = np.arange(ROWS) // 3
    return pa.table({"y": y, "s": np.array(["a", "b"])[s], "u": u, "v": v, "who": who})


@pytest.fixture(scope="module")
def model() -> rc.Model:
    return rc.learn([noisy_part(table(), CONTRACT, peer, rc.Policy.exact(10)) for peer in CONTRACT.peers], CONTRACT)


def count(model: rc.Model, peer: str, policy: rc.Policy) -> Counts:
    return count_scores(rc.open_source(table()), model, peer, policy)


@pytest.mark.parametrize("peer", ["one", "two"])
def test_every_row_is_counted_once_under_its_label(model, peer):
    positive = int(np.sum(table()["y"].to_numpy() == 1))
    assert count(model, peer, rc.Policy()).rows.sum(axis=1).tolist() == [ROWS - positive, positive]


@pytest.mark.parametrize("most", [1, 2])
def test_so_many_rows_of_a_person_are_counted(model, most):
    policy = rc.Policy(unit="person", person="who", rows_per_person=most)
    assert count(model, "one", policy).rows.sum() == most * ROWS // 3


def test_noise_in_the_counts_is_of_the_size_and_the_cost_that_stand_beside_them(model):
    """A row is in one bin, so a count's noise of deviation s costs 1 / (2 s^2)."""
    counts = count(model, "one", rc.Policy(epsilon=1.0))
    drawn = [counts.released(model, "one", rc.Policy(epsilon=1.0), Noise.seeded(at)) for at in range(40)]
    (sd,) = {one.noise for one in drawn}
    added = np.array([np.array([one.negative, one.positive]) - counts.rows for one in drawn])
    assert added.std() == pytest.approx(sd, rel=4 / (2 * added.size) ** 0.5)
    assert abs(added.mean()) < 4 * sd / added.size**0.5
    assert drawn[0].rho == pytest.approx(0.5 / sd**2)
    assert counts.released(model, "one", rc.Policy.exact()).noise == 0.0


@pytest.mark.parametrize("false", [1e-3, 1e-9])
def test_a_model_that_asks_for_bins_too_fine_sees_noise(model, false):
    """Effects far smaller than they are give edges that tell the scores of single rows, were they exact."""
    hostile = model.model_copy(update={"effects": {name: false * value for name, value in model.effects.items()}})
    released = rc.share_counts(table(), hostile, "one")
    assert released.noise >= 0.5 * (0.9 * ROWS / (2 * BINS)) ** 0.5


def test_counts_of_an_unchanged_table_are_given_again_and_spend_nothing(model, tmp_path):
    policy = rc.Policy(ledger=str(tmp_path / "ledger"), table="customers")
    first, again = (rc.share_counts(table(), model, "one", policy=policy, output=tmp_path / name) for name in "ab")
    assert first == again
    (line,) = Ledger(tmp_path / "ledger").lines()
    assert (line.entry.kind, line.entry.what, line.entry.file) == ("release", "scores", first.hash)
    assert line.entry.rho == first.rho > 0


def test_who_may_count_and_what(model, tmp_path):
    with pytest.raises(LearnError, match="not learned from 'three'"):
        rc.share_counts(table(), model, "three")
    with pytest.raises(PolicyRefusal, match="does not allow the contract 'counted'"):
        rc.share_counts(table(), model, "one", policy=rc.Policy(contracts=("0" * 64,)))
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(FileError, match="radocraft count"):
        Histograms.load(tmp_path / "broken.json")
