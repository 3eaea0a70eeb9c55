"""What an audit says an attacker can learn at best, held against attackers who try."""

import json

import numpy as np
import pyarrow as pa
import pytest
from tests.attacks.worlds import released
from typer.testing import CliRunner

from radocraft import Contract, Part, Policy, craft, release, share
from radocraft.cli import app
from radocraft.gate import Noise
from radocraft.gate._account import auc_of
from radocraft.sums import GRID

CONTRACT = Contract.parse("""
name = "risk"
label = { column = "bad", positive = 1, negative = 0 }
shared = [{ name = "town", categories = ["Bern", "Ulm"] }]

[peers.bank.features]
debt = { kind = "numeric", centre = 100, scale = 10 }
age = { kind = "numeric", centre = 40, scale = 12 }
rent = { kind = "numeric", centre = 900, scale = 300 }
""")
ROWS, TRIALS = 400, 250
PLAIN, FAR = (1.0, 1.0, -1.0), (2.59, 0.0, 0.0)
GUESSES = np.linspace(-20.0, 20.0, 4001)


def people(row: tuple[float, ...]) -> pa.Table:
    """The first row is the one in question, its values in deviations; all others are known."""
    values = np.vstack([row, np.clip(np.random.default_rng(0).normal(size=(ROWS - 1, 3)), -2.0, 2.0)])
    columns = zip(("debt", "age", "rent"), values.T, (100, 40, 900), (10, 12, 300), strict=True)
    return pa.table(
        {
            "bad": np.arange(ROWS) % 2,
            "town": np.where(np.arange(ROWS) % 4 < 2, "Bern", "Ulm"),
            **{name: centre + scale * own for name, own, centre, scale in columns},
        }
    )


def part_of(table: pa.Table, policy: Policy, *key: object) -> Part:
    tally = craft(table, CONTRACT, "bank", bounds=policy.bounds)
    return Part.of(release(tally, CONTRACT, policy, Noise.seeded("audit", *key)))


def guesses(row: tuple[float, ...], policy: Policy) -> np.ndarray:
    """The likeliest debt of the row, from the sum of its cell and the moments of its label, many times over."""
    rest = craft(people(row).slice(1), CONTRACT, "bank")
    order = [rest.columns.index(name) for name in ("debt", "age", "rent")]
    debt, *others = order
    block = int(np.flatnonzero((rest.codes[:, 0] == 0) & (rest.labels == -1))[0])
    known = dict(zip(order, row, strict=True))
    out = []
    for cells in released(craft(people(row), CONTRACT, "bank"), CONTRACT, policy, TRIALS, "audit", row):
        cell = int(np.flatnonzero((cells.codes[:, 0] == 0) & (cells.labels == -1))[0])
        left = cells.by_label[0, :3, :3] - rest.moments[0, :3, :3] / GRID**2
        off = ((cells.sums[cell] - rest.sums[block] / GRID)[debt] - GUESSES) ** 2 / cells.levels.sums**2
        off += (left[debt, debt] - GUESSES**2) ** 2 / cells.levels.moments**2
        off += sum((left[debt, k] - GUESSES * known[k]) ** 2 for k in others) / cells.levels.moments**2
        out.append(GUESSES[np.argmin(off)])
    return np.array(out)


@pytest.mark.parametrize(("row", "field"), [(PLAIN, "usual"), (FAR, "largest")])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_the_best_guess_of_a_value_is_as_far_off_as_the_audit_says(row, field, noise):
    """In 95 of 100 cases within what it says: no more often. Nor far less, but that much noise hides squares better."""
    policy = Policy(noise=noise)
    column = next(one for one in part_of(people(row), policy, "one").audit().columns if one.name == "debt")
    half = getattr(column, field) / 10.0
    within = np.mean(np.abs(guesses(row, policy) - row[0]) <= half)
    assert within <= 0.95 + 3 * np.sqrt(0.95 * 0.05 / TRIALS)
    assert within >= (0.8 if noise < 0.1 else 0.5), "an audit that says too little is of no use"


def test_exact_sums_hide_nothing():
    found = part_of(people(PLAIN), Policy.exact()).audit()
    assert (found.right, found.auc) == (1.0, 1.0)
    assert {(column.usual, column.largest, column.open) for column in found.columns} == {(0.0, 0.0, 0.0)}
    assert {cell.mean for cell in found.cells} == {0.0}


def test_the_more_noise_the_less_shows():
    """What membership really shows is held to `auc` by `test_membership`."""
    told = [part_of(people(PLAIN), Policy(noise=noise)).audit() for noise in (0.1, 0.5, 2.0)]
    assert told[0].right > told[1].right > told[2].right > 0.5
    widths = [{column.name: column.usual for column in one.columns} for one in told]
    assert all(widths[0][name] < widths[1][name] < widths[2][name] for name in widths[0])
    made = release(craft(people(PLAIN), CONTRACT, "bank"), CONTRACT, Policy())
    assert Part.of(made).audit().auc == auc_of(made.spend.rho)


def test_of_a_person_with_more_rows_more_shows():
    table = people(PLAIN).append_column("who", pa.array(np.arange(ROWS) // 4))
    one, four = (Policy(unit="person", person="who", rows_per_person=rows, noise=0.01) for rows in (1, 4))
    usual = [part_of(table, policy).audit().columns[0].usual for policy in (one, four)]
    assert usual[0] == pytest.approx(usual[1])  # noise grows with the rows that may enter, and so does what they move


def test_the_command_says_so(tmp_path):
    part = share(people(FAR), CONTRACT, "bank", output=tmp_path / "bank.part.parquet")
    said = CliRunner().invoke(app, ["audit", str(tmp_path / "bank.part.parquet")])
    assert said.exit_code == 0, said.output
    assert part.audit().sentence in " ".join(said.output.split())
    told = json.loads(CliRunner().invoke(app, ["audit", str(tmp_path / "bank.part.parquet"), "--json"]).output)
    assert [column["name"] for column in told["columns"]] == ["age", "debt", "rent"]
    assert len(told["cells"]) == 5
