"""Rows in bounded integers, budgets, and releases under differential privacy."""

import re

import numpy as np
import pyarrow as pa
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from radocraft.offer import let_go
from radocraft.policy import private
from radocraft.policy.rules import Privacy
from radocraft.privacy.bounded import Bounded, craft_bounded
from radocraft.privacy.noise import release_private
from typer.testing import CliRunner

from radocraft import Contract, Part, Policy, example_peers, explain, learn, report
from radocraft.cli import app
from radocraft.errors import PolicyRefusal
from radocraft.gate._account import epsilon_of, rho_of
from radocraft.ledger._ledger import Ledger
from radocraft.rows._craft import bounded
from radocraft.sums._cells import ROLLED

TEXT = """
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["north", "south"] }, { name = "age", edges = [40] }]

[peers.bank.features]
income = { kind = "numeric", centre = 10, scale = 2 }
member = "boolean"
"""
CONTRACT = Contract.parse(TEXT)
anything = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True, width=64)


@given(
    values=arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=anything),
    norm=st.floats(1e-6, 1e6),
    grid=st.sampled_from([1, 2, 3, 2**10, 2**20]),
)
def test_no_row_is_longer_than_the_grid_whatever_is_in_it(values, norm, grid):
    units = bounded(values, norm, grid)
    assert all(sum(int(entry) ** 2 for entry in row) <= grid**2 for row in units)
    assert (units[np.isnan(values)] == 0).all()


def test_short_rows_keep_their_values():
    values = np.random.default_rng(0).uniform(-0.4, 0.4, size=(50, 4))
    np.testing.assert_allclose(bounded(values, 1.0, 2**20) / 2**20, values, atol=2.0**-19)


def table(rows: int = 600, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "bad": np.arange(rows) % 2,
        "region": np.where(np.arange(rows) // 2 % 2, "north", "south"),
        "age": np.where(np.arange(rows) // 4 % 2, 30, 50),
        "income": rng.normal(10, 2, rows),
        "member": rng.random(rows) < 0.5,
        "who": np.arange(rows) // 3,
    }


def policy(tmp_path, **rules) -> Policy:
    return Policy(
        mode="differential-privacy", ledger=str(tmp_path / "ledger"), table="t", privacy={"epsilon": 2.0, **rules}
    )


def test_sums_are_exact_and_add_up():
    columns = table()
    columns["income"][:5] = np.nan
    whole = craft_bounded(pa.table(columns), CONTRACT, "bank", Privacy())
    halves = [
        craft_bounded(pa.table({name: values[pick] for name, values in columns.items()}), CONTRACT, "bank", Privacy())
        for pick in (slice(0, 250), slice(250, None))
    ]
    both = halves[0] + halves[1]
    for name in ("codes", "labels", "rows", "sums", "moments"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(both, name))
    raw = np.column_stack([(columns["income"] - 10) / 2, np.where(columns["member"], 1, -1)])
    units = bounded(raw, 3.0, 2**20)
    np.testing.assert_array_equal(whole.sums.sum(axis=0), units.sum(axis=0))


def test_a_person_counts_at_most_so_many_rows():
    columns = table()
    for most in (1, 2, 3, 5):
        rules = Privacy(unit="person", person="who", rows_per_person=most)
        total = craft_bounded(pa.table(columns), CONTRACT, "bank", rules).rows.sum()
        assert total == 200 * min(most, 3)
    with pytest.raises(PolicyRefusal, match="person column"):
        craft_bounded(pa.table(columns), CONTRACT, "bank", Privacy(unit="person", person="nobody"))
    one, four = (private.Spend(Privacy(unit="person", person="who", rows_per_person=most)) for most in (1, 4))
    assert four.count_noise == pytest.approx(4 * one.count_noise)


def test_neighbouring_tables_give_the_same_shape(tmp_path):
    columns = table()
    shapes = []
    for pick in (slice(None), slice(1, None), slice(0, 1)):
        some = {name: values[pick] for name, values in columns.items()}
        exact = craft_bounded(pa.table(some), CONTRACT, "bank", Privacy())
        keys, rows, values = private.noisy_blocks(exact, CONTRACT, Privacy(), private.Spend(Privacy()))
        shapes.append((keys.tolist(), rows.shape, values.shape))
    assert shapes[0] == shapes[1] == shapes[2]
    assert len(shapes[0][0]) == 4 * 3 * 2


def test_the_threshold_hides_what_one_row_filled():
    exact = craft_bounded(pa.table(table(401)), CONTRACT, "bank", Privacy())
    lone = Bounded(
        "bank",
        exact.columns,
        codes=np.vstack([exact.codes, [[3, 2]]]),
        labels=np.append(exact.labels, 1),
        rows=np.append(exact.rows, 1),
        sums=np.vstack([exact.sums, [[5, 5]]]),
        moments=exact.moments,
    )
    rules = Privacy(epsilon=4.0, signatures="threshold")
    for _ in range(20):
        keys, _, _ = private.noisy_blocks(lone, CONTRACT, rules, private.Spend(rules))
        assert [3, 2, 1] not in keys.tolist()
        assert len(keys) == 8


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_budgets_agree_with_another_accountant(epsilon):
    """dp-accounting, for the Gaussian mechanism of the same rho: its tight answer is below ours, and not far."""
    rho = rho_of(epsilon, 1e-6)
    assert epsilon_of(rho, 1e-6) <= epsilon
    sigma = (1 / (2 * rho)) ** 0.5
    tight, loose = pld_privacy_accountant.PLDAccountant(), rdp_privacy_accountant.RdpAccountant()
    for accountant in (tight, loose):
        accountant.compose(dp_event.GaussianDpEvent(sigma))
    assert 0.75 * epsilon < tight.get_epsilon(1e-6) <= epsilon
    assert loose.get_epsilon(1e-6) <= 1.02 * epsilon


def test_noise_has_the_size_it_says():
    spend = private.Spend(Privacy(epsilon=1.0))
    zeros = np.zeros(4000, dtype=np.int64)
    noisy = private.add_noise(zeros, spend.sums_sensitivity, spend.sums_rho) / private.COUNT
    assert noisy.std() == pytest.approx(spend.count_noise, rel=0.06)
    assert abs(noisy.mean()) < 4 * spend.count_noise / 4000**0.5


def test_centre_and_scale_may_not_come_from_the_data(tmp_path):
    free = Contract.parse(TEXT.replace('{ kind = "numeric", centre = 10, scale = 2 }', '"numeric"'))
    with pytest.raises(PolicyRefusal, match="income"):
        release_private(pa.table(table()), free, "bank", policy(tmp_path))


def test_too_few_rows_for_the_budget_are_refused(tmp_path):
    with pytest.raises(PolicyRefusal, match="drowns"):
        release_private(pa.table(table(20)), CONTRACT, "bank", policy(tmp_path, epsilon=0.1))


def test_a_private_release_is_sealed_learned_from_and_paid_for(tmp_path):
    contract, tables = example_peers(rows=20_000)
    spelled = contract.model_dump(mode="json")
    for held in spelled["peers"].values():
        for feature in held["features"].values():
            if feature["kind"] == "numeric":
                feature |= {"centre": 0.0, "scale": 10_000.0}
    fixed = Contract.model_validate(spelled)
    rules = policy(tmp_path, epsilon=4.0, lifetime_epsilon=8.0)
    parts = []
    for peer in tables:
        released = release_private(tables[peer], fixed, peer, rules)
        part = let_go(released, rules.model_copy(update={"table": peer}), peer, tmp_path / peer)
        parts.append(Part.read(tmp_path / peer))
        cells = parts[-1].cells(fixed)
        assert cells.noise == pytest.approx(part.metadata["noise"]["moments"])
        assert cells.rows.min() >= 10
        assert abs(cells.total - 20_000) < 500
    model = learn(parts, fixed)
    assert "differentially private per row: epsilon 4" in model.learned_from[0].guarantee
    said = model.privacy.sentence
    assert said.count("differentially private per row: epsilon 4 at delta 1e-06") == 2
    assert re.search(r"the noise costs about \d+\.\d points of error, [0-9.e-]+ of the loss\.$", said)
    assert 0 < model.privacy.loss < 1
    assert explain(model).privacy == said
    assert said in report(model)
    model.save(tmp_path / "model.json")
    assert said in CliRunner().invoke(app, ["explain", str(tmp_path / "model.json"), "--json"]).output
    again = rules.model_copy(update={"table": peer})
    while Ledger(rules.ledger).spent(peer) + released.noise["rho"] <= released.noise["lifetime_rho"]:
        let_go(released, again, peer, tmp_path / peer)
    with pytest.raises(PolicyRefusal, match="overspend"):
        let_go(released, again, peer, tmp_path / peer)


def test_labels_only_goes_with_noise_too(tmp_path):
    rules = policy(tmp_path).model_copy(update={"signatures": "labels-only"})
    released = release_private(pa.table(table(2000)), CONTRACT, "bank", rules)
    assert (released.cells.codes == ROLLED).all()
    assert len(released.cells.rows) == 2
