"""Advice on shared features: judged alike, and the same as peers would get under a leaner contract."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Part, Policy, advise, craft, release
from radocraft.learning._advise import Advice, best_order, leanest
from radocraft.learning._blocks import merge, merge_cells
from radocraft.learning._matching import Ridge, fit_matching
from radocraft.sums._cells import ROLLED

TEXT = """
name = "n"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "noise", categories = ["p", "q", "r"] }, { name = "s", categories = ["a", "b"] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
"""
CONTRACT = Contract.parse(TEXT)


def tables(rows: int = 3000) -> dict[str, pa.Table]:
    """u and v agree where s is a, and go against each other where it is b; noise is noise."""
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, rows), rng.choice(["a", "b"], rows)
    shift = np.where(s == "a", 1.0, -1.0) * 1.5
    u, v = rng.normal(size=rows) + y + shift, rng.normal(size=rows) + y - shift
    table = pa.table({"y": y, "s": s, "noise": rng.choice(["p", "q", "r"], rows), "u": u, "v": v})
    return {"one": table.drop_columns(["v"]), "two": table.drop_columns(["u"]).take(rng.permutation(rows))}


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    return [noisy_part(t, CONTRACT, p, Policy.exact(5)) for p, t in tables().items()]


def test_every_subset_once_and_the_whole_is_what_learning_gives(parts: list[Part]) -> None:
    found = {advice.keys: advice for advice in advise(parts, CONTRACT)}
    assert found.keys() == {(), ("noise",), ("s",), ("noise", "s")}
    blocks = merge(parts, CONTRACT)
    fit = fit_matching(blocks, 0.25)
    whole = found["noise", "s"]
    assert whole.loss == pytest.approx(Ridge(fit.known, 0.0).loss(fit.theta, 0.0), rel=1e-9)
    assert whole.blocks == len(blocks)
    assert found[()].blocks == 2
    assert found[()].smallest >= whole.smallest


def test_a_leaner_choice_is_what_peers_would_get_under_that_contract(parts: list[Part]) -> None:
    leaner = Contract.model_validate({**CONTRACT.model_dump(), "shared": CONTRACT.model_dump()["shared"][::-1]})
    cells = []
    for peer, table in tables().items():
        whole = release(craft(table, leaner, peer, bounds=None), leaner, Policy.exact(5)).cells
        codes = whole.codes.copy()
        codes[:, 1:] = ROLLED
        cells.append(whole.grouped(codes))
    theirs = fit_matching(merge_cells(tuple(cells), leaner), 0.25)
    reference = fit_matching(merge(parts, CONTRACT), 0.25)
    names = ["constant", *leaner.shared_columns, "u", "v"]
    ours = ["constant", *CONTRACT.shared_columns, "u", "v"]
    theta = np.array([theirs.theta[names.index(name)] for name in ours])
    found = {advice.keys: advice for advice in advise(parts, CONTRACT)}
    assert found["s",].loss == pytest.approx(Ridge(reference.known, 0.0).loss(theta, 0.0), rel=1e-9)


def test_noise_is_given_up_first(monkeypatch: pytest.MonkeyPatch, parts: list[Part]) -> None:
    """The contract lists it first; from all subsets, or one by one, the advice is to list it last."""
    assert best_order(advise(parts, CONTRACT)) == ("s", "noise")
    monkeypatch.setattr(sys.modules["radocraft.learning._advise"], "MOST", 1)
    assert best_order(advise(parts, CONTRACT)) == ("s", "noise")


def test_with_many_features_they_are_given_up_one_by_one(monkeypatch: pytest.MonkeyPatch, parts: list[Part]) -> None:
    monkeypatch.setattr(sys.modules["radocraft.learning._advise"], "MOST", 1)
    assert sorted(len(advice.keys) for advice in advise(parts, CONTRACT)) == [0, 1, 2]


def test_leanest_prefers_few_keys_and_large_cells() -> None:
    def made(keys: tuple[str, ...], smallest: int, loss: float) -> Advice:
        return Advice(keys, 4, smallest, 50, loss, 0.1)

    found = [made(("a", "b"), 10, 1.0), made(("a",), 20, 1.005), made(("b",), 30, 1.005), made((), 90, 1.2)]
    assert leanest(found).keys == ("b",)
