"""One labelled peer: what the proportions of its label tell about the columns of peers that lack it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radocraft import Contract, Part, Policy, craft, explain, learn, release, share
from radocraft.arrays import Floats, Ints
from radocraft.errors import ContractError, LearnError, MissingColumn
from radocraft.gate._noise import Noise
from radocraft.learning._blocks import merge
from radocraft.learning._completion import complete
from radocraft.learning._forecast import Forecast
from radocraft.learning._matching import Ridge, fit_matching
from radocraft.learning._population import Assumed
from radocraft.sums._cells import Cells
from radocraft.sums._label_differences import Groups, Trust, label_differences
from radocraft.sums._proportions import laplacian_means, mean_map, overlap, proportions, with_labels

TEXT = """
name = "one label"
label = {{ column = "y", {label} }}
shared = [{{ name = "s", categories = [0, 1, 2, 3] }}, {{ name = "t", categories = [0, 1, 2, 3] }}]
peers.bank.features = {{ u = "numeric" }}
peers.shop.features = {{ v1 = "numeric", v2 = "numeric", v3 = "numeric" }}
"""
ONE = Contract.parse(TEXT.format(label='positive = 1, negative = 0, held_by = ["bank"]'))
ALL = Contract.parse(TEXT.format(label="positive = 1, negative = 0"))
EXACT = Policy.exact(min_rows=10)


def people(rows: int, seed: int = 0, telling: bool = True) -> pa.Table:
    """The label's share depends on both codes together (or not at all); columns on the label and on each code."""
    rng = np.random.default_rng(seed)
    s, t = rng.integers(0, 4, (2, rows))
    share = np.where((s + t) % 2 == 0, 0.85, 0.15) if telling else np.full(rows, 0.5)
    y = (rng.random(rows) < share).astype(int)
    sign = 2 * y - 1
    v = rng.normal(size=(rows, 3)) + np.outer(sign, [0.9, -0.6, 0.0]) + np.outer(s, [0.5, 0.0, 1.0])
    return pa.table(
        {"y": y, "s": s, "t": t, "u": 0.4 * sign + rng.normal(size=rows), "v1": v[:, 0], "v2": v[:, 1], "v3": v[:, 2]}
    )


def parts_of(table: pa.Table, contract: Contract) -> list[Part]:
    rng = np.random.default_rng(1)
    tables = {"bank": table.drop_columns(["v1", "v2", "v3"]), "shop": table.drop_columns(["u"])}
    if contract is ONE:
        tables["shop"] = tables["shop"].drop_columns(["y"])
    shuffled = {peer: held.take(pa.array(rng.permutation(held.num_rows))) for peer, held in tables.items()}
    return [share(rows, contract, peer, policy=EXACT) for peer, rows in shuffled.items()]


def error(model: object, table: pa.Table) -> float:
    return float(np.mean(model.predict(table).positive != (table["y"].to_numpy() == 1)))  # type: ignore[attr-defined]


@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(4, 30), classes=st.integers(2, 4), width=st.integers(1, 5))
def test_mean_map_recovers_class_means_where_its_assumption_holds(seed, groups, classes, width):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(classes), size=groups)
    truth, rows = rng.normal(size=(classes, width)), rng.integers(5, 500, groups).astype(float)
    condition = np.linalg.cond(np.sqrt(rows)[:, None] * shares)
    if condition < 1e4:
        np.testing.assert_allclose(mean_map(shares @ truth, rows, shares), truth, rtol=1e-8, atol=1e-8)
        codes = rng.integers(0, 3, (groups, 2))
        smooth = laplacian_means(shares @ truth, rows, shares, codes)
        np.testing.assert_allclose(smooth, np.broadcast_to(truth, smooth.shape), rtol=1e-6, atol=1e-6)


def exact_counts(table: pa.Table, keys: Ints) -> Floats:
    found = [(table["s"].to_numpy() == s) & (table["t"].to_numpy() == t) for s, t in keys]
    label = table["y"].to_numpy()
    return np.array([[np.mean(label[rows] == 0), np.mean(label[rows] == 1)] for rows in found])


def test_proportions_are_those_of_each_signature():
    table = people(4000)
    bank, shop = (part.cells(ONE) for part in parts_of(table, ONE))
    assert {*bank.labels.tolist()} == {-1, 1}
    assert {*shop.labels.tolist()} == {0}
    np.testing.assert_allclose(shares_of(shop, bank), exact_counts(table, shop.codes), atol=1e-6)


def shares_of(shop: Cells, bank: Cells) -> Floats:
    return proportions((bank,), [overlap(shop, bank)], (-1, 1))


def test_a_coarse_cell_holds_what_is_not_shown_elsewhere():
    """Label 1 is rare where s is 0: the bank shows it rolled up, and where it was follows from what it shows."""
    rows = [
        (s, t, y)
        for s, t, y, n in [(0, 0, 0, 40), (0, 0, 1, 4), (0, 1, 0, 30), (0, 1, 1, 8), (0, 2, 0, 20)]
        for _ in range(n)
    ]
    rows += [(0, 2, 1)] * 30 + [(1, 0, 0)] * 40 + [(1, 0, 1)] * 40
    s, t, y = np.array(rows).T
    noise = np.random.default_rng(0).normal(size=(4, len(y)))
    table = pa.table({"s": s, "t": t, "y": y, "u": noise[0], "v1": noise[1], "v2": noise[2], "v3": noise[3]})
    bank, shop = (share(table, ONE, peer, policy=EXACT).cells(ONE) for peer in ("bank", "shop"))
    assert (bank.codes == -1).any()
    assert not (shop.codes == -1).any()
    np.testing.assert_allclose(shares_of(shop, bank), exact_counts(table, shop.codes), atol=1e-4)


@pytest.mark.parametrize("method", ["adjusted", "mean-map", "laplacian"])
def test_what_is_estimated_adds_up_to_what_was_released(method):
    cells = tuple(part.cells(ONE) for part in parts_of(people(3000), ONE))
    shop = with_labels(cells, ONE, method)[1].cells
    np.testing.assert_allclose(shop.sums.sum(axis=0), cells[1].sums.sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(shop.shared.sum(axis=0), cells[1].shared.sum(axis=0), atol=1e-8)
    assert shop.rows.sum() == pytest.approx(3000)
    assert shop.total == 3000


def test_adjusted_finds_the_class_means_though_codes_move_the_columns_too():
    table = people(20_000)
    bank, shop = (part.cells(ONE) for part in parts_of(table, ONE))
    groups = Groups.of(shop.rows.astype(float), shop.sums, shop.shared.toarray(), shop.moments)
    found, _ = groups.differences(shares_of(shop, bank))
    np.testing.assert_allclose((found @ groups.back)[0] * shop.scale, [1.8, -1.2, 0.0], atol=0.15)
    told = label_differences(shop, shares_of(shop, bank), [(bank, overlap(shop, bank))], (-1, 1))
    kept = told.contrasts[1, :2] * shop.scale[:2] / [1.8, -1.2]
    assert ((kept > 0.5) & (kept < 1.0)).all()
    assert told.certainty > 0.5


@given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 20))
def test_trust_keeps_less_the_more_proportions_missed(seed, columns):
    rng = np.random.default_rng(seed)
    truth, variance = rng.normal(size=columns), rng.gamma(1.0, size=columns)
    near, far = truth + 0.1 * rng.normal(size=columns), truth + 10.0 * (1.0 + rng.random(columns))
    good, bad = Trust.tested([(near, variance, truth)]), Trust.tested([(far, 0 * variance, truth)])
    assert bad.missed > good.missed
    for trust in (good, bad):
        assert ((trust.kept(variance) >= 0) & (trust.kept(variance) < 1)).all()
        assert ((trust.uncertainty(variance) >= 0) & (trust.uncertainty(variance) <= trust.size)).all()
        np.testing.assert_allclose(trust.kept(np.array([np.inf])), 0.0)
        np.testing.assert_allclose(trust.uncertainty(np.array([np.inf])), trust.size)


@pytest.mark.parametrize("telling", [True, False])
@pytest.mark.parametrize("caution", [0.25, 1.0])
def test_the_fit_minimises_its_objective_and_is_guaranteed_no_worse_than_the_holder_alone(telling, caution):
    blocks = merge(parts_of(people(3000, telling=telling), ONE), ONE)
    known = complete(blocks)
    fit = fit_matching(blocks, caution)
    problem = Ridge(known, float(fit.settings["alpha"]))
    best = problem.loss(fit.theta, caution)
    assert best <= problem.loss(problem.alone(0), caution) + 1e-12
    if caution == 1.0:
        assert fit.losses["guaranteed"] <= fit.peer_losses["bank"] + 1e-12
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        for step in rng.normal(size=(20, len(fit.theta))):
            assert problem.loss(fit.theta + size * step, caution) >= best * (1.0 - 1e-5)


@pytest.mark.parametrize(("method", "words"), [("adjusted", "two standard deviations"), ("mean-map", "too optimistic")])
def test_the_certificate_says_that_sums_are_estimated(method, words):
    model = learn(parts_of(people(2000), ONE), ONE, proportions=method)
    assert [*model.certificate.peers] == ["bank"], "a peer without the label learns nothing alone"
    assert words in explain(model).sentence
    whole = learn(parts_of(people(2000), ALL), ALL)
    assert [*whole.certificate.peers] == ["bank", "shop"]
    assert "estimated" not in explain(whole).sentence


def test_what_to_expect_knows_that_sums_are_estimated():
    table = people(3000)
    told = merge(parts_of(table, ONE), ONE)
    fit = fit_matching(told)
    uncertainty = float(fit.known.uncertainty_of(fit.theta))
    assert uncertainty > 0
    assert complete(merge(parts_of(table, ALL), ALL)).uncertainty is None
    forecast = Forecast.of(told, fit)
    population, estimate = forecast.populations[0], forecast.estimate()
    moved = population.scores - population.scores_at(Assumed(caution=1.0))
    np.testing.assert_allclose(moved, 2.0 * uncertainty / population.kept * population.targets)
    assert estimate.outlooks[-1].error > estimate.outlooks[0].error
    assert "are estimated" in estimate.assumption
    problem = Ridge(fit.known, 0.0)
    hidden = float(fit.known.squares(fit.theta, 1.0) - fit.known.squares(fit.theta, 0.0)) / fit.known.total
    assert problem.loss(fit.theta, 1.0) - problem.loss(fit.theta, 0.0) == pytest.approx(hidden + 4.0 * uncertainty)


@pytest.mark.parametrize("seed", range(3))
def test_it_closes_half_of_the_gap_where_proportions_tell(seed):
    train, test = people(6000, seed), people(20_000, seed + 50)
    alone = learn(parts_of(train, ONE), ONE).predict(test.drop_columns(["v1", "v2", "v3"]))
    holder = float(np.mean(alone.positive != (test["y"].to_numpy() == 1)))
    joint, whole = (error(learn(parts_of(train, contract), contract), test) for contract in (ONE, ALL))
    assert whole < holder - 0.01
    assert joint <= holder - 0.5 * (holder - whole)


def test_the_tool_says_when_it_cannot_help():
    """With two signatures nothing is left to tell the shares of the label from what the signatures do themselves."""
    few = Contract.model_validate({**ONE.model_dump(mode="json"), "shared": [{"name": "s", "categories": [0]}]})
    table = people(5000)
    model = learn([share(table, few, peer, policy=EXACT) for peer in ("bank", "shop")], few)
    assert any("cannot help" in note for note in model.notes)
    told = learn(parts_of(people(5000), ONE), ONE)
    assert any("estimated from proportions" in note for note in told.notes)
    assert not any("cannot help" in note for note in told.notes)


def test_the_gate_protects_peers_without_the_label():
    table = people(600)
    exact = share(table.drop_columns(["y"]), ONE, "shop", policy=Policy.exact(20)).cells(ONE)
    assert exact.rows.min() >= 20
    tally = craft(table.drop_columns(["y"]), ONE, "shop", noise=Noise.seeded(0))
    noisy = release(tally, ONE, Policy(20), Noise.seeded(1)).cells
    assert (noisy.levels.sums > 0) & (noisy.levels.moments > 0)
    for cells in (exact, noisy):
        assert {*cells.labels.tolist()} == {0}
        assert len(cells.by_label) == 1
    with pytest.raises(MissingColumn, match="'y'"):
        craft(table.drop_columns(["y"]), ONE, "bank")


def test_a_part_without_labels_reads_back():
    part = parts_of(people(2000), ONE)[1]
    assert {*part.table.column("label").to_pylist()} == {"any"}
    with pytest.raises(LearnError, match="holds the label"):
        merge([part], ONE)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ('positive = 1, negative = 0, held_by = ["store"]', "there is no peer 'store'"),
        ('positive = 1, negative = 0, held_by = ["bank", "shop"]', "leave `held_by` out"),
        ("positive = 1, negative = 0, held_by = []", "held_by"),
        ('positive = 1, negative = 0, held_by = "bank"', "must be a list"),
        ('positive = 1, negative = 0, held_by = ["bank", "bank"]', "a peer is named twice"),
        ('classes = [1, 2, 3], positive = 1, held_by = ["bank"]', "a label has `positive` and `negative`, or"),
        ('positive = "any", negative = 0, held_by = ["bank"]', "is reserved for an unknown label"),
        ('kind = "numeric", held_by = ["bank"]', "every peer sums a number"),
    ],
)
def test_contradictory_contracts_are_refused(label, message):
    with pytest.raises(ContractError, match=message):
        Contract.parse(TEXT.format(label=label))


def test_a_peer_without_the_label_has_no_column_for_it():
    text = TEXT.format(label='positive = 1, negative = 0, held_by = ["bank"]')
    with pytest.raises(ContractError, match="'shop' lacks the label, so it has no column"):
        Contract.parse(text + 'peers.shop.columns = { y = "bought" }')
