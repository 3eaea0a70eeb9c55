"""Review before release: nothing leaves until a person says so, and what they say is kept."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import datetime
from http.cookiejar import CookieJar
from pathlib import Path
from unittest.mock import ANY
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from tests.integration.test_cli import example, flat, run  # noqa: F401

from radocraft.gate import epsilon_of
from radocraft.ledger._chain import FIRST
from radocraft.ledger._ledger import Ledger
from radocraft.pages._review import ReviewForm, review_page
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


def kinds(peer: Path) -> list[str]:
    return [line.entry.kind for line in Ledger(peer / "bank.ledger").lines()]


def test_craft_waits_and_approval_lets_go(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    crafted = run(*words(peer))
    assert crafted.code == 5
    assert "Nothing has left" in crafted.out
    assert not (peer / "bank.part.parquet").exists()
    assert pending(peer).stat().st_mode & 0o077 == 0
    seen = flat(run("review", pending(peer)).out)
    (line,) = Ledger(peer / "bank.ledger").history().leaving()
    epsilon = epsilon_of(line.spend.rho, 1e-6)
    for words_of_it in (
        "at least 0.5 times the sampling error of every number",
        f"{epsilon:.3g} at delta 1e-06",
        "0 releases, together epsilon 0 at delta 1e-06",
        f"1 release, together epsilon {epsilon:.3g} at delta 1e-06",
        "9 of 10 releases",
        "blocks are only shown inside coarser cells",
        "sums over about",
        "second moments of the private columns, by label; centre and scale of each column",
        "nothing of this table has left before",
        f"head {FIRST[:16]}",
    ):
        assert words_of_it in seen
    assert run("review", pending(peer), "--approve").code == 2  # no reason
    approved = run("review", pending(peer), "--approve", "--name", "A. Muster", "--reason", "agreed")
    assert approved.code == 0, approved.err
    part = Part.read(peer / "bank.part.parquet")
    proposal, approval = Ledger(peer / "bank.ledger").lines()
    assert (proposal.entry.kind, approval.entry.kind) == ("proposal", "approval")
    assert (approval.entry.name, approval.entry.reason) == ("A. Muster", "agreed")
    assert approval.entry.file == proposal.entry.file == part.metadata["hash"]
    assert part.metadata["ledger"] == FIRST
    assert not pending(peer).exists()
    table = (peer / "bank.csv").read_text().splitlines()
    (peer / "bank.csv").write_text("\n".join([*table, *table[1:3000]]))
    assert run(*words(peer, "--force")).code == 5
    told = f"sums over {part.metadata['rows']:,} rows in {part.table.num_rows:,} cells then, over"
    assert told in flat(run("review", pending(peer)).out)


def test_the_same_release_after_its_approval_is_given_at_once(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    run("review", pending(peer), "--approve", "--name", "A", "--reason", "agreed")
    before = (peer / "bank.part.parquet").read_bytes(), (peer / "bank.ledger").read_bytes()
    again = run(*words(peer))
    assert (again.code, "given again, nothing spent" in flat(again.err)) == (0, True), again.out
    assert ((peer / "bank.part.parquet").read_bytes(), (peer / "bank.ledger").read_bytes()) == before


def test_the_same_release_while_it_waits_is_the_same_proposal(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    assert run(*words(peer)).code == 5
    before = Pending.read(pending(peer))
    pending(peer).unlink()
    assert run(*words(peer, "--json")).json() == {
        "pending": str(pending(peer)),
        "message": ANY,
    }
    after = Pending.read(pending(peer))
    assert (after.note, after.encoded) == (before.note, before.encoded)
    assert kinds(peer) == ["proposal"]


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
    assert kinds(peer) == ["proposal", "approval"]


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
    assert kinds(peer) == ["proposal"]
    assert run("review", pending(peer), "--approve", "--name", "A", "--reason", "yes").code == 0


def test_a_pending_release_that_was_made_up_or_changed_is_refused(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    with zipfile.ZipFile(pending(peer)) as archive:
        facts, part = archive.read("review.json"), archive.read("content")
    (peer / "bank.ledger").rename(peer / "elsewhere")
    never = run("review", pending(peer), "--approve", "--name", "A", "--reason", "r")
    assert (never.code, "never proposed" in flat(never.err)) == (4, True)
    (peer / "elsewhere").rename(peer / "bank.ledger")
    run("craft", "-c", peer / "contract.toml", "-p", "bank", peer / "bank.csv", "-o", peer / "another.parquet")
    pages = {
        "changed": {"review.json": facts, "content": part[:-40] + bytes(40)},
        "another": {"review.json": facts, "content": (peer / "another.parquet").read_bytes()},
        "deep": {"review.json": b"[" * 90_000, "content": part},
        "more": {"review.json": facts, "content": part, "more": b""},
        "large": {"review.json": facts + b" " * 100_001, "content": part},
        "no facts": {"content": part},
    }
    for name, inside in pages.items():
        with zipfile.ZipFile(peer / f"{name}.pending", "w") as archive:
            for file, content in inside.items():
                archive.writestr(file, content)
    with zipfile.ZipFile(peer / "packed.pending", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("review.json", facts)
        archive.writestr("content", part)
    (peer / "cut.pending").write_bytes(pending(peer).read_bytes()[:-100])
    for name in (*pages, "packed", "cut", "nowhere"):
        refused = run("review", peer / f"{name}.pending", "--json")
        assert (refused.code, refused.out) == (4 if name == "another" else 1, ""), name
        assert json.loads(refused.err)["message"], name
    assert run("review", peer / "bank.csv").code == 1
    assert run("review", pending(peer), "--json").json()["file"] == Pending.read(pending(peer)).line.file


def test_what_exceeds_the_budget_exits_4_and_writes_nothing(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    rules = (peer / "policy.toml").read_text().replace("lifetime_releases = 10", "lifetime_releases = 1")
    (peer / "policy.toml").write_text(rules.replace("review = true", "review = false"))
    assert run(*words(peer)).code == 0
    lines = (peer / "bank.csv").read_text().splitlines(keepends=True)
    (peer / "bank.csv").write_text("".join(lines[:-3]))
    before = {path: path.stat().st_mtime_ns for path in peer.rglob("*")}
    refused = run(*words(peer)[:-3], peer / "other.parquet", *words(peer)[-2:])
    assert refused.code == 4
    assert "0 of 1 releases left, and one more is asked for" in flat(refused.err)
    assert {path: path.stat().st_mtime_ns for path in peer.rglob("*")} | before == before | {
        peer / "bank.ledger.parts": ANY
    }


def test_a_policy_without_review_lets_go_at_once(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    text = (peer / "policy.toml").read_text().replace("review = true", "review = false")
    (peer / "policy.toml").write_text(text)
    assert run(*words(peer)).code == 0
    assert (peer / "bank.part.parquet").exists()
    both = run(*words(peer, "--min-rows", "5"))
    assert both.code == 2


def test_policies_are_drafted_checked_and_shown(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    assert run("policy", "check", peer / "policy.toml", "--json").json() == {"ok": True, "mistakes": []}
    assert "Blocks of fewer than about 10 rows leave only as part of" in flat(
        run("policy", "show", peer / "policy.toml").out
    )
    assert run("policy", "show", peer / "policy.toml", "--json").json()["min_rows"] == 10
    drafted = run("policy", "new", "bank").out
    assert drafted.startswith("# The policy of a peer")
    assert 'ledger = "bank.ledger"' in drafted
    (peer / "wrong.toml").write_text('mode = "none"\nmin_rows = 0\n')
    wrong = run("policy", "check", peer / "wrong.toml", "--json")
    assert wrong.code == 1
    assert len(wrong.json()["mistakes"]) == 2
    assert run(*words(peer)[:-1], peer / "wrong.toml").code == 1
    for command in (("policy", "new"), ("policy", "check"), ("policy", "show"), ("review",)):
        assert "Example: radocraft" in run(*command, "--help").out


PRIVATE = """
epsilon = 4.0
lifetime_epsilon = 5.0
ledger = "bank.ledger"
table = "bank"
review = true
"""


def test_a_release_of_an_epsilon_shows_its_budget_and_stops_when_it_is_spent(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    (peer / "policy.toml").write_text(PRIVATE)
    assert run(*words(peer, "--json")).code == 5
    seen = run("review", pending(peer), "--json").json()
    assert seen["metadata"]["policy"]["epsilon"] == pytest.approx(4.0, rel=1e-6)
    assert seen["policy"] == "epsilon 4 at delta 1e-06 per row, a formal guarantee"
    assert seen["head"] == FIRST
    assert seen["budget"]["before"].startswith("0 releases, together epsilon 0 ")
    assert seen["budget"]["remains"] == "epsilon 1 of 5 at delta 1e-06"
    page = review_page(Pending.read(pending(peer)), ReviewForm("secret"), "nonce")
    assert "spent before 0%" in page
    assert "this release 80%" in page
    assert "left for life 20%" in page
    assert run("review", pending(peer), "--approve", "--name", "A", "--reason", "r").code == 0
    assert Part.read(peer / "bank.part.parquet").metadata["policy"]["epsilon"] == pytest.approx(4.0, rel=1e-6)
    told = run("ledger", peer / "bank.ledger", "--json").json()
    assert told["tables"]["bank"]["remains"] == "epsilon 1 of 5 at delta 1e-06"
    (peer / "policy.toml").write_text(PRIVATE + "min_rows = 11\n")
    spent = run(*words(peer))
    assert spent.code == 4
    assert "would exceed the lifetime budget of 'bank'" in flat(spent.err)
    assert run(*words(peer, "--onto", peer / "t")).code == 1


# --- radocraft ledger -----------------------------------------------------------------------------


def test_the_ledger_tells_what_left_when_by_whom_and_what_remains(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    run(*words(peer))
    waits = flat(run("ledger", peer / "bank.ledger").out)
    assert "waiting" in waits
    run("review", pending(peer), "--refuse", "--name", "B. Beispiel", "--reason", "not now")
    run(*words(peer))
    run("review", pending(peer), "--approve", "--name", "A. Muster", "--reason", "agreed")
    words_of_exact = (*words(peer)[:-1], peer / "exact.toml")
    (peer / "exact.toml").write_text(
        'mode = "exact"\ngives_away_rows = true\nledger = "bank.ledger"\ntable = "public"\n'
    )
    assert run(*words_of_exact, "--force").code == 0
    told = run("ledger", peer / "bank.ledger", "--json").json()
    history = Ledger(peer / "bank.ledger").history()
    assert told["head"] == history.head
    assert [(line["state"], line["decided_by"], line["reason"]) for line in told["lines"]] == [
        ("refused", "B. Beispiel", "not now"),
        ("released", "A. Muster", "agreed"),
        ("released", None, None),
    ]
    first, again, exact = told["lines"]
    assert first["rho"] == history.spent("bank").rho
    assert (again["rho"], exact["rho"], exact["epsilon"]) == (0, None, None)
    assert datetime.fromisoformat(first["time"]).tzinfo is not None
    assert first["time"] <= first["decided_at"] <= again["time"] <= again["decided_at"] <= exact["time"]
    assert exact["decided_at"] is None
    assert {first["contract"], first["table"], first["peer"]} == {"default within a year", "bank"}
    assert told["tables"]["bank"]["remains"] == "9 of 10 releases"
    assert told["tables"]["public"] is None
    assert not {"salt", "mark", "constants"} & {*first}
    shown = flat(run("ledger", peer / "bank.ledger").out)
    for words_of_it in ("refused (B.", "Beispiel:", "given again", "released (A.", "Muster:", "9 of 10 releases"):
        assert words_of_it in shown
    assert "Exact sums left; there is no budget." in shown
    assert f"Head: {told['head'][:32]} (5 lines)" in shown
    one = run("ledger", peer / "bank.ledger", "--table", "public", "--json").json()
    assert [line["table"] for line in one["lines"]] == ["public"]
    assert "Its tables: bank, public." in flat(run("ledger", peer / "bank.ledger", "--table", "x").err)
    assert "There is no ledger" in flat(run("ledger", peer / "nowhere").err)


def test_a_rewritten_ledger_shows(peer: Path, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    """By its own chain; and where it was written anew from the start, by the head in the parts that left since."""
    (peer / "policy.toml").write_text('ledger = "bank.ledger"\n')
    for least in (10, 11):
        (peer / "policy.toml").write_text(f'ledger = "bank.ledger"\nmin_rows = {least}\n')
        assert run(*words(peer), "--force").code == 0
    head = Part.read(peer / "bank.part.parquet").metadata["ledger"]
    assert head == Ledger(peer / "bank.ledger").lines()[0].hash
    text = (peer / "bank.ledger").read_text()
    (peer / "bank.ledger").write_text(text.replace('"rows": ', '"rows": 1', 1))
    changed = run("ledger", peer / "bank.ledger")
    assert (changed.code, "Line 1 of the ledger" in flat(changed.err)) == (1, True)
    assert run(*words(peer)).code == 1
    (peer / "bank.ledger").unlink()
    assert run(*words(peer), "--force").code == 0
    assert head not in {line.hash for line in Ledger(peer / "bank.ledger").lines()}
