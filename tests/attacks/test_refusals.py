"""To be refused says something, too: each answer is counted, also that there is none."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from tests.attacks.worlds import without
from typer.testing import CliRunner

from radocraft import Contract, Policy, learn, open_source, share
from radocraft.cli import app
from radocraft.errors import OneClass, PolicyRefusal
from radocraft.gate import Noise, epsilon_of
from radocraft.gate._release import Spend, release
from radocraft.ledger import Ledger, Withheld
from radocraft.peer._counting import count_scores
from radocraft.rows import craft

CONTRACT = Contract.parse("""
name = "rare"
label = { column = "ill", positive = 1, negative = 0 }
peers.clinic.features = { days = { kind = "numeric", centre = 0, scale = 1 } }
""")
TWO = Contract.parse("""
name = "two"
label = { column = "ill", positive = 1, negative = 0 }
peers.clinic.features = { days = { kind = "numeric", centre = 0, scale = 1 } }
peers.other.features = { hours = { kind = "numeric", centre = 0, scale = 1 } }
""")
ROWS, ILL = 400, 12


def patients(ill: int = ILL) -> pa.Table:
    return pa.table({"ill": np.arange(ROWS) < ill, "days": np.random.default_rng(0).normal(size=ROWS)}).cast(
        pa.schema({"ill": pa.int64(), "days": pa.float64()})
    )


def refused(ill: int, trials: int) -> float:
    """How often noise says that too few are ill."""
    tally, count = craft(patients(ill), CONTRACT, "clinic"), 0
    for at in range(trials):
        try:
            release(tally, CONTRACT, Policy(), Noise.seeded("refused", at))
        except PolicyRefusal as refusal:
            count += Spend(*refusal.spent).rho > 0.0
    return count / trials


def test_refusals_alone_would_tell_how_many_are_ill():
    """Whoever could ask as often as he likes would need no part."""
    assert refused(ILL - 2, 60) > refused(ILL + 2, 60) + 0.2


def test_a_request_that_is_refused_by_noise_spends_what_it_says(tmp_path):
    policy = Policy(ledger=str(tmp_path / "ledger"), table="stays", lifetime_releases=4)
    answers = []
    for at in range(12):
        table = patients(ILL - 5).set_column(1, "days", pa.array(np.full(ROWS, at / 100)))  # never the same
        job = hashlib.sha256(str(at).encode()).hexdigest()
        try:
            share(table, CONTRACT, "clinic", policy=policy, output=tmp_path / f"{at}", job=job)
            answers.append("part")
        except PolicyRefusal as refusal:
            answers.append("budget" if "lifetime budget" in str(refusal) else "noise")
    history = Ledger(tmp_path / "ledger").history()
    assert history.count("stays") == 4
    assert answers.count("budget") == 8 == sum(answer == "budget" for answer in answers[4:])
    withheld = [*history.withheld("stays")]
    assert len(withheld) == answers.count("noise") > 0
    assert all(line.rho > 0.0 and line.job for line in withheld)
    assert history.spent("stays").rho >= sum(line.rho for line in withheld)
    said = CliRunner().invoke(app, ["ledger", str(tmp_path / "ledger")])
    assert said.exit_code == 0, said.output
    assert "withheld" in said.output
    told = CliRunner().invoke(app, ["ledger", str(tmp_path / "ledger"), "--json"])
    assert told.exit_code == 0
    assert '"state": "withheld"' in told.output


def test_no_model_makes_one_row_fail():
    """A learner chooses the weights: were it an error that a value overflows, errors would tell the largest value."""
    table = patients(200).append_column("hours", patients(200)["days"])
    model = learn([share(table, TWO, peer, policy=Policy.exact()) for peer in TWO.peers], TWO)
    days = table["days"].to_numpy()
    for limit in (np.max(days) - 0.1, np.max(days) + 0.1):
        (own,) = model.of_peer("clinic")
        steep = own.model_copy(update={"raw": float(np.finfo(float).max) / (limit - own.centre)})
        hostile = model.model_copy(update={"coefficients": (steep, *model.of_peer("other"))})
        counts = count_scores(open_source(table), hostile, "clinic", Policy()).rows
        less = count_scores(open_source(without(table, int(days.argmax()))), hostile, "clinic", Policy()).rows
        assert counts.sum() == ROWS
        assert np.abs(counts - less).sum() == 1


@pytest.mark.parametrize("job", [None, "f" * 64])
def test_asked_again_noise_is_not_drawn_until_it_lets_the_table_pass(job, tmp_path):
    """A part that leaves because its noise was lucky would say more than its noise is worth."""
    said = set()
    for at in range(5):
        with pytest.raises((PolicyRefusal, OneClass)) as refused:
            share(patients(1), CONTRACT, "clinic", output=tmp_path / "part", job=job and f"{at}{job[1:]}")
        said.add(str(refused.value).partition(" The table is as it was")[0])
    (line,) = Ledger(tmp_path / "clinic.ledger").lines()
    assert isinstance(line.entry, Withheld)
    assert line.entry.rho > 0.0
    assert len(said) == 1
    share(patients(40), CONTRACT, "clinic", output=tmp_path / "part", job=job)  # another table


def test_a_request_that_asks_for_more_than_remains_uses_it_up(tmp_path):
    """What a release costs depends on noisy numbers. To be told often that it is too much would say what they are."""
    policy = Policy(ledger=str(tmp_path / "ledger"), table="stays", lifetime_epsilon=0.5)
    for at in range(3):
        with pytest.raises(PolicyRefusal, match="lifetime budget"):
            share(patients(40 + at), CONTRACT, "clinic", policy=policy, output=tmp_path / "part", job=f"{at}" * 64)
    spent = [line.entry.rho for line in Ledger(tmp_path / "ledger").lines()]
    assert spent[1:] == [0.0, 0.0]
    assert epsilon_of(spent[0], 1e-6) == pytest.approx(0.5)
    with pytest.raises(PolicyRefusal, match="lifetime budget"):  # the peer's own people lose nothing by a mistake
        share(patients(50), CONTRACT, "clinic", policy=policy, output=tmp_path / "part")
    assert len(Ledger(tmp_path / "ledger").lines()) == 3
