"""From parts of scores to a model: formulas for every set of peers, what to expect, what is said, what is refused."""

from dataclasses import replace
from itertools import combinations

import pytest
from tests.unit.learning.scored import people
from tests.unit.scored import CONTRACT, scored_model, scored_parts

import radocraft as rc
from radocraft.contract import Contract
from radocraft.errors import LearnError
from radocraft.gate import Policy
from radocraft.model import ScoreModel
from radocraft.parts import Part

THREE = CONTRACT + "peers.club.features = { club_score = 'score' }\n"
UNKEYED = CONTRACT.replace('key = [{ name = "born", day_of_year = true }]\n', "")


def wide(peers: int) -> str:
    """A contract of so many peers, without a key."""
    lines = UNKEYED.splitlines()[:-2]
    return "\n".join([*lines, *(f"peers.p{at}.features = {{ score{at} = 'score' }}" for at in range(peers))])


def test_every_set_of_peers_has_its_formula() -> None:
    model = scored_model(1000, contract=THREE)
    peers = ("bank", "shop", "club")
    assert [head.peers for head in model.heads] == [s for n in range(4) for s in combinations(peers, n)]
    assert model.full.peers == model.peers == peers
    assert all(len(head.weights) == len(head.peers) for head in model.heads)
    assert model.outlook is not None
    assert {*model.outlook.alone} == {*model.outlook.without} == {*peers}


def test_of_many_peers_some_sets_have_one() -> None:
    """64 formulas of six peers would say little that 14 do not; what is missing is said with what there is."""
    contract = wide(6)
    model = scored_model(1000, contract=contract)
    assert sorted(len(head.peers) for head in model.heads) == [0, *[1] * 6, *[5] * 6, 6]
    with pytest.raises(LearnError, match=r"no formula for the scores of p0, p1 alone\. It has them for: none; p0; p1"):
        model.head_of(("p0", "p1"))


def test_outlooks_without_a_peer_lose_what_it_adds() -> None:
    told = scored_model(4000).outlook
    assert told is not None
    for peer, other in (("bank", "shop"), ("shop", "bank")):
        assert told.log_loss.value < told.without[peer].log_loss.value
        assert told.without[peer].log_loss.value == pytest.approx(told.alone[other].log_loss.value, abs=0.01)
    assert told.error.value < min(told.base_rate, told.alone["bank"].error.value)
    assert told.gain.log_loss.value == pytest.approx(
        min(alone.log_loss.value for alone in told.alone.values()) - told.log_loss.value
    )


def test_the_average_gives_everybody_the_same_weight_and_the_signature_none() -> None:
    contract = Contract.parse(CONTRACT)
    model = rc.learn(scored_parts(1000), contract, method="average")
    assert isinstance(model, ScoreModel)
    assert model.head == "average"
    assert (model.full.weights, model.full.signature, model.full.intercept) == ((0.5, 0.5), 0.0, 0.0)
    assert (model.head_of(("bank",)).weights, model.head_of(()).signature) == ((1.0,), 1.0)
    assert not any("mean of the peers' log-odds" in note for note in model.notes)


def test_log_odds_of_signatures_are_in_the_order_of_the_codes() -> None:
    """Rows were drawn at -1, 0 and 1; nobody's age is unknown, so that tells nothing."""
    model = rc.learn(scored_parts(20_000, exact=True), Contract.parse(CONTRACT))
    assert isinstance(model, ScoreModel)
    assert model.signatures == pytest.approx([-1.0, 0.0, 1.0, 0.0], abs=0.1)


def test_related_peers_and_few_rows_are_remarked_on() -> None:
    related = scored_model(6000, related=0.8)
    assert related.relation.source == "linked groups"
    assert any(note.startswith("bank and shop know largely the same (correlation 0.") for note in related.notes)
    assert not any("know largely the same" in note for note in scored_model(6000).notes)
    few = scored_model(400)
    assert any("the mean of the peers' log-odds is as good as fitted weights" in note for note in few.notes)


def test_without_a_key_the_correlation_is_assumed_and_said_to_be() -> None:
    model = scored_model(2000, contract=UNKEYED)
    assert model.relation.source == "assumed"
    assert model.relation.correlation[0][1] == pytest.approx(0.3, abs=0.01)
    assert any("assumed (correlation 0.30), not measured: a neutral key" in note for note in model.notes)


def test_a_peer_that_adds_nothing_is_named() -> None:
    """Its scores go the wrong way."""
    world = people(4000, 0)
    turned = replace(world, scores=world.scores * [1.0, -1.0])
    parts = [Part.of(turned.release(peer, Policy())) for peer in (0, 1)]
    model = rc.learn(parts, world.contract)
    assert isinstance(model, ScoreModel)
    assert model.full.weights[1] == 0.0 < model.full.weights[0]
    assert "p1 adds nothing to the others: its weight is 0" in model.notes
    assert "adds nothing" not in " ".join(scored_model(4000).notes)


def test_who_is_absent_is_named_and_what_peers_note_is_kept() -> None:
    contract = Contract.parse(THREE)
    bank, shop, _ = scored_parts(2000, contract=THREE)
    noted = rc.Part(bank.table, {**bank.metadata, "notes": ["mind the gap"]})
    model = rc.learn([noted, shop], contract)
    assert model.notes[0] == "learned without club: their part was not given"
    assert model.notes[-1] == "bank: mind the gap"
    assert [origin.hash for origin in model.learned_from] == [part.metadata["hash"] for part in (bank, shop)]


def test_what_cannot_be_learned_from_is_refused() -> None:
    contract, parts = Contract.parse(CONTRACT), scored_parts(1000)
    with pytest.raises(LearnError, match="at least two"):
        rc.learn(parts[:1], contract)
    with pytest.raises(LearnError, match="Two parts come from the same peer"):
        rc.learn([parts[0], parts[0]], contract)
    for method in ("matching", "drl"):
        with pytest.raises(LearnError, match=f"The method '{method}' is for contracts of columns"):
            rc.learn(parts, contract, method=method)
    for share in (0.0, 1.1, -1.0):
        with pytest.raises(LearnError, match="in_common"):
            rc.learn(parts, contract, in_common=share)
    columns, tables = rc.example_peers(rows=300)
    with pytest.raises(LearnError, match="'average' is for contracts of scores"):
        rc.learn([rc.share(tables[peer], columns, peer) for peer in tables], columns, method="average")


def test_a_share_in_common_is_divided_by() -> None:
    """The same sums say that people who are only half the same are twice as related."""
    contract, parts = Contract.parse(CONTRACT), scored_parts(20_000, related=0.3, exact=True)
    whole, half = (rc.learn(parts, contract, in_common=share).relation.correlation[0][1] for share in (1.0, 0.5))
    assert whole == pytest.approx(0.3, abs=0.1)
    assert half == pytest.approx(2 * whole, rel=0.15)


def test_order_of_parts_changes_no_prediction() -> None:
    contract, parts = Contract.parse(CONTRACT), scored_parts(2000)
    one, other = (rc.learn(given, contract) for given in (parts, parts[::-1]))
    assert isinstance(one, ScoreModel)
    assert isinstance(other, ScoreModel)
    assert dict(zip(one.peers, one.full.weights, strict=True)) == pytest.approx(
        dict(zip(other.peers, other.full.weights, strict=True)), abs=0.05
    )
    assert one.signatures == pytest.approx(other.signatures)
