"""Dominance, mixed labels, rare categories, scope: rules beside the minimum number of rows."""

import numpy as np
import pyarrow as pa
import pytest
from radocraft.contributors import find_contributors
from radocraft.policy.limits import dominated
from radocraft.policy.rules import Dominance

from radocraft import Contract, Policy, craft, release
from radocraft.errors import PolicyRefusal
from radocraft.sums._cells import ROLLED

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "region", categories = ["north", "south"] }, { name = "age", edges = [40] }]

[peers.bank.features]
income = { kind = "numeric", centre = 0, scale = 1 }
job = { kind = "categorical", categories = ["clerk", "farmer", "pilot"] }
member = "boolean"
""")


def table(rows: int = 400, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "bad": np.arange(rows) % 2,
        "region": np.where(np.arange(rows) // 2 % 2, "north", "south"),
        "age": np.where(np.arange(rows) // 4 % 2, 30, 50),
        "income": rng.uniform(1, 2, rows),
        "job": rng.choice(["clerk", "farmer"], rows).astype(object),
        "member": rng.random(rows) < 0.5,
    }


def gate(columns: dict[str, np.ndarray], policy: Policy):
    rows = pa.table(columns)
    tally = craft(rows, CONTRACT, "bank")
    return release(tally, CONTRACT, policy, find_contributors(rows, CONTRACT, "bank", tally, policy))


@pytest.mark.parametrize(
    ("rule", "value"), [({"share": 0.4}, 60.0), ({"largest": 3, "share": 0.45}, 60.0), ({"percent": 50}, 200.0)]
)
def test_a_dominated_cell_is_rolled_up(rule, value):
    columns = table()
    assert not (gate(columns, Policy(dominance=rule)).cells.codes == ROLLED).any()
    columns["income"][0] = 1000.0
    where = (columns["bad"] == 0) & (columns["region"] == "south") & (columns["age"] == 50)
    assert where[0]
    with pytest.raises(PolicyRefusal, match="dominated by a few rows"):
        gate(columns, Policy(dominance=rule))
    columns["income"][0] = value
    released = gate(columns, Policy(dominance=rule))
    cells = released.cells
    assert released.blocks_rolled_up >= 1
    for codes, label in zip(cells.codes, cells.labels, strict=True):
        assert tuple(codes) != (1, 1) or label != -1


def test_the_two_rules_by_hand():
    absolute, largest = np.array([[100.0], [100.0]]), np.array([[[80.0, 15.0]], [[30.0, 30.0]]])
    assert dominated(absolute, largest, Dominance(share=0.75)).ravel().tolist() == [True, False]
    assert dominated(absolute, largest, Dominance(largest=2, share=0.9)).ravel().tolist() == [True, False]
    assert dominated(absolute, largest, Dominance(percent=10)).ravel().tolist() == [True, False]  # 5 < 8, 40 > 3


def test_dominance_needs_the_contributors():
    tally = craft(pa.table(table()), CONTRACT, "bank")
    with pytest.raises(PolicyRefusal, match="largest contributors"):
        release(tally, CONTRACT, Policy(dominance={"share": 0.5}))


def test_a_signature_of_one_label_is_rolled_up_if_asked():
    columns = table()
    columns["bad"][(columns["region"] == "south") & (columns["age"] == 50)] = 1
    assert not (gate(columns, Policy()).cells.codes == ROLLED).any()
    cells = gate(columns, Policy(mixed_labels=True)).cells
    shown = {tuple(codes) for codes in cells.codes.tolist()}
    assert (1, 1) not in shown
    assert (0, 0) in shown


def test_rare_categories_and_truth_values_are_merged():
    columns = table()
    columns["job"][:4] = "pilot"
    columns["member"][:] = True
    columns["member"][:3] = False
    released = gate(columns, Policy())
    names = released.cells.columns
    sums = dict(zip(names, released.cells.sums.sum(axis=0), strict=True))
    assert sums["job=pilot"] == 0
    assert sums["job=unseen"] == 0
    assert sums["job=clerk"] + sums["job=farmer"] == 400
    assert sums["member"] == 400
    assert any("'job=pilot' is rare" in note for note in released.notes)
    counts = np.diag(released.cells.moments)[[at for at, name in enumerate(names) if name.startswith("job=")]]
    assert ((counts == 0) | (counts >= 10)).all()
    assert "4" not in " ".join(released.notes)


def test_rare_categories_together_are_counted_as_unseen():
    columns = table()
    columns["job"][:8] = "pilot"
    columns["job"][8:14] = "farrier"
    names = (released := gate(columns, Policy())).cells.columns
    sums = dict(zip(names, released.cells.sums.sum(axis=0), strict=True))
    assert (sums["job=pilot"], sums["job=unseen"]) == (0, 14)


def test_no_small_number_of_rows_with_two_categories_is_in_the_moments():
    columns = table(1000)
    columns["job"] = np.where(columns["member"], "clerk", "farmer").astype(object)
    columns["job"][np.flatnonzero(columns["member"])[:4]] = "farmer"
    tally = craft(pa.table(columns), CONTRACT, "bank")
    names = list(tally.columns)
    released = release(tally, CONTRACT, Policy()).cells.moments
    bare = release(tally, CONTRACT, Policy(1)).cells.moments
    job, member = names.index("job=farmer"), names.index("member")

    def both(moments: np.ndarray) -> float:  # a truth value enters as +1 and -1
        return float((moments[job, member] + moments[job, job]) / 2)

    assert both(bare) == pytest.approx(4)
    assert both(released) >= 10
    np.testing.assert_allclose(np.diag(released), np.diag(bare))
    np.testing.assert_allclose(released[:, -1], bare[:, -1])


def test_labels_only_releases_no_signature():
    cells = gate(table(), Policy(signatures="labels-only")).cells
    assert cells.codes.tolist() == [[ROLLED, ROLLED]] * 2
    assert cells.rows.tolist() == [200, 200]


def test_features_contracts_and_width_are_limited():
    with pytest.raises(PolicyRefusal, match="does not allow the feature 'job'"):
        gate(table(), Policy(features=["income", "member"]))
    with pytest.raises(PolicyRefusal, match="does not allow the contract"):
        gate(table(), Policy(contracts=["abc"]))
    gate(table(), Policy(contracts=[CONTRACT.fingerprint]))
    with pytest.raises(PolicyRefusal, match="private columns"):
        gate(table(), Policy(rows_per_column=100))
