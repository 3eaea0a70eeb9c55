"""From parts to a model: what it holds, and what it refuses."""

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Part, Policy, example_peers, learn
from radocraft.demo._example import CONTRACT, example_people
from radocraft.errors import LearnError
from radocraft.learning._metrics import auc


def parts_of(contract: Contract, tables: dict[str, pa.Table], policy: Policy | None = None) -> list[Part]:
    return [noisy_part(table, contract, peer, policy) for peer, table in tables.items()]


@pytest.fixture(scope="module")
def world() -> tuple[Contract, list[Part]]:
    contract, tables = example_peers(rows=4000)
    return contract, parts_of(contract, tables)


def test_joint_model_ranks_better_than_either_peer_could(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    people = example_people(8000, seed=3)
    labels = np.where(people.column("defaulted").to_numpy() == "yes", 1, -1)
    model = learn(parts, contract)
    joint = auc(model.predict(people).score, labels)
    for peer in model.peers:
        others = [name for other in model.peers if other != peer for name in contract.peers[other].features]
        assert auc(model.predict(people.drop_columns(others)).score, labels) < joint


def test_raw_weights_score_as_the_standardised_ones_do(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    model = learn(parts, contract)
    by_name = {c.name: c for c in model.coefficients}
    person = example_people(1, seed=9)
    row = {name: values[0] for name, values in person.to_pydict().items()}
    score = model.raw_intercept
    for c in model.coefficients:
        if c.name in row:
            score += c.raw * float(row[c.name])
    score += by_name[f"region={row['region']}"].raw
    score += by_name[f"job={row['job']}"].raw + by_name[f"cover={row['cover']}"].raw
    age = next(code for code in contract.shared[1].codes if _holds(code, row["age"]))
    score += by_name[f"age={age}"].raw
    assert score == pytest.approx(float(model.predict(person).score[0]), rel=1e-9)


def _holds(code: str, age: int) -> bool:
    low, high = code.strip("()[]").split(", ")
    return float(low) <= age < float(high)


def test_order_of_parts_does_not_matter(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    one, other = learn(parts, contract), learn(parts[::-1], contract)
    assert one.model_dump(exclude={"created"}) == other.model_dump(exclude={"created"})


def test_model_tells_what_it_was_learned_from(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    model = learn(parts, contract)
    assert [(origin.peer, origin.rows, origin.hash) for origin in model.learned_from] == [
        (part.peer, part.metadata["rows"], part.metadata["hash"]) for part in parts
    ]
    assert [origin.guarantee for origin in model.learned_from] == [
        part.metadata["policy"]["guarantee"] for part in parts
    ]


@pytest.mark.parametrize("caution", [0.0, 0.25, 1.0])
def test_certificate_orders_the_losses(world: tuple[Contract, list[Part]], caution: float) -> None:
    contract, parts = world
    certificate = learn(parts, contract, caution=caution).certificate
    assert certificate is not None
    assert certificate.expected <= certificate.worst
    if caution == 1.0:
        assert certificate.worst <= min(certificate.peers.values()) * (1 + 1e-9)


def test_drl_decides_by_the_sign_of_the_score(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    model = learn(parts, contract, method="drl")
    scores = model.predict(example_people(500, seed=2))
    assert np.array_equal(scores.positive, (scores.score > 0) == (model.odds.slope > 0))
    assert model.certificate is None
    assert model.tuning is not None
    assert learn(parts, contract, method="drl", regularisation="identity").tuning is None


def test_one_part_is_not_enough(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    with pytest.raises(LearnError, match="at least two"):
        learn(parts[:1], contract)


def test_caution_outside_its_range_is_refused(world: tuple[Contract, list[Part]]) -> None:
    contract, parts = world
    with pytest.raises(LearnError, match="between 0 and 1"):
        learn(parts, contract, caution=1.5)


def test_absent_peer_is_noted() -> None:
    third = CONTRACT + '\n[peers.shop.features]\nvisits = "numeric"\n'
    _, tables = example_peers(rows=500)
    contract = Contract.parse(third)
    model = learn(parts_of(contract, tables), contract)
    assert model.notes[0] == "learned without shop: their part was not given"


def test_probabilities_are_calibrated_where_the_score_is_normal() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 20_000)
    contract = Contract.parse(
        'name = "n"\nlabel = { column = "y", positive = 1, negative = 0 }\n'
        'peers.a.features = { u = "numeric" }\npeers.b.features = { v = "numeric" }'
    )
    u, v = rng.normal(size=(2, 20_000)) + labels
    joined = pa.table({"y": labels, "u": u, "v": v})
    tables = {"a": joined.select(["y", "u"]), "b": joined.select(["y", "v"]).take(rng.permutation(20_000))}
    model = learn(parts_of(contract, tables, Policy.exact(10)), contract, caution=0.0)
    exact = 1 / (1 + np.exp(-(u + v - 1)))
    assert np.abs(model.predict(joined).probability - exact).max() < 0.02
