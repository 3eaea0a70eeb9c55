"""The generator against the law it says its people are drawn from."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import skew, spearmanr

import radocraft as rc
from radocraft.errors import StudyError
from radocraft.research.study._generator import generate_peers

ROWS = 60_000


@pytest.fixture(scope="module")
def related():
    return generate_peers(ROWS, positive=0.1, relation=0.6)


def inside_blocks(drawn, first, second):
    """The rank correlation of two columns, the mean over (signature, label), weighted by rows."""
    frame = drawn.joined.to_pandas()
    frame["band"] = np.searchsorted([30, 40, 50, 65], frame["age"], side="right")
    blocks = [rows[[first, second]].dropna() for _, rows in frame.groupby(["region", "band", "sex", "label"])]
    found = [(len(rows), spearmanr(rows[first], rows[second])[0]) for rows in blocks if len(rows) > 30]
    return np.average([rho for _, rho in found], weights=[count for count, _ in found])


def test_label_rate_is_what_was_asked_for(related):
    share = np.mean(related.joined["label"].to_numpy() == "yes")
    assert abs(share - 0.1) < 4 * np.sqrt(0.1 * 0.9 / ROWS)


@pytest.mark.parametrize("column", ["amount", "years"])
def test_columns_of_two_peers_are_related_inside_blocks_as_asked(related, column):
    apart = generate_peers(ROWS, positive=0.1, relation=0.0)
    names = f"peer1_{column}", f"peer2_{column}"
    assert inside_blocks(related, *names) > 0.15
    assert abs(inside_blocks(apart, *names)) < 0.02
    against = generate_peers(ROWS, positive=0.1, relation=-0.6)
    assert inside_blocks(against, *names) == pytest.approx(-inside_blocks(related, *names), abs=0.02)


def test_seed_draws_people_and_not_the_law(related):
    other = generate_peers(ROWS, positive=0.1, relation=0.6, seed=1)
    assert not other.joined.equals(related.joined)
    for name in ("peer1_visits", "peer2_claims"):
        means = [drawn.joined[name].to_numpy().mean() for drawn in (related, other)]
        assert abs(means[0] - means[1]) < 0.05
    assert generate_peers(100, seed=3).joined.equals(generate_peers(100, seed=3).joined)


def test_peers_hold_the_same_people_in_orders_of_their_own(related):
    first, second = related.tables.values()
    assert not first["age"].equals(second["age"])
    assert sorted(first["age"].to_pylist()) == sorted(second["age"].to_pylist())
    columns = ["region", "age", "sex", "label", "birthday", "peer1_trade"]
    whole = related.joined.select(columns).group_by(columns).aggregate([([], "count_all")])
    held = first.select(columns).group_by(columns).aggregate([([], "count_all")])
    order = [(name, "ascending") for name in columns]
    assert whole.sort_by(order).equals(held.sort_by(order))


def test_key_tells_nothing_and_numbers_are_skewed(related):
    frame = related.joined.to_pandas()
    rate = frame.groupby(frame["birthday"])["label"].apply(lambda label: (label == "yes").mean())
    assert len(rate) == 366
    assert rate.std() < 1.2 * np.sqrt(0.1 * 0.9 / (ROWS / 366))
    assert skew(frame["peer1_amount"].dropna()) > 3
    assert (frame["peer1_gains"] == 0).mean() > 0.8


@pytest.mark.parametrize("kind", ["numeric", "spline", "score"])
def test_its_contracts_fit_its_tables(kind):
    drawn = generate_peers(3000)
    contract = drawn.contract(kind)
    parts = [rc.share(table, contract, peer) for peer, table in drawn.tables.items()]
    assert {part.peer for part in parts} == {*drawn.tables}


def test_all_categories_occur(related):
    counts = {name: len(related.joined[name].unique()) for name in ("peer2_status", "peer2_trade", "peer2_place")}
    assert counts == {"peer2_status": 5, "peer2_trade": 12, "peer2_place": 50}


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(StudyError, match="two peers"):
        generate_peers(10, peers=1)
    assert isinstance(generate_peers(1).joined, pa.Table)
