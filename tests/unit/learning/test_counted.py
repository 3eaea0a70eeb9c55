"""The relation of the peers' contributions, measured by groups of a key in the second round."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import radocraft as rc
from radocraft import Contract, Model, Policy
from radocraft.errors import LearnError
from radocraft.gate import epsilon_of
from radocraft.learning._counted import by_label, correlate_counts
from radocraft.parts import Histograms

KEYED = Contract.parse("""
name = "keyed"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
[[key]]
name = "born"
last_digits = 3
""")
ROWS = 12_000


def people(relation: float, seed: int, *, telling: bool = False) -> pa.Table:
    """Two columns with this correlation inside label and signature, and a key that tells of the first, or nothing."""
    rng = np.random.default_rng([seed, round(100 * relation) + 100])
    label, code = (rng.random(ROWS) < 0.3).astype(int), rng.integers(0, 2, ROWS)
    rest = rng.multivariate_normal([0.0, 0.0], [[1.0, relation], [relation, 1.0]], ROWS)
    u, v = (rest + 0.7 * label[:, None] + 0.3 * code[:, None]).T
    born = np.clip(100 * rest[:, 0] + 500, 0, 999).astype(int) if telling else rng.integers(0, 1000, ROWS)
    return pa.table({"y": label, "s": np.array(["a", "b"])[code], "u": u, "v": v, "born": born})


@cache
def counted(relation: float, seed: int, noise: float = 0.5, *, telling: bool = False) -> tuple[Model, list[Histograms]]:
    whole = people(relation, seed, telling=telling)
    order = np.random.default_rng(seed).permutation(ROWS)
    tables = {"one": whole.select(["y", "s", "u", "born"]), "two": whole.select(["y", "s", "v", "born"]).take(order)}
    policy = Policy(noise=noise) if noise else Policy.exact()
    model = rc.learn([rc.share(tables[peer], KEYED, peer, policy=policy) for peer in tables], KEYED)
    return model, [rc.share_counts(tables[peer], model, peer, policy=policy) for peer in tables]


def test_the_relation_is_within_its_standard_error_in_most_draws() -> None:
    """With the noise of the gate; the prior pulls a little, which is within the error."""
    cells = [(relation, seed) for relation in (-0.3, 0.0, 0.3, 0.6) for seed in range(3)]
    found = [correlate_counts(*counted(*cell)) for cell in cells]
    z = np.array([(one.mean[0, 1] - cell[0]) / one.error[0, 1] for one, cell in zip(found, cells, strict=True)])
    assert all(one.measured and one.error[0, 1] < 0.12 for one in found)
    assert np.mean(np.abs(z) < 2) >= 0.75
    assert np.abs(z.mean()) < 4 / len(z) ** 0.5


def test_the_headline_is_at_the_measured_relation_and_surer_than_without_a_key() -> None:
    model, counts = counted(0.3, 0)
    with_key = rc.recalibrate(model, counts).second_round
    bare = [one.model_copy(update={"negative_groups": (), "positive_groups": ()}) for one in counts]
    without = rc.recalibrate(model, bare).second_round
    for name in ("error", "auc", "log_loss"):
        assert with_key.intervals[name].parts["relation"] < 0.5 * without.intervals[name].parts["relation"]
        assert without.intervals[name].low - 0.01 <= with_key.intervals[name].value
        assert with_key.intervals[name].value <= without.intervals[name].high + 0.01
    assert "measured" in with_key.assumption
    assert with_key.outlooks == ()


def test_a_key_that_tells_something_is_refused() -> None:
    with pytest.raises(LearnError, match="'born' is not neutral: sums of 'one'"):
        rc.recalibrate(*counted(0.3, 0, telling=True))


def test_groups_are_those_of_the_model_and_hold_about_twenty_rows_or_more() -> None:
    model, counts = counted(0.3, 0)
    for one in counts:
        found = by_label(model, one)
        assert {label: len(sums.sums) for label, sums in found.items()} == {-1: 256, 1: 128}
        for sums in found.values():
            assert sums.rows.min() >= 20
            assert abs(sums.sums.sum()) < 1e-6
            assert 0.6 < sums.deviation < 1.1


def test_a_row_moves_the_sums_by_its_clip_and_the_cost_counts_it() -> None:
    """Without noise: taking one person far out of the ordinary away moves one group, by 1.5 at most."""
    model, _ = counted(0.3, 0, 0.0)
    whole = people(0.3, 0).select(["y", "s", "u", "born"])
    odd = whole.set_column(2, "u", pa.array(np.where(np.arange(ROWS) == 7, 1e6, whole["u"].to_numpy())))
    full, less = (
        rc.share_counts(table, model, "one", policy=Policy.exact())
        for table in (odd, odd.take(np.delete(np.arange(ROWS), 7)))
    )
    moved = [
        np.abs(np.subtract(getattr(full, name), getattr(less, name))) for name in ("negative_groups", "positive_groups")
    ]
    assert sorted(np.concatenate(moved))[-2:] == pytest.approx([0.0, 1.5])
    noisy = rc.share_counts(whole, model, "one")
    assert min(noisy.group_noise) >= 0.5 * 20**0.5
    of_groups = 0.5 * (1.5 / min(noisy.group_noise)) ** 2
    assert noisy.rho >= of_groups + 0.5 / noisy.noise**2


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_with_an_epsilon_counts_and_groups_share_it(epsilon: float) -> None:
    model, _ = counted(0.3, 0)
    whole = people(0.3, 0).select(["y", "s", "u", "born"])
    policy = Policy(epsilon=epsilon)
    found = rc.share_counts(whole, model, "one", policy=policy)
    assert found.spend.rho == pytest.approx(0.5 / found.noise**2 + 0.5 * (1.5 / min(found.group_noise)) ** 2)
    assert epsilon_of(found.spend.rho, policy.delta) == pytest.approx(epsilon, rel=1e-6)
