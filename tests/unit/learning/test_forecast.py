"""What a fit comes to: effects, block means and what to expect, in the label's own units, for numbers and classes."""

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Model, Policy, learn

TEXT = """
name = "forecast"
label = {{ column = "y", {label} }}
shared = [{{ name = "s", categories = ["a", "b", "c"] }}]
peers.one.features = {{ u1 = "numeric", u2 = "numeric" }}
peers.two.features = {{ v1 = "numeric" }}
"""
NUMBER = Contract.parse(TEXT.format(label='kind = "numeric"'))
CLASSES = Contract.parse(TEXT.format(label='classes = ["low", "middle", "high"]'))
ROWS = 3000


def people() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, ROWS)
    u1, u2, v1 = rng.normal(size=(3, ROWS)) * [[1.0], [5.0], [0.2]] + [[0.0], [10.0], [3.0]]
    y = 2.0 * u1 + 0.3 * u2 - 4.0 * v1 + code + rng.normal(size=ROWS)
    return {"y": y, "s": np.array(["a", "b", "c"])[code], "u1": u1, "u2": u2, "v1": v1}


def learned(
    contract: Contract, label: np.ndarray, caution: float = 0.0, columns: dict[str, np.ndarray] | None = None
) -> Model:
    columns = {**(columns or people()), "y": label}
    parts = []
    for peer, held in contract.peers.items():
        table = pa.table({name: columns[name] for name in ("y", "s", *held.features)})
        parts.append(noisy_part(table, contract, peer, Policy.exact(10)))
    return learn(parts, contract, caution=caution)


def contributions(model: Model, class_at: int | None = None) -> dict[str, np.ndarray]:
    """What each peer's columns, and the shared ones, add to the score of every row, from the rows themselves."""
    columns, out = people(), {"shared": np.zeros(ROWS), "one": np.zeros(ROWS), "two": np.zeros(ROWS)}
    for coefficient in model.coefficients:
        raw = coefficient.raw if class_at is None else coefficient.raw[class_at]
        _, equals, code = coefficient.name.partition("=")
        values = (columns["s"] == code).astype(float) if equals else columns[coefficient.name]
        out[coefficient.peer or "shared"] += raw * values
    return out


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_effects_of_a_number_are_what_peers_move_it_by_in_its_own_unit(scale: float) -> None:
    """All saw the same people, so each peer's effect is the deviation of what its columns add, over the rows."""
    model = learned(NUMBER, scale * people()["y"] + 7.0)
    moved = contributions(model)
    for name, effect in model.effects.items():
        assert effect == pytest.approx(moved[name].std(), rel=1e-6)
    for coefficient in model.coefficients:
        if coefficient.peer is not None:
            assert abs(coefficient.effect) == pytest.approx(
                abs(coefficient.raw) * people()[coefficient.name].std(), rel=1e-6
            )


def test_another_unit_of_the_label_changes_nothing_else() -> None:
    """Dollars for cents: everything in the label's unit is so many times larger, and R² and weights stay."""
    label, times, more = people()["y"], 100.0, 7.0
    small, large = learned(NUMBER, label, 0.5), learned(NUMBER, times * label + more, 0.5)
    assert large.intercept == pytest.approx(times * small.intercept + more)
    assert large.raw_intercept == pytest.approx(times * small.raw_intercept + more)
    assert large.effects == pytest.approx({name: times * effect for name, effect in small.effects.items()})
    for before, after in zip(small.coefficients, large.coefficients, strict=True):
        now = np.array([after.standardised, after.raw, after.effect])
        np.testing.assert_allclose(now, times * np.array([before.standardised, before.raw, before.effect]), rtol=1e-7)
    for before, after in (
        (small.blocks.shared, large.blocks.shared),
        *((small.blocks.peers[peer], large.blocks.peers[peer]) for peer in small.peers),
    ):
        np.testing.assert_allclose(after, times * np.array(before), rtol=1e-7, atol=1e-9)
    assert large.estimate.error == pytest.approx(times * small.estimate.error)
    assert large.estimate.r2 == pytest.approx(small.estimate.r2)
    assert [o.error for o in large.estimate.outlooks] == pytest.approx(
        [times * o.error for o in small.estimate.outlooks]
    )
    assert large.certificate is not None
    assert small.certificate is not None
    assert large.certificate.expected == pytest.approx(small.certificate.expected), (
        "in standard deviations of the label"
    )
    rows = pa.table(people())
    np.testing.assert_allclose(large.predict(rows).score, times * small.predict(rows).score + more, rtol=1e-9)
    alone = rows.drop_columns(["v1"])
    np.testing.assert_allclose(large.predict(alone).score, times * small.predict(alone).score + more, rtol=1e-9)


def test_block_means_are_what_peers_add_to_the_rows_of_a_block() -> None:
    model = learned(NUMBER, people()["y"])
    code = np.searchsorted(["a", "b", "c"], people()["s"])
    moved = contributions(model)
    centres = {c.name: c.raw * c.centre for c in model.coefficients}
    for peer, names in (("one", ("u1", "u2")), ("two", ("v1",))):
        for codes, mean in zip(model.blocks.codes, model.blocks.peers[peer], strict=True):
            rows = code == codes[0]
            assert mean == pytest.approx(moved[peer][rows].mean() - sum(centres[name] for name in names), abs=1e-8)


def test_effects_of_classes_are_one_for_each() -> None:
    label = np.array(["low", "middle", "high"])[np.digitize(people()["y"], [-10.0, -6.0])]
    model = learned(CLASSES, label)
    for at in range(3):
        moved = contributions(model, at)
        for name, effect in model.effects.items():
            assert effect[at] == pytest.approx(moved[name].std(), rel=1e-6)


def test_what_to_expect_of_a_number_is_what_new_rows_show() -> None:
    """Given the label, peers' columns are unrelated here: nothing is hidden that matters."""

    def given_the_label(seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        y = rng.normal(size=ROWS)
        u1, u2, v1 = rng.normal(size=(3, ROWS)) + [[0.8], [-0.5], [1.0]] * y
        return {
            "y": 50 + 3 * y,
            "s": np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])],
            "u1": u1,
            "u2": u2,
            "v1": v1,
        }

    columns, new = given_the_label(1), given_the_label(2)
    model = learned(NUMBER, columns["y"], columns=columns)
    off = new["y"] - model.predict(pa.table(new)).score
    unrelated = model.estimate.outlooks[0]
    assert unrelated.error == pytest.approx(float(np.mean(off**2)) ** 0.5, rel=0.04)
    assert unrelated.r2 == pytest.approx(1 - np.mean(off**2) / new["y"].var(), abs=0.02)
