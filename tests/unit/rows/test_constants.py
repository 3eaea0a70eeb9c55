"""Constants left to the data, and splines and products made with them: the engine's numbers against NumPy's."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from radocraft import Contract, Model, Policy, Tally, craft, learn, share
from radocraft.contract._columns import private_columns
from radocraft.contract._splines import spline_columns
from radocraft.errors import ContractMismatch
from radocraft.rows._constants import rounded, units

CURVED = """
name = "curved"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = ["a", "b"] }]

[peers.one.features]
u = { kind = "spline", knots = [-1, 0, 0.5, 2] }
w = "spline"
n = "numeric"
flag = "boolean"
n_by_s = { kind = "interact", of = ["n", "s"] }
n_by_flag = { kind = "interact", of = ["n", "flag"] }

[peers.two.features]
v = { kind = "spline", knots = 4 }
"""


def rows(count: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    u, w, n, v = rng.normal(size=(4, count))
    flag, s = rng.random(count) < 0.4, rng.choice(["a", "b"], count)
    bent = np.abs(u) - np.abs(v) + 0.8 * n * np.where(s == "a", 1, -1) + 0.5 * w**2 - 0.5
    y = (bent + rng.logistic(size=count) * 0.3 > 0).astype(int)
    return pa.table({"y": y, "s": s, "u": u, "w": w, "n": n, "flag": flag, "v": v})


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.parse(CURVED)


def test_engine_and_numpy_agree(contract: Contract) -> None:
    table = rows()
    tally = craft(table, contract, "one", bounds=None)
    assert set(tally.constants) == {"w", "n"}
    names = [column.name for column in private_columns(contract, "one")]
    u, n = table.column("u").to_numpy(), table.column("n").to_numpy()
    centre, scale = tally.constants["n"]
    expected = {f"u~{at + 1}": column for at, column in enumerate(spline_columns(u, (-1.0, 0.0, 0.5, 2.0)).T)}
    knots = tally.constants["w"]
    expected |= {f"w~{at + 1}": c for at, c in enumerate(spline_columns(table.column("w").to_numpy(), knots).T)}
    for code in ("a", "b"):
        expected[f"n * s={code}"] = (n - centre) / scale * (table.column("s").to_numpy() == code)
    expected["n * flag"] = (n - centre) / scale * np.where(table.column("flag").to_numpy(), 1, -1)
    total = tally.sums.sum(axis=0) * tally.unit + tally.origin * tally.present.sum(axis=0)
    for name, values in expected.items():
        at = names.index(name)
        assert total[at] == pytest.approx(values.sum(), abs=1e-9 * np.abs(values).sum())
        second = tally.moments[:, at, at].sum() * tally.unit[at] ** 2
        shifted = values - tally.origin[at]
        assert second == pytest.approx(shifted @ shifted, rel=1e-9)


def test_a_model_that_bends_beats_one_that_cannot(contract: Contract) -> None:
    straight = Contract.parse(
        'name = "straight"\nlabel = { column = "y", positive = 1, negative = 0 }\n'
        'shared = [{ name = "s", categories = ["a", "b"] }]\n'
        'peers.one.features = { u = "numeric", w = "numeric", n = "numeric", flag = "boolean" }\n'
        'peers.two.features = { v = "numeric" }'
    )
    table, test = rows(), rows(seed=1)
    errors = {}
    for agreed in (contract, straight):
        model = fitted(agreed, table)
        errors[agreed.name] = np.mean(model.predict(test).positive != (test.column("y").to_numpy() == 1))
    assert errors["curved"] < errors["straight"] - 0.15


def fitted(contract: Contract, table: pa.Table) -> Model:
    shuffled = table.take(np.random.default_rng(2).permutation(len(table)))
    tables = {"one": table, "two": shuffled}
    return learn([share(rows, contract, peer, policy=Policy.exact()) for peer, rows in tables.items()], contract)


def test_knots_travel_with_part_and_model(contract: Contract, tmp_path: Path) -> None:
    table = rows()
    model = fitted(contract, table)
    assert set(model.constants) == {"one", "two"}
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(table).score, model.predict(table).score)
    np.testing.assert_allclose(
        model.to_sklearn().predict_proba(table)[:, 1], model.predict(table).probability, rtol=1e-9
    )
    assert model.predict(table.drop_columns(["v"])).view == ("one",)


def test_new_rows_keep_the_first_tallys_knots(contract: Contract, tmp_path: Path) -> None:
    first, second = rows(), rows(seed=5)
    tally = craft(first, contract, "one")
    tally.save(tmp_path / "t")
    onto = craft(second, contract, "one", onto=Tally.load(tmp_path / "t", contract))
    assert onto.constants == tally.constants
    alone = craft(second, contract, "one")
    if alone.constants != tally.constants:
        with pytest.raises(ContractMismatch, match="knots"):
            tally + alone


def test_few_distinct_values_need_fewer_knots(contract: Contract) -> None:
    table = rows()
    for values in (np.zeros(len(table)), (np.arange(len(table)) % 2).astype(float)):
        few = table.set_column(table.column_names.index("v"), "v", pa.array(values))
        tally = craft(few, contract, "two", bounds=None)
        assert tally.sums.shape[1] == 5
        assert np.isfinite(tally.moments).all()
        model = fitted(contract, few)
        assert np.isfinite(model.predict(few).score).all()


def test_missing_values_stay_missing(contract: Contract) -> None:
    table = rows()
    gaps = table.set_column(table.column_names.index("n"), "n", pa.array([None, *[1.0] * (len(table) - 1)]))
    tally = craft(gaps, contract, "one", bounds=None)
    names = [column.name for column in private_columns(contract, "one")]
    for name in ("n", "n * s=a", "n * flag"):
        assert tally.present[:, names.index(name)].sum() == len(table) - 1


def test_constants_are_rounded() -> None:
    assert rounded([0.123456, 10.98765, None]) == (0.1, 11.0)
    assert rounded([5.0, 5.0]) == (5.0,)
    assert rounded([]) == ()
    assert units(103.7, 20.4) == (pytest.approx(104.0), 20.0)
    assert units(None, None) == (0.0, 1.0)
