"""Is this row in the table? The strongest attacker, against all that leaves.

The attacker knows every other row, the row in question, the contract, the policy and this code. It sees more than
the part holds: the noisy counts of signatures before anything is made of them, and the noisy counts by which units
were found; everything else in a part (codes, notes, what was rolled up, shared sums, hidden moments) follows from
these and from the cells, see `test_side_doors`. What it makes of them is the likelihood ratio of "with the row"
against "without": it takes off what the other rows come to, and weighs what is left by how far the row would move it,
against the spread that it has seen in parts of the same table. No test does better against normal noise, and none
can have an AUC above Phi(sqrt(rho)).

To have thousands of trials in seconds, each release is several: of every label there is a row that may be in the
table, and labels share nothing but the number of all rows, which is the same every time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import rankdata

from radocraft import Contract, Policy
from radocraft.arrays import add_up
from radocraft.contract import units_of
from radocraft.gate import Noise, estimate_units
from radocraft.gate import _release as gate
from radocraft.gate import _units as units
from radocraft.gate._account import auc_of
from radocraft.gate._units import Histogram
from radocraft.rows import craft_rows
from radocraft.sums import GRID, Bounds, Tally

TRIALS = 5200
"""Half of them with the row."""
SEEN = 800
"""Numbers without the row that the attacker has seen before."""
KINDS, OF_A_KIND = 8, 150
FEW = 9
"""Rows in the block of the row in question: it is rolled up in some releases and not in others."""

TEXT = """
name = "risk"
label = { column = "bad", classes = [0, 1, 2, 3, 4, 5, 6, 7] }
shared = [{ name = "region", categories = ["a", "b"] }]

[peers.bank.features]
debt = { kind = "numeric", centre = 0, scale = 1 }
income = INCOME
"""
FIXED = Contract.parse(TEXT.replace("INCOME", '{ kind = "numeric", centre = 0, scale = 1 }'))
OPEN = Contract.parse(TEXT.replace("INCOME", '"numeric"'))
FAR = np.column_stack([np.full(KINDS, 30.0), 100.0 * 4.0 ** np.arange(KINDS)])
"""The rows that may be in the table, one of every label: further out than any other, each on its own."""


@cache
def others() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, labels and values of all other rows."""
    labels = np.repeat(np.arange(1, KINDS + 1), OF_A_KIND)
    codes = (np.tile(np.arange(OF_A_KIND), KINDS) < FEW).astype(np.int64)[:, None]
    return codes, labels, np.random.default_rng(1).normal(size=(len(labels), 2))


@cache
def known(unit: tuple[float, ...] | None = None) -> Tally:
    """The tally of all other rows, in the contract's units or in these."""
    codes, labels, values = others()
    return craft_rows(
        OPEN if unit else FIXED,
        "bank",
        ("debt", "income"),
        codes=codes,
        labels=labels,
        values=values,
        bounds=Bounds(),
        constants={"income": unit} if unit else {},
    )


@cache
def bounded(unit: tuple[float, ...] | None = None) -> np.ndarray:
    """The rows in question as they are summed."""
    contract = OPEN if unit else FIXED
    centre, scale = units_of(contract, "bank", {"income": unit} if unit else {})
    return Bounds().of(contract, "bank", centre, scale).bounded(FAR)


def block_of(tally: Tally) -> np.ndarray:
    """For every label, the place of its block of few rows."""
    few = np.flatnonzero(tally.codes[:, 0] == 1)
    return few[np.argsort(tally.labels[few])]


def having(tally: Tally, there: np.ndarray) -> Tally:
    """The tally with some of the rows in question."""
    blocks, values = block_of(tally), there[:, None] * bounded(tally.constants.get("income"))
    rows, sums, moments = tally.rows.copy(), tally.sums.copy(), tally.moments.copy()
    rows[blocks] += there
    sums[blocks] += values
    moments[:, :2, :2] += values[:, :, None] * values[:, None, :]
    return replace(tally, rows=rows, sums=sums, moments=moments)


def estimated(contract: Contract, there: np.ndarray, noise: Noise) -> Tally:
    """The tally in units that the rows gave, as crafting does it."""
    if contract is FIXED:
        return having(known(), there)
    incomes = np.sort(np.append(others()[2][:, 1], FAR[there, 1]))

    def count(edges):
        return {"income": np.diff(np.searchsorted(incomes, edges["income"]))}

    constants, spend = estimate_units({"income": 0}, count, len(incomes), noise)
    return replace(having(known(constants["income"]), there), units_rho=spend.rho)


@dataclass
class View:
    """What the attacker sees of one release."""

    histograms: list[Histogram] = field(default_factory=list)
    cells: gate.Cells | None = None
    counted: gate.Counted | None = None
    group: np.ndarray | None = None


@pytest.fixture
def view(monkeypatch) -> View:
    """Filled anew by every release."""
    seen = View()

    def shared(cells, contract, counted, group):
        seen.cells, seen.counted, seen.group = cells, counted, group
        return cells

    def histogram(edges, counts, sd):
        seen.histograms.append(Histogram(edges, counts, sd))
        return seen.histograms[-1]

    monkeypatch.setattr(gate, "with_shared", shared)
    monkeypatch.setattr(units, "Histogram", histogram)
    return seen


def surprises(
    contract: Contract, policy: Policy, there: np.ndarray, view: View, noise: Noise
) -> tuple[np.ndarray, float]:
    """One release: by label, what is left of each number that its row could have moved; and what it cost."""
    view.histograms.clear()
    tally = estimated(contract, there, noise)
    rho = gate.release.__wrapped__(tally, contract, policy, noise).spend.rho
    rest, cells, counted = known(tally.constants.get("income")), view.cells, view.counted
    place, blocks = view.group[counted.place], block_of(rest)
    mine, count = place[blocks], len(cells.rows)
    more = counted.counts - np.bincount(counted.place, rest.rows, len(counted.counts))
    products = (cells.by_label - rest.moments[:, :2, :2] / GRID**2)[:, *np.triu_indices(2)]
    return np.column_stack(
        [
            (cells.sums - add_up(rest.sums, place, count) / GRID)[mine],
            products,
            (cells.rows - np.bincount(place, rest.rows, count))[mine],
            more[counted.place[blocks]],
            np.bincount(counted.labels, more)[1:],
            sum(map(where_they_are, view.histograms), start=np.zeros(KINDS)),
        ]
    ), rho


def where_they_are(histogram: Histogram) -> np.ndarray:
    """What is counted in the bins of the rows in question, where nobody else is, in deviations."""
    at = np.searchsorted(histogram.edges, FAR[:, 1]) - 1
    inside = (at < len(histogram.counts)) & (histogram.edges[np.minimum(at, len(histogram.counts))] > 4.0)
    return np.where(inside, histogram.counts[np.minimum(at, len(histogram.counts) - 1)] / histogram.sd, 0.0)


def ratio(without: np.ndarray) -> np.ndarray:
    """The weights of the likelihood ratio: how far the row moves each number, against how it spreads otherwise."""
    values = bounded()[0] / GRID
    bins = 1.0 / units._LEAST
    moved = np.array([*values, *np.outer(values, values)[np.triu_indices(2)], 1.0, 1.0, 1.0, bins])
    size = without.std(axis=0) + 1e-9
    spread = np.cov((without / size).T) + 1e-6 * np.eye(len(size))
    return np.asarray(np.linalg.solve(spread, moved / size) / size)


def scores(
    contract: Contract, policy: Policy, view: View, trials: int = TRIALS, seen: int = SEEN
) -> tuple[np.ndarray, np.ndarray, float]:
    """The attacker's score of every trial, whether the row was there, and the most that a release spent."""
    rng = np.random.default_rng(0)
    half = np.arange(KINDS) < KINDS // 2
    numbers, truth, costs = [], [], []
    for at in range((trials + 2 * seen) // KINDS):
        there = rng.permutation(half)
        found, rho = surprises(contract, policy, there, view, Noise.seeded("audit", at))
        numbers.append(found)
        truth.append(there)
        costs.append(rho)
    numbers, truth = np.concatenate(numbers), np.concatenate(truth)
    return numbers[2 * seen :] @ ratio(numbers[: 2 * seen][~truth[: 2 * seen]]), truth[2 * seen :], max(costs)


def auc_found(found: np.ndarray, truth: np.ndarray) -> float:
    """How often a trial with the row scores higher than one without."""
    ranks, yes, no = rankdata(found), int(truth.sum()), int((~truth).sum())
    return float((ranks[truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def audit(
    contract: Contract, policy: Policy, view: View, trials: int = TRIALS, seen: int = SEEN
) -> tuple[float, float]:
    """The attacker's AUC, and the most that the account allows it."""
    found, truth, rho = scores(contract, policy, view, trials, seen)
    return auc_found(found, truth), auc_of(rho)


def three_errors(trials: int) -> float:
    """Three standard errors of an AUC, at most."""
    return float(3.0 * np.sqrt((trials + 1) / (3 * trials**2)))


AUDITS = {
    "the default, units from the data": (OPEN, Policy()),
    "epsilon 1": (FIXED, Policy(epsilon=1)),
    "epsilon 4": (FIXED, Policy(epsilon=4)),
}


@pytest.mark.parametrize("name", [*AUDITS])
def test_membership_is_no_easier_to_tell_than_the_account_says(name, view):
    found, most = audit(*AUDITS[name], view)
    assert found <= most + three_errors(TRIALS)
    assert found > 0.5 + 0.7 * (most - 0.5) - three_errors(TRIALS), "a weak attack shows nothing"


# --- planted: each is caught ----------------------------------------------------------------------


def without_noise_on_one_column(exact, sd, noise, real=gate.noisy):
    out = real(exact, sd, noise)
    out[..., 0] = exact[..., 0]
    return out


def without_noise_in_counts(self, counted, group, levels, sd):
    return np.bincount(group[counted.place], self.tally.rows, int(group.max()) + 1).astype(np.int64)


def with_moments_unscaled(self, sd, real=gate._Gate.moments):
    return real(self, sd / GRID)


def with_the_same_seed(self, seed=None, real=Noise.__init__):
    real(self, bytes(32))


PLANTED = {
    "no noise on one column": (gate, "noisy", without_noise_on_one_column),
    "exact counts": (gate._Gate, "rows_of", without_noise_in_counts),
    "moments unscaled": (gate._Gate, "moments", with_moments_unscaled),
    "no bounding": (Bounds, "_square", lambda self, contract, peer: 2**40),
    "the same seed twice": (Noise, "__init__", with_the_same_seed),
}


@pytest.fixture(params=[*PLANTED])
def planted(request, monkeypatch):
    """One bug after the other, in the gate alone: the account does not know of it."""
    norm = Bounds().norm(FIXED, "bank")
    monkeypatch.setattr(Bounds, "norm", lambda self, contract, peer: norm)
    monkeypatch.setattr(*PLANTED[request.param])
    known.cache_clear()
    bounded.cache_clear()
    yield
    known.cache_clear()
    bounded.cache_clear()


@pytest.mark.usefixtures("planted")
def test_what_is_planted_is_caught(view):
    found, most = audit(FIXED, Policy(), view, trials=320, seen=200)
    assert found > most + three_errors(320)
