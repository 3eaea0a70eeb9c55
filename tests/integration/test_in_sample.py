"""The in-sample trap: a peer of pure noise with a forest ruins the model, if its scores are of rows it has seen.

Out of fold, as they always are, they get next to no weight; where each person has many
rows, that takes `group`.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from radocraft import Contract, Part, learn
from radocraft.gate import Noise, release_scores
from radocraft.rows import ScoredRows, score_rows

PEOPLE, DRAWS = 4000, 3
FEATURES = [f"v{at}" for at in range(5)]
FOREST = RandomForestClassifier(20, random_state=0)


def agree(score: str = '"score"') -> Contract:
    return Contract.parse(f"""
name = "trap"
label = {{ column = "y", positive = 1, negative = 0 }}
shared = [{{ name = "s", categories = [0, 1] }}]
peers.bank.features = {{ useful = "score" }}
peers.guess.features = {{ useless = {score} }}
""")


def people(seed: int, rows_each: int) -> pa.Table:
    """The bank's columns tell the label; the guesser's are noise, nearly the same in all rows of a person."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(PEOPLE), rows_each)
    rows = len(person)
    y = rng.integers(0, 2, PEOPLE)[person]
    s = (rng.random(PEOPLE)[person] < 0.3 + 0.2 * y).astype(int)
    columns = {"y": y, "s": s, "person": person, "u": rng.normal(size=rows) + 1.1 * y}
    columns |= {name: rng.normal(size=PEOPLE)[person] + 1e-3 * rng.normal(size=rows) for name in FEATURES}
    return pa.table(columns)


@dataclass(frozen=True)
class Learned:
    """The weight of noise beside the bank's; the error on new people, and what the bank's score alone has."""

    weight: float
    error: float
    alone: float


def learned(train: pa.Table, test: pa.Table, contract: Contract, useless: ScoredRows, new: np.ndarray) -> Learned:
    """From what leaves both peers; ``new`` are the guesser's scores of new people."""
    useful, bank = score_rows(train.select(["y", "s", "u"]), contract, "bank", scorer=LogisticRegression())
    model = learn([part(contract, "bank", useful), part(contract, "guess", useless)], contract)
    head = next(head for head in model.heads if head.peers == ("bank", "guess"))
    scores = np.column_stack([bank.score(test)["useful"].to_numpy(), new])
    signature = np.array(model.signatures)[test["s"].to_numpy()]
    told = head.intercept + scores @ head.weights + head.signature * signature
    truth = test["y"].to_numpy() == 1
    error, alone = (float(np.mean((log_odds > 0) != truth)) for log_odds in (told, scores[:, 0]))
    return Learned(head.weights[1], error, alone)


def part(contract: Contract, peer: str, rows: ScoredRows) -> Part:
    columns = {"signatures": rows.signatures, "labels": rows.labels, "scores": rows.scores}
    return Part.of(release_scores(contract, peer, noise=Noise.seeded(peer), **columns))


def out_of_fold(train: pa.Table, test: pa.Table, contract: Contract, columns: list[str]) -> Learned:
    rows, scorer = score_rows(train.select(["y", "s", *columns]), contract, "guess", scorer=FOREST)
    return learned(train, test, contract, rows, scorer.score(test)["useless"].to_numpy())


def in_sample(train: pa.Table, test: pa.Table) -> Learned:
    """What a peer would release that scores the rows its model was fitted on."""
    matrix, fresh = (np.column_stack([table[name].to_numpy() for name in FEATURES]) for table in (train, test))
    y = train["y"].to_numpy()
    forest = clone(FOREST).fit(matrix, y)
    seen, new = (logit(np.clip(forest.predict_proba(rows)[:, 1], 0.01, 0.99)) for rows in (matrix, fresh))
    return learned(train, test, agree(), ScoredRows(train["s"].to_numpy(), 2 * y - 1, None, seen, None), new)


def assert_useless_is_told_from_ruinous(useless: list[Learned], ruinous: list[Learned]) -> None:
    """On average of some draws: what chance has left to noise is little."""
    assert np.mean([one.weight for one in useless]) < 0.1
    assert np.mean([one.error - one.alone for one in useless]) < 0.005
    assert min(one.weight for one in ruinous) > 1.0
    assert min(one.error - one.alone for one in ruinous) > 0.1


def test_noise_ruins_the_model_in_sample_and_has_no_weight_out_of_fold():
    draws = [(people(seed, 1), people(seed + 100, 1)) for seed in range(DRAWS)]
    found = [out_of_fold(train, test, agree(), FEATURES) for train, test in draws]
    assert_useless_is_told_from_ruinous(found, [in_sample(*draws[0])])


def test_with_many_rows_of_each_person_the_same_takes_a_group():
    draws = [(people(seed, 4), people(seed + 100, 4)) for seed in range(DRAWS)]
    grouped = agree('{ kind = "score", group = "person" }')
    found = [out_of_fold(train, test, grouped, ["person", *FEATURES]) for train, test in draws]
    assert_useless_is_told_from_ruinous(found, [out_of_fold(*draws[0], agree(), FEATURES)])
