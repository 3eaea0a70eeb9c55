"""Nothing leaves by a side door: what leaves is a function of noisy numbers, and these cost what they say.

See `tape` for how that is shown, without one trial: it is exact, and holds whatever is in the file.
"""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.attacks.tape import Recording, Replaying, Tape
from tests.attacks.worlds import LABELS, passed, rich_contract, rich_table, without

from radocraft import Part, Policy, craft, release
from radocraft.errors import PolicyRefusal
from radocraft.gate import _release as gate
from radocraft.gate import _signatures as signatures
from radocraft.gate._release import Release
from radocraft.sums._bounds import GRID, Bounds
from radocraft.sums._cells import ROLLED

TABLE = rich_table()
POLICIES = {
    "default": Policy(),
    "little noise": Policy(1, noise=0.01),
    "epsilon": Policy(epsilon=8),
    "labels only": Policy(signatures="labels-only"),
    "loose": Policy(bound=50, row_bound=50),
    "tight": Policy(bound=0.5, row_bound=0.25),
}


def content(released: Release) -> dict[str, object]:
    """Everything in the file, but for the time."""
    part = Part.of(released)
    return {**part.metadata, "created": "", "hash": "", "table": part.table.to_pylist()}


def doors(first: Release, other: Release) -> list[str]:
    """What differs in what leaves."""
    one, two = content(first), content(other)
    return [name for name in one if json.dumps(one[name]) != json.dumps(two[name])]


def pair(table, gone, contract, policy, fewer=1) -> tuple[Release, Release, Tape]:
    """What leaves of a table and of the same without some rows, when all noisy numbers are the same.

    What it costs to estimate units from the data is held against its own account first.
    """
    tape, out = Tape(), []
    for rows, noise in ((table, Recording(tape, "tape")), (without(table, *gone), Replaying(tape, fewer))):
        tally = craft(rows, contract, "bank", bounds=policy.bounds, noise=noise)
        assert tape.spent <= tally.units_rho
        out.append(release(tally, contract, policy, noise))
    return out[0], out[1], tape


@pytest.mark.parametrize("name", [*POLICIES])
def test_a_row_shows_in_noisy_numbers_alone_and_they_cost_what_they_say(name):
    row = 1 if name == "tight" else 0
    whole, rest, tape = pair(TABLE, [row], rich_contract(), POLICIES[name])
    assert doors(whole, rest) == []
    assert 0 < tape.spent <= whole.spend.rho


@pytest.mark.parametrize("label", [name for name in LABELS if name != "two values"])
def test_whatever_the_label_is(label):
    whole, rest, tape = pair(rich_table(label=label), [0], rich_contract(label), Policy())
    assert doors(whole, rest) == []
    assert 0 < tape.spent <= whole.spend.rho


def test_the_cost_is_not_far_above_what_the_worst_row_makes_of_it():
    """Else a guarantee would be given away: that row is as long as any, in a direction of its own."""
    whole, _, tape = pair(TABLE, [0], rich_contract(), Policy())
    assert tape.spent > 0.3 * whole.spend.rho


@pytest.mark.parametrize("policy", [Policy(signatures="labels-only"), Policy.exact(signatures="labels-only")])
def test_by_signature_nothing_leaves_where_the_policy_says_so(policy):
    table = passed(TABLE, rich_contract(), policy).cells
    assert (table.codes == ROLLED).all()
    assert sorted(table.labels.tolist()) == [-1, 1]


def test_where_signatures_are_too_many_to_list(monkeypatch):
    """Of a row with a signature that others have too; of others see `test_existence`."""
    monkeypatch.setattr(signatures, "MOST", 8)
    keys = TABLE.group_by(["bad", "region", "size"]).aggregate([([], "count_all")])
    assert pc.min(keys["count_all"]).as_py() == 1
    whole, rest, tape = pair(TABLE, [1], rich_contract(), Policy())
    assert whole.spend.delta == pytest.approx(1e-7)
    assert doors(whole, rest) == []
    assert 0 < tape.spent <= whole.spend.rho


@pytest.mark.parametrize("most", [1, 3])
def test_a_person_with_all_rows(most):
    policy = Policy(unit="person", person="who", rows_per_person=most)
    whole, rest, tape = pair(TABLE, [0, 1, 2], rich_contract(), policy, fewer=most)
    assert doors(whole, rest) == []
    assert 0 < tape.spent <= whole.spend.rho


def test_a_person_with_more_rows_than_a_sample_has_room_for(monkeypatch):
    """Whoever is taken out makes room in it: for as many rows of others as were counted, and no more."""
    monkeypatch.setattr("radocraft.rows._constants._SAMPLE", 120)
    many = pa.concat_tables([TABLE.slice(0, 1)] * 100 + [TABLE])
    policy = Policy(unit="person", person="who")
    whole, rest, tape = pair(many, range(103), rich_contract(), policy)
    assert doors(whole, rest) == []
    assert 0 < tape.spent <= whole.spend.rho


def test_a_persons_rows_do_not_come_in_twice_by_adding_up():
    policy = Policy(unit="person", person="who")
    contract = rich_contract()
    first = craft(TABLE.slice(0, 200), contract, "bank", bounds=policy.bounds)
    with pytest.raises(PolicyRefusal, match="a person in both"):
        craft(TABLE.slice(200), contract, "bank", bounds=policy.bounds, onto=first)
    other = craft(TABLE.slice(200), contract, "bank", bounds=policy.bounds, constants=first.constants)
    with pytest.raises(PolicyRefusal, match="a person in both"):
        first + other


# --- planted: each is found -----------------------------------------------------------------------


def without_noise_on_one_column(exact, sd, noise, real=gate.noisy):
    out = real(exact, sd, noise)
    out[..., 0] = exact[..., 0]
    return out


def by_exact_counts(found, tally, sd, noise, real=gate.count_agreed):
    return replace(real(found, tally, sd, noise), counts=np.bincount(found.place, tally.rows, len(found)) * 1.0)


def with_moments_unscaled(self, sd, real=gate._Gate.moments):
    return real(self, sd / GRID)


def with_a_note(cells, contract, real=gate.remarks):
    return (*real(cells, contract), f"{THERE[-1]} rows")


THERE: list[int] = []


def noting_what_is_there(tally, contract, policy, real=gate.check_scope):
    THERE.append(tally.total)
    real(tally, contract, policy)


def without_a_longest_row(self, *units, real=Bounds.of):
    return replace(real(self, *units), square=2**50)


PLANTED = {
    "no noise on one column": {"gate.noisy": without_noise_on_one_column},
    "rolled up by exact counts": {"gate.count_agreed": by_exact_counts},
    "moments unscaled": {"Gate.moments": with_moments_unscaled},
    "an exact count in a note": {
        "gate.remarks": with_a_note,
        "gate.check_scope": noting_what_is_there,
    },
    "rows unbounded": {"Bounds.of": without_a_longest_row},
}


@pytest.mark.parametrize("name", [*PLANTED])
def test_a_planted_door_is_found(name, monkeypatch):
    for place, bug in PLANTED[name].items():
        owner, attribute = place.split(".")
        monkeypatch.setattr({"gate": gate, "Gate": gate._Gate, "Bounds": Bounds}[owner], attribute, bug)
    whole, rest, tape = pair(TABLE, [0], rich_contract(), Policy())
    assert doors(whole, rest) or tape.spent > whole.spend.rho
