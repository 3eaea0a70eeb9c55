"""The paper's route: a peer without the label labels its own rows by proportions, and crafts as usual."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radocraft import Contract, Part, Policy, craft, learn, share
from radocraft.errors import ContractMismatch, DataError, PolicyRefusal
from radocraft.ledger._ledger import Ledger
from radocraft.rows._craft import relabelled
from radocraft.rows._encoding import Reader
from radocraft.rows._labelling import label_rows, solve, whole_counts
from radocraft.rows._ranking import Ranking
from radocraft.rows._shift import Shift
from radocraft.rows._stream import stream_totals
from radocraft.rows._totals import ask_blocks
from radocraft.rows.engines._opening import open_source
from radocraft.sums._cells import standardise

TEXT = """
name = "one label"
label = {{ column = "y", {label} }}
shared = [{{ name = "s", categories = [0, 1, 2, 3] }}, {{ name = "t", categories = [0, 1, 2, 3] }}]
peers.bank.features = {{ u = "numeric", u2 = "numeric" }}
peers.shop.features = {{ v1 = "numeric", v2 = "{v2}" }}
"""
BINARY = 'positive = 1, negative = 0, held_by = ["bank"]'
ONE = Contract.parse(TEXT.format(label=BINARY, v2="numeric"))


def people(rows: int, seed: int, gaps: float = 0.0) -> pa.Table:
    rng = np.random.default_rng(seed)
    s, t = rng.integers(0, 4, (2, rows))
    y = (rng.random(rows) < np.where((s + t) % 2 == 0, 0.8, 0.2)).astype(int)
    sign = 2 * y - 1
    v = rng.normal(size=(rows, 2)) + np.outer(sign, [0.9, -0.5]) + np.outer(s, [0.5, 0.0])
    v[rng.random((rows, 2)) < gaps] = np.nan
    u = rng.normal(size=(2, rows)) + 0.4 * sign
    columns = {"y": y, "s": s, "t": t, "u": u[0], "u2": u[1], "v1": v[:, 0], "v2": v[:, 1]}
    return pa.table(columns)


def bank(table: pa.Table, contract: Contract = ONE, min_rows: int = 1) -> Part:
    return share(table, contract, "bank", policy=Policy.exact(min_rows))


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(40, 400), gaps=st.sampled_from([0.0, 0.2]))
def test_alternating_never_increases_its_objective_and_keeps_the_proportions(seed, rows, gaps):
    table = people(rows, seed, gaps)
    found = label_rows(table, ONE, "shop", [bank(table).cells(ONE)])
    assert all(after <= before + 1e-9 for before, after in zip(found.losses, found.losses[1:], strict=False))
    truth = craft(table, ONE, "bank", bounds=None)
    counted, given_out = (
        {(*codes, label): n for codes, label, n in zip(one.codes.tolist(), one.labels, one.rows, strict=True)}
        for one in (truth, found.tally)
    )
    assert all(abs(given_out.get(block, 0) - counted.get(block, 0)) <= 1 for block in {*counted, *given_out})
    assert found.tally.total == rows


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(20, 200))
def test_no_other_labels_of_the_same_counts_fit_better(seed, rows):
    """Given theta, the ranking has the least loss: exchanging two rows' labels in a signature never helps."""
    rng = np.random.default_rng(seed)
    table = people(rows, seed)
    exact = craft(table, ONE, "shop", bounds=None)
    own = standardise(exact, ONE)
    weights = rng.normal(size=2)
    positives = whole_counts(own.rows * rng.random(len(own.rows)))
    ranking = Ranking(weights, own.centre, own.scale, own.codes, positives)
    ranked = standardise(relabelled(exact, table, ONE, ranking), ONE)
    gain = float(ranked.labels @ (ranked.sums @ weights))
    values = np.column_stack([table["v1"].to_numpy(), table["v2"].to_numpy()])
    score = ((values - own.centre) / own.scale) @ weights
    by_hand = 0.0
    for (s, t), count in zip(own.codes.tolist(), positives, strict=True):
        here = np.sort(score[(table["s"].to_numpy() == s) & (table["t"].to_numpy() == t)])[::-1]
        by_hand += here[:count].sum() - here[count:].sum()
    assert gain == pytest.approx(by_hand, rel=1e-9, abs=1e-9)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(20, 200))
def test_rows_with_nan_are_ranked_alike_from_a_stream_and_by_the_engine(seed, rows):
    rng = np.random.default_rng(seed)
    table = people(rows, seed)
    values = np.where(rng.random(rows) < 0.3, np.nan, table["v1"].to_numpy())
    table = table.set_column(table.column_names.index("v1"), "v1", pa.array(values))
    source, exact = open_source(table), craft(table, ONE, "shop", bounds=None)
    own = standardise(exact, ONE)
    positives = whole_counts(own.rows * rng.random(len(own.rows)))
    ranking = Ranking(rng.normal(size=2), own.centre, own.scale, own.codes, positives)
    reader = Reader(ONE, "shop", source.kinds(), exact.constants, ranking)
    shift = Shift(exact.origin, exact.unit)
    streamed, asked = stream_totals(source, reader, shift, products=False), ask_blocks(source, reader, shift)[0]
    for name in ("codes", "labels", "rows", "present"):
        np.testing.assert_array_equal(getattr(streamed, name), getattr(asked, name), err_msg=name)
    np.testing.assert_allclose(streamed.sums, asked.sums, rtol=1e-9, atol=1e-9)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=30))
def test_whole_counts_are_next_to_what_was_asked(counts):
    found = whole_counts(np.array(counts))
    assert (np.abs(found - counts) <= 1.0).all()
    assert (found >= 0).all()
    assert abs(found.sum() - sum(counts)) <= 0.5 + 1e-9


def test_given_labels_the_objective_is_that_of_rows():
    table = people(300, 3)
    every = Contract.parse(TEXT.format(label="positive = 1, negative = 0", v2="numeric"))
    cells = standardise(craft(table, every, "shop", bounds=None), every)
    theta, loss = solve(cells, cells.moments)
    values = np.column_stack([table["v1"].to_numpy(), table["v2"].to_numpy()])
    codes = np.column_stack([table["s"].to_numpy(), table["t"].to_numpy()])
    design = np.hstack([(values - cells.centre) / cells.scale, every.encode_shared(codes), np.ones((300, 1))])
    sign = 2.0 * table["y"].to_numpy() - 1.0
    assert loss == pytest.approx(np.mean((sign - design @ theta) ** 2) + 0.01 * np.sum(theta[:-1] ** 2))


def test_the_whole_road_with_gate_and_ledger(tmp_path: Path):
    table = people(4000, 1)
    contract = Contract.parse(TEXT.format(label=BINARY, v2="spline"))
    holder = bank(table, contract, 10)
    policy, output = Policy.exact(20, ledger=str(tmp_path / "ledger")), tmp_path / "shop.part.parquet"
    part = share(table.drop_columns(["y"]), contract, "shop", policy=policy, output=output, proportions=[holder])
    assert {*part.table.column("label").to_pylist()} == {"0", "1"}
    assert min(part.table.column("rows").to_pylist()) >= 20
    assert [line.entry.kind for line in Ledger(tmp_path / "ledger").lines()] == ["release"]
    model = learn([holder, output], contract)
    assert any("labelled its own rows by the proportions of bank" in note for note in model.notes)
    test = people(4000, 2)
    truth = test["y"].to_numpy() == 1
    alone = np.mean(model.predict(test.drop_columns(["v1", "v2"])).positive != truth)
    assert np.mean(model.predict(test).positive != truth) < alone


@pytest.mark.parametrize(
    ("peer", "label", "given", "message"),
    [
        ("bank", BINARY, "bank", "holds the label"),
        ("shop", BINARY, "shop", "lacks the label too"),
        ("shop", 'classes = [0, 1, 2], held_by = ["bank"]', "bank", "two values"),
    ],
)
def test_what_contradicts_the_contract_is_refused(peer, label, given, message):
    table = people(400, 0)
    contract = Contract.parse(TEXT.format(label=label, v2="numeric"))
    part = share(table, contract, given, policy=Policy.exact())
    with pytest.raises(ContractMismatch, match=message):
        share(table, contract, peer, policy=Policy.exact(), proportions=[part])


def test_own_labels_are_of_the_whole_table_and_not_for_noise(tmp_path: Path):
    table = people(400, 0)
    with pytest.raises(ContractMismatch, match="whole table"):
        share(table, ONE, "shop", policy=Policy.exact(), proportions=[bank(table)], tally=tmp_path / "tally")
    with pytest.raises(PolicyRefusal, match="all rows at once"):
        share(table, ONE, "shop", proportions=[bank(table).cells(ONE)])


def test_more_signatures_than_can_be_numbered_are_refused():
    codes = np.full((1, 14), 26)
    with pytest.raises(DataError, match="fewer bins"):
        Ranking(np.ones(1), np.zeros(1), np.ones(1), codes, np.ones(1, dtype=np.int64))
