"""Scores leave by no side door either: a row shows in noisy numbers alone, and they cost what they say.

See `tape` for how that is shown, without one trial.
"""

import json

import numpy as np
import pytest
from tests.attacks.tape import Recording, Replaying, Tape

from radocraft import Contract, Part, Policy
from radocraft.gate import Release, release_scores
from radocraft.sums import ScoreCells

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "age", edges = [30, 50] }, { name = "town", categories = ["a", "b"] }]
peers.bank.features = { risk = "score" }
peers.shop.features = { habit = "score" }
key = [{ name = "born", last_digits = 2 }]
""")
POLICIES = {
    "default": Policy(),
    "little noise": Policy(1, noise=0.01),
    "epsilon": Policy(epsilon=8),
    "labels only": Policy(signatures="labels-only"),
}
ROWS = 3000


def held() -> dict[str, np.ndarray]:
    """Rows whose first is as far out as a score can be, of the rarer label."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(ROWS) < 0.2, 1, -1)
    scores = np.clip(labels - 1.0 + 1.5 * rng.normal(size=ROWS), -6, 6)
    labels[0], scores[0] = 1, -6.0
    return {
        "signatures": rng.integers(0, 12, ROWS),
        "labels": labels,
        "scores": scores,
        "keys": rng.integers(-1, 100, ROWS),
    }


def pair(gone: int, policy: Policy) -> tuple[Release[ScoreCells], Release[ScoreCells], Tape]:
    """What leaves of all rows and of all but one, when all noisy numbers are the same."""
    tape, whole = Tape(), held()
    less = {name: np.delete(column, gone) for name, column in whole.items()}
    released = [
        release_scores(CONTRACT, "bank", **rows, policy=policy, noise=noise)
        for rows, noise in ((whole, Recording(tape, "scores")), (less, Replaying(tape)))
    ]
    return released[0], released[1], tape


def content(released: Release[ScoreCells]) -> str:
    """Everything in the file, but for the time."""
    part = Part.of(released)
    return json.dumps({**part.metadata, "created": "", "hash": "", "table": part.table.to_pylist()})


@pytest.mark.parametrize("name", [*POLICIES])
@pytest.mark.parametrize("gone", [0, 1, 2, 3])
def test_a_row_shows_in_noisy_numbers_alone_and_they_cost_what_they_say(name: str, gone: int) -> None:
    whole, rest, tape = pair(gone, POLICIES[name])
    assert content(whole) == content(rest)
    assert 0 < tape.spent <= whole.spend.rho


def test_the_cost_is_not_far_above_what_the_worst_row_makes_of_it() -> None:
    """A row of the rarer label whose score is as far out as it can be."""
    whole, _, tape = pair(0, Policy())
    assert tape.spent > 0.5 * whole.spend.rho


def test_counts_of_scores_are_accounted_for() -> None:
    """On the tape are all tables: rows by label and signature, two sums, residuals, groups and scores by label."""
    *_, tape = pair(0, Policy())
    assert len(tape.noisy) == 2 + 2 + 1 + 2 + 2
    sizes = [np.size(numbers) for numbers in tape.noisy]
    assert sizes[-2:] == [20, 20]
