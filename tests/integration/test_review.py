"""Review before release: nothing leaves until a person says so, and what they say is kept."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from tests.integration.test_cli import example, run  # noqa: F401

from radocraft.ledger._ledger import Ledger
from radocraft.pages._review import Form, review_page
from radocraft.parts._part import Part
from radocraft.peer._pending import Pending


@pytest.fixture
def peer(example: Path, tmp_path: Path, run) -> Path:  # type: ignore[no-untyped-def]  # noqa: F811
    for name in ("contract.toml", "bank.csv"):
        shutil.copy(example / name, tmp_path)
    assert run("policy", "new", "bank", "-o", tmp_path / "policy.toml").code == 0
    return tmp_path


def words(peer: Path, *more: object) -> tuple[object, ...]:
    craft = ("craft", "-c", peer / "contract.toml", "-p", "bank", peer / "bank.csv", "-o", peer / "bank.part.parquet")
    return (*craft, "--policy", peer / "policy.toml", *more)


def pending(peer: Path) -> Path:
    return peer / "bank.part.parquet.pending"


def test_craft_waits_and_approval_lets_go(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    crafted = run(*words(peer))
    assert crafted.code == 0
    assert "Nothing has left" in crafted.out
    assert not (peer / "bank.part.parquet").exists()
    assert pending(peer).stat().st_mode & 0o077 == 0
    seen = run("review", pending(peer))
    assert "nearest risk" in seen.out
    assert "held back" in seen.out
    assert run("review", pending(peer), "--approve").code == 2  # no reason
    approved = run("review", pending(peer), "--approve", "--name", "A. Muster", "--reason", "agreed")
    assert approved.code == 0, approved.err
    part = Part.read(peer / "bank.part.parquet")
    lines = Ledger(peer / "bank.ledger").entries()
    assert [line["kind"] for line in lines] == ["proposal", "approval"]
    assert (lines[1]["name"], lines[1]["reason"], lines[1]["part"]) == ("A. Muster", "agreed", part.metadata["hash"])
    assert not pending(peer).exists()


def test_review_on_the_web_from_the_command_line(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    assert run("review", pending(peer), "--web", "--approve").code == 2
    command = [sys.executable, "-m", "radocraft", "review", str(pending(peer)), "--web", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as review:
        assert review.stderr is not None
        address = next(line.strip() for line in review.stderr if line.startswith("http://127.0.0.1:"))
        visitor = build_opener(HTTPCookieProcessor(CookieJar()))
        with visitor.open(address) as page:
            text = page.read().decode()
        sent = {"name": "A. Muster", "reason": "agreed", "verdict": "approval"}
        sent["secret"] = re.findall('name="secret" value="([^"]+)"', text)[0]
        with visitor.open(address.split("?")[0] + "decide", urlencode(sent).encode()) as answer:
            assert "Approved" in answer.read().decode()
        out, _ = review.communicate(timeout=30)
    assert review.returncode == 0
    assert json.loads(out) == {"decision": "approval", "name": "A. Muster", "part": str(peer / "bank.part.parquet")}
    assert Part.read(peer / "bank.part.parquet").peer == "bank"
    assert [line["kind"] for line in Ledger(peer / "bank.ledger").entries()] == ["proposal", "approval"]


def test_refusal_is_final(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    shutil.copy(pending(peer), peer / "copy.pending")
    assert run("review", pending(peer), "--refuse", "--name", "B", "--reason", "not now").code == 0
    assert not (peer / "bank.part.parquet").exists()
    again = run("review", peer / "copy.pending", "--approve", "--name", "C", "--reason", "yes", "-o", peer / "x")
    assert again.code == 4
    assert "decided on already" in again.err.replace("\n", " ")
    assert not (peer / "x").exists()


def test_an_approval_that_cannot_be_carried_out_is_not_recorded(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    (peer / "folder").mkdir()
    failed = run("review", pending(peer), "--approve", "--name", "A", "--reason", "yes", "-o", peer / "folder")
    assert (failed.code, "it is a folder" in failed.err.replace("\n", " ")) == (1, True), failed.err
    assert [line["kind"] for line in Ledger(peer / "bank.ledger").entries()] == ["proposal"]
    assert run("review", pending(peer), "--approve", "--name", "A", "--reason", "yes").code == 0


def test_yes_lets_go_at_once_and_is_recorded(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    assert run(*words(peer, "--yes")).code == 0
    assert Part.read(peer / "bank.part.parquet").peer == "bank"
    assert [line["kind"] for line in Ledger(peer / "bank.ledger").entries()] == ["release"]


def test_a_pending_release_that_was_made_up_or_changed_is_refused(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    with zipfile.ZipFile(pending(peer)) as archive:
        facts, part = archive.read("review.json"), archive.read("part.parquet")
    (peer / "bank.ledger").rename(peer / "elsewhere")
    never = run("review", pending(peer), "--approve", "--name", "A", "--reason", "r")
    assert (never.code, "never proposed" in never.err.replace("\n", " ")) == (4, True)
    with zipfile.ZipFile(peer / "broken.pending", "w") as archive:
        archive.writestr("review.json", facts)
        archive.writestr("part.parquet", part[:-40] + bytes(40))
    assert run("review", peer / "broken.pending").code == 1
    assert run("review", peer / "bank.csv").code == 1


def test_a_refused_release_exits_4_and_writes_nothing(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    assert run(*words(peer, "--yes")).code == 0
    lines = (peer / "bank.csv").read_text().splitlines(keepends=True)
    (peer / "bank.csv").write_text("".join(lines[:-3]))
    before = {*peer.iterdir()}
    refused = run(*words(peer, "--yes"))
    assert refused.code == 4
    assert "by subtraction" in refused.err.replace("\n", " ")
    assert {*peer.iterdir()} == before


def test_a_policy_without_review_lets_go_at_once(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    text = (peer / "policy.toml").read_text().replace("review = true", "review = false")
    (peer / "policy.toml").write_text(text)
    assert run(*words(peer)).code == 0
    assert (peer / "bank.part.parquet").exists()
    both = run(*words(peer, "--min-rows", "5"))
    assert both.code == 2


def test_policies_are_drafted_checked_and_shown(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    assert run("policy", "check", peer / "policy.toml", "--json").json() == {"ok": True, "mistakes": []}
    assert "at least 10 rows" in run("policy", "show", peer / "policy.toml").out
    assert run("policy", "show", peer / "policy.toml", "--json").json()["min_rows"] == 10
    assert run("policy", "new", "bank").out.startswith("# The policy of bank")
    (peer / "wrong.toml").write_text('mode = "none"\nmin_rows = 0\n')
    wrong = run("policy", "check", peer / "wrong.toml", "--json")
    assert wrong.code == 1
    assert len(wrong.json()["mistakes"]) == 2
    assert run(*words(peer)[:-1], peer / "wrong.toml").code == 1
    for command in (("policy", "new"), ("policy", "check"), ("policy", "show"), ("review",)):
        assert "Example: radocraft" in run(*command, "--help").out


PRIVATE = """
mode = "differential-privacy"
ledger = "bank.ledger"
table = "bank"
review = true

[privacy]
epsilon = 4.0
lifetime_epsilon = 5.0
"""


def test_a_private_release_shows_its_budget_and_stops_when_it_is_spent(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    (peer / "policy.toml").write_text(PRIVATE)
    open_units = run(*words(peer))
    assert open_units.code == 4
    assert "centre and scale must be in the contract" in open_units.err.replace("\n", " ")
    text = (peer / "contract.toml").read_text()
    for name in ("income", "balance", "overdrafts"):
        text = re.sub(rf"(?m)^{name} = .*$", f'{name} = {{ kind = "numeric", centre = 0, scale = 20000 }}', text)
    (peer / "contract.toml").write_text(text)
    proposed = run(*words(peer, "--json"))
    assert proposed.code == 0, proposed.err
    assert "differentially private per row: epsilon 4 at delta 1e-06" in proposed.json()["guarantee"]
    assert "0% spent before" in run("review", pending(peer)).out
    page = review_page(Pending.read(pending(peer)), Form("secret"), "nonce")
    spent = Pending.read(pending(peer)).facts["budget"]["after"]
    assert f"this release {spent:.0%}" in page
    assert f"left for life {1 - spent:.0%}" in page
    assert run("review", pending(peer), "--approve", "--name", "A", "--reason", "r").code == 0
    assert Part.read(peer / "bank.part.parquet").metadata["noise"]["epsilon"] == 4.0
    spent = run(*words(peer))
    assert spent.code == 4
    assert "overspend the lifetime budget" in spent.err.replace("\n", " ")
    assert run(*words(peer, "--onto", peer / "t")).code == 2
