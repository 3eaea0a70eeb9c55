"""Peers that saw different people: said with the statistic, and not said by chance."""

import re

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Policy, learn, report, share
from radocraft.learning._differences import g_test

CONTRACT = Contract.parse("""
name = "who"
label = { column = "y", positive = 1, negative = 0 }
shared = [{ name = "s", categories = [0, 1, 2] }]
peers.one.features = { u = "numeric" }
peers.two.features = { v = "numeric" }
""")


def people(rows: int, seed: int, label: float = 0.5, codes: tuple[float, ...] = (0.4, 0.3, 0.3)) -> pa.Table:
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < label).astype(int)
    u, v = rng.normal(size=(2, rows)) + y
    return pa.table({"y": y, "s": rng.choice(3, rows, p=codes), "u": u, "v": v})


def learned(one: pa.Table, two: pa.Table) -> Model:
    tables = {"one": one.drop_columns(["v"]), "two": two.drop_columns(["u"])}
    return learn([share(t, CONTRACT, p, policy=Policy.exact(10)) for p, t in tables.items()], CONTRACT)


def test_the_population_is_that_of_the_weights() -> None:
    same = people(3000, 0)
    for seen in learned(same, same).population:
        assert (seen.counts, seen.apart) == (0.5, pytest.approx(0.0))
        assert seen.labels["1"] == pytest.approx(np.mean(same["y"].to_numpy()))
    one, two = learned(people(3000, 0, 0.2), people(1000, 1, 0.8)).population
    assert (one.counts, two.counts) == (0.75, 0.25)
    mixed = 0.75 * one.labels["1"] + 0.25 * two.labels["1"]
    assert one.apart >= mixed - one.labels["1"] - 1e-9, "labels alone are that far apart"
    assert two.apart == pytest.approx(3 * one.apart), "what the mixture has of both is nearer to the larger"


def told(model: Model) -> list[str]:
    return [note for note in model.notes if "more than chance allows" in note]


def test_the_statistic_is_the_likelihood_ratio() -> None:
    counts = np.array([[30.0, 50.0, 12.0], [45.0, 20.0, 9.0]])
    truth = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    assert g_test(counts) == (pytest.approx(truth.statistic), truth.dof)


def test_the_same_people_do_not_differ() -> None:
    table = people(1000, 0)
    model = learned(table, table.take(pa.array(np.random.default_rng(1).permutation(1000))))
    assert not told(model)
    assert all(difference.statistic < 1e-9 for difference in model.differences)
    assert {difference.of for difference in model.differences} == {"labels", "signatures"}


def test_samples_of_one_population_seldom_differ() -> None:
    """At one in a thousand for each of two tests, more than two of twenty pairs would be a wonder."""
    assert sum(bool(told(learned(people(600, seed), people(600, seed + 100)))) for seed in range(20)) <= 2


def test_other_labels_and_other_signatures_are_told_with_the_statistic() -> None:
    labels = told(learned(people(2000, 0), people(2000, 1, label=0.65)))
    assert len(labels) == 1
    assert "in their labels" in labels[0]
    assert "G =" not in labels[0]
    signatures = told(learned(people(2000, 0), people(2000, 1, codes=(0.2, 0.3, 0.5))))
    assert any("in their signatures" in note for note in signatures)


def test_the_file_holds_the_statistic() -> None:
    model = learned(people(2000, 0), people(2000, 1, label=0.65))
    again = Model.model_validate_json(model.model_dump_json())
    assert again.differences == model.differences
    worst = min(model.differences, key=lambda difference: difference.p)
    assert worst.peers == ("one", "two")
    assert worst.p < 1e-6


@pytest.mark.parametrize("noisy", [("one",), ("one", "two")])
def test_noisy_counts_are_not_held_against_chance(noisy: tuple[str, ...]) -> None:
    """Noise is no sampling: the same people would differ by it alone."""
    table = people(3000, 0)
    rules = {peer: Policy() if peer in noisy else Policy.exact(10) for peer in ("one", "two")}
    model = learn([noisy_part(table, CONTRACT, peer, policy) for peer, policy in rules.items()], CONTRACT)
    assert not told(model)
    assert model.differences == ()
    said = " ".join(report(model).split())
    assert "added noise to the counts" in said


@pytest.mark.parametrize("policy", [Policy(), Policy.exact(10)])
@pytest.mark.parametrize("feature", ["columns", "scores"])
def test_spellings_are_compared_before_populations(feature: str, policy: Policy) -> None:
    rng = np.random.default_rng(3)
    rows = 4000
    own = {peer: "x = 'numeric'" if feature == "columns" else f"{peer}_score = 'score'" for peer in ("one", "two")}
    contract = Contract.parse(f"""
    name = "spelling"
    label = {{ column = "y", positive = 1, negative = 0 }}
    shared = [{{ name = "region", categories = ["north", "south"] }}]
    [peers.one.features]
    {own["one"]}
    [peers.two.features]
    {own["two"].replace("x =", "z =")}
    """)
    y, region = rng.integers(0, 2, rows), rng.choice(["north", "south"], rows)
    values = {"y": y, "x": rng.normal(size=rows) + y, "z": rng.normal(size=rows) + y}
    upper = [word.upper() if at % 4 else word for at, word in enumerate(region)]
    spelled = {"one": region, "two": upper}
    notes = {}
    for name, words in (("alike", {"one": region, "two": region}), ("not", spelled)):
        tables = {peer: pa.table({**values, "region": words[peer]}) for peer in words}
        parts = [share(table, contract, peer, policy=policy, say=str) for peer, table in tables.items()]
        notes[name] = [note for note in learn(parts, contract).notes if "no agreed category" in note]
    assert notes["alike"] == []
    (note,) = notes["not"]
    shares = re.match(
        r"of 'region' (\d+)% of the rows of two have no agreed category, but (\d+)% of those of one", note
    )
    assert shares is not None, note
    assert [int(share) for share in shares.groups()] == pytest.approx([75, 0], abs=3)  # by noisy counts
    assert "`fold`" in note
