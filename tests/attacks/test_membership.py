"""Is this row in the table? The strongest attacker, against all that leaves.

The attacker knows every other row, the row in question, the contract, the policy and this code. It sees more than
the part holds: the noisy counts of signatures before anything is made of them, and the noisy counts by which units
were found; everything else in a part (codes, notes, what was rolled up, shared sums, hidden moments) follows from
these and from the cells, see `test_side_doors`. What it makes of them is the likelihood ratio of "with the row"
against "without": it takes off what the other rows come to, and weighs what is left by how far the row would move it,
against the spread that it has seen in hundreds of parts of the same table. No test does better against normal noise,
and none can have an AUC above Phi(sqrt(rho)).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import rankdata

from radocraft import Contract, Policy
from radocraft.contract._columns import moment_labels
from radocraft.gate import _release as gate
from radocraft.gate import _units as units
from radocraft.gate._account import auc_of
from radocraft.gate._noise import Noise
from radocraft.gate._units import Histogram, settle_units
from radocraft.sums._bounds import GRID, Bounds
from radocraft.sums._tally import Tally

TRIALS = 2500
"""With the row, and as many without it."""
SEEN = 300
"""Parts of the table without the row that the attacker has seen before."""

TEXT = """
name = "risk"
label = { column = "bad", positive = 1, negative = -1 }
shared = [{ name = "region", categories = ["a", "b"] }]

[peers.bank.features]
debt = { kind = "numeric", centre = 0, scale = 1 }
income = INCOME
"""
FIXED = Contract.parse(TEXT.replace("INCOME", '{ kind = "numeric", centre = 0, scale = 1 }'))
OPEN = Contract.parse(TEXT.replace("INCOME", '"numeric"'))
COLUMNS = ("debt", "income")
DEFAULT, ONE, FOUR = Policy(), Policy(epsilon=1), Policy(epsilon=4)


ROWS = 3000
FAR = 30.0
"""As far out as any value, in every column of the row in question."""


@cache
def table(having: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, labels and values; the row is in a block that is about to be rolled up, and sometimes is."""
    rng = np.random.default_rng(1)
    codes = (np.arange(ROWS) < 24).astype(np.int64)[:, None]
    labels, values = np.where(np.arange(ROWS) % 2, 1, -1), rng.normal(size=(ROWS, 2))
    if not having:
        return codes, labels, values
    return np.vstack([codes, [[1]]]), np.append(labels, 1), np.vstack([values, [[FAR, FAR]]])


@cache
def incomes(having: bool) -> np.ndarray:
    """In rising order."""
    return np.sort(table(having)[2][:, 1])


@cache
def sums(having: bool, *constants: tuple[float, ...]) -> Tally:
    """The tally, in the contract's units or in these."""
    codes, labels, values = table(having)
    given = {"codes": codes, "labels": labels, "values": values}
    units_of = {"constants": {"income": at for at in constants}}
    return Tally.of_rows(OPEN if constants else FIXED, "bank", COLUMNS, **given, **units_of, bounds=Bounds())


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


def settled(contract: Contract, having: bool, noise: Noise) -> Tally:
    """The tally in units that the rows gave, as crafting does it."""
    if contract is FIXED:
        return sums(having)

    def count(edges):
        return {"income": np.diff(np.searchsorted(incomes(having), edges["income"]))}

    constants, spend = settle_units({"income": 0}, count, len(incomes(having)), noise)
    return replace(sums(having, constants["income"]), settled=spend.rho)


def surprises(contract: Contract, policy: Policy, having: bool, view: View) -> tuple[list[float], float]:
    """One release: what is left of each number that the row could have moved; and what it cost."""
    view.histograms.clear()
    noise = Noise()
    tally = settled(contract, having, noise)
    released = gate.release.__wrapped__(tally, contract, policy, noise)
    others, cells, counted = sums(False, *tally.constants.values()), view.cells, view.counted
    block = int(np.flatnonzero((others.codes[:, 0] == 1) & (others.labels == 1))[0])
    place = view.group[counted.place]
    mine, label = place == place[block], [*moment_labels(contract, "bank")].index(1)
    known = np.bincount(counted.place, others.rows, len(counted.counts))
    more = counted.counts - known
    return [
        *(cells.sums[place[block]] - others.sums[mine].sum(axis=0) / GRID),
        *(cells.by_label[label] - others.moments[label, :2, :2] / GRID**2)[np.triu_indices(2)],
        cells.rows[place[block]] - others.rows[mine].sum(),
        more[counted.place[block]],
        more[counted.labels == 1].sum(),
        np.log(cells.levels.moments),
        sum(where_it_is(histogram) for histogram in view.histograms),
    ], released.spend.rho


def where_it_is(histogram: Histogram) -> float:
    """What is left of the count of the bin in which the row would be, in deviations."""
    at = int(np.searchsorted(histogram.edges, FAR)) - 1
    if not 0 <= at < len(histogram.counts):
        return 0.0
    others = np.diff(np.searchsorted(incomes(False), histogram.edges[at : at + 2]))[0]
    return float(histogram.counts[at] - others) / histogram.sd


def moved(policy: Policy) -> np.ndarray:
    """By how much the row moves each of these: it is cut to the longest that a row can be."""
    values = (sums(True).sums - sums(False).sums).sum(axis=0) / GRID
    of_all = 0.5 / ROWS if policy.epsilon is None else 0.0
    products = np.outer(values, values)[np.triu_indices(2)]
    return np.array([*values, *products, 1.0, 1.0, 1.0, of_all, units._SHARE**-1 / ROWS])


def audit(
    contract: Contract, policy: Policy, view: View, trials: int = TRIALS, seen: int = SEEN
) -> tuple[float, float]:
    """The attacker's AUC, and the most that the account allows it."""
    drawn = {
        having: [surprises(contract, policy, having, view) for _ in range(trials + seen * (not having))]
        for having in (False, True)
    }
    rho = max(cost for _, cost in drawn[False] + drawn[True])
    without, having = (np.array([one for one, _ in drawn[side]]) for side in (False, True))
    spread = np.cov(without[:seen].T)
    size = np.sqrt(np.diag(spread)) + 1e-9
    weights = np.linalg.pinv(spread / np.outer(size, size) + 1e-6 * np.eye(len(size))) @ (moved(policy) / size)
    ranks = rankdata(np.concatenate([without[seen:], having]) / size @ weights)
    return float((ranks[trials:].sum() - trials * (trials + 1) / 2) / trials**2), auc_of(rho)


def three_errors(trials: int) -> float:
    """Three standard errors of an AUC, at most."""
    return float(3.0 * np.sqrt((2 * trials + 1) / (12 * trials**2)))


@pytest.mark.parametrize(
    ("contract", "policy"),
    [(OPEN, DEFAULT), (FIXED, FOUR), (FIXED, ONE)],
    ids=["default, units from the data", "epsilon 4", "epsilon 1"],
)
def test_membership_is_no_easier_to_tell_than_the_account_says(contract, policy, view):
    found, most = audit(contract, policy, view)
    print(found, most)
    assert found <= most + three_errors(TRIALS)
    assert found > 0.5 + 0.7 * (most - 0.5) - three_errors(TRIALS), "a weak attack shows nothing"
