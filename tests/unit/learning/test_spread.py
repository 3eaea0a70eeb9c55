"""Variances of scores by label: what rows show, and coefficients that do not move."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.noisy import noisy_part

from radocraft import Contract, Policy, learn
from radocraft.arrays import Floats
from radocraft.learning._blocks import Blocks, merge
from radocraft.learning._matching import fit_matching
from radocraft.learning._population import Assumed, Population
from radocraft.learning._spread import by_scores, spread_by_label, variance_inside

TEXT = """
name = "spread"
label = {{ column = "y", {label} }}
shared = [{{ name = "s", categories = ["a", "b", "c"] }}]
peers.one.features = {{ u1 = "numeric", u2 = "numeric"{both} }}
peers.two.features = {{ v1 = "numeric"{both} }}
"""
TWO = Contract.parse(TEXT.format(label="positive = 1, negative = 0", both=""))
COMMON = Contract.parse(TEXT.format(label="positive = 1, negative = 0", both=', w = "numeric"'))
THREE = Contract.parse(TEXT.format(label="classes = [0, 1, 2]", both=""))


def people(rows: int, classes: int, seed: int = 0) -> pa.Table:
    """Columns of label c vary 1 + c times as much, and are unrelated inside blocks but for ``w``."""
    rng = np.random.default_rng(seed)
    label, code = rng.integers(0, classes, rows), rng.integers(0, 3, rows)
    columns = rng.normal(size=(4, rows)) * (1.0 + label) + label * np.array([[0.8], [0.3], [0.5], [0.2]]) + 0.2 * code
    names = dict(zip(("u1", "u2", "v1", "w"), columns, strict=True))
    return pa.table({"y": label, "s": np.array(["a", "b", "c"])[code], **names})


def blocks_of(contract: Contract, table: pa.Table, policy: Policy) -> Blocks:
    parts = []
    for peer, held in contract.peers.items():
        parts.append(noisy_part(table.select(["y", "s", *held.features]), contract, peer, policy))
    return merge(parts, contract)


def inside_blocks(contract: Contract, table: pa.Table, blocks: Blocks, theta: Floats) -> dict[int, float]:
    """Variance of scores around their blocks' means, by label, from the joined rows."""
    columns = np.column_stack([table[name].to_numpy() for name in ("u1", "u2", *(["w"] if contract is COMMON else ()))])
    columns = np.column_stack([columns, table["v1"].to_numpy()])
    stacked = [(cells.centre[blocks.owned(at)], cells.scale[blocks.owned(at)]) for at, cells in enumerate(blocks.cells)]
    centre, scale = (np.concatenate(part) for part in zip(*stacked, strict=True))
    score = ((columns - centre) / scale) @ theta[-columns.shape[1] :]
    label = table["y"].to_numpy()
    code = np.searchsorted(["a", "b", "c"], table["s"].to_numpy(zero_copy_only=False))
    out = {}
    for own in np.unique(label).tolist():
        rests = [score[(label == own) & (code == at)] for at in range(3)]
        out[own] = float(np.concatenate([rest - rest.mean() for rest in rests]).var())
    return out


@pytest.mark.parametrize("contract", [TWO, COMMON, THREE])
def test_variances_by_label_are_those_of_the_joined_rows(contract: Contract) -> None:
    table = people(30_000, 3 if contract is THREE else 2)
    blocks = blocks_of(contract, table, Policy.exact(10))
    fit = fit_matching(blocks, 0.0)
    for at, spread in enumerate(spread_by_label(blocks, fit)):
        theta = fit.theta.reshape(len(fit.theta), -1)[:, at]
        found = spread.ratios * variance_inside(fit.known.each()[at], theta, 0.0)
        true = np.array([*inside_blocks(contract, table, blocks, theta).values()])
        np.testing.assert_allclose(found, true, rtol=0.06)
        assert true.max() / true.min() > 3


def test_seen_by_its_scores_a_fit_varies_as_it_does_by_its_columns() -> None:
    """`complete` of each peer's sums knows the same E, V_j and worst case, whatever columns several peers hold."""
    from radocraft.learning._completion import complete  # noqa: PLC0415

    blocks = blocks_of(COMMON, people(5000, 2), Policy.exact(10))
    fit = fit_matching(blocks, 0.0)
    small, short = by_scores(blocks, fit.layout, fit.theta[:, None])
    for caution in (0.0, 0.5, 1.0):
        seen = variance_inside(complete(small), short[:, 0], caution)
        assert seen == pytest.approx(variance_inside(fit.known, fit.theta, caution), rel=1e-9)


@pytest.mark.parametrize("policy", [Policy.exact(10), Policy()])
def test_labels_alike_are_told_alike_and_shares_add_up(policy: Policy) -> None:
    table = people(4000, 2)
    shuffled = table.set_column(0, "y", pa.array(np.random.default_rng(1).permutation(table["y"].to_numpy())))
    blocks = blocks_of(TWO, shuffled, policy)
    (spread,) = spread_by_label(blocks, fit_matching(blocks))
    assert spread.shares.sum() == pytest.approx(1.0)
    assert spread.shares @ spread.ratios == pytest.approx(1.0)
    assert spread.ratios[0] == pytest.approx(spread.ratios[1], rel=0.15)


def test_coefficients_do_not_move() -> None:
    """What is known of labels apart changes probabilities and what is told, and no weight."""
    parts = [
        noisy_part(people(4000, 2).select(["y", "s", *held.features]), TWO, peer, Policy.exact(10))
        for peer, held in TWO.peers.items()
    ]
    model, blocks = learn(parts, TWO, caution=0.25), merge(parts, TWO)
    mixed = replace(
        blocks, cells=tuple(replace(one, by_label=one.by_label.mean(axis=0)[None].repeat(2, 0)) for one in blocks.cells)
    )
    theta = fit_matching(mixed, 0.25).theta
    told = [c.standardised for c in model.coefficients]
    np.testing.assert_allclose(theta[1:], told, rtol=0, atol=1e-12)
    assert Population.of(mixed, fit_matching(mixed, 0.25)).rates(Assumed()).auc != pytest.approx(model.estimate.auc)
