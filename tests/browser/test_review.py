"""The review page in a real browser: a data officer looks, decides by keyboard, and the ledger has it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import Open

from radocraft import Part, Policy, example_peers, share
from radocraft.errors import AwaitsReview
from radocraft.gate import epsilon_of
from radocraft.ledger import Decision, Ledger
from radocraft.pages._server import ReviewServer
from radocraft.peer._pending import Pending, pending_path

CONTRACT, TABLES = example_peers(rows=800)


@pytest.fixture
def pending(tmp_path: Path) -> Path:
    policy = Policy(review=True, ledger=str(tmp_path / "bank.ledger"), table="customers")
    output = tmp_path / "bank.part.parquet"
    with pytest.raises(AwaitsReview):
        share(TABLES["bank"], CONTRACT, "bank", policy=policy, output=output)
    return pending_path(output)


@pytest.fixture
def review(pending: Path) -> Iterator[ReviewServer]:
    with ReviewServer(pending) as server:
        thread = threading.Thread(target=server.wait)
        thread.start()
        yield server
        if server.conclusion is None:
            server.stop()
        thread.join(10)
        assert not thread.is_alive()


def decisions(pending: Path) -> list[tuple[str, str, str]]:
    entries = [line.entry for line in Ledger(pending.with_name("bank.ledger")).lines()[1:]]
    return [(entry.kind, entry.name, entry.reason) for entry in entries if isinstance(entry, Decision)]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_shows_all_that_would_leave(
    open_page: Open, review: ReviewServer, artefacts: Path, width: int, scheme: str
) -> None:
    watched = open_page(review.address, width, scheme)
    page, part = watched.page, review.waiting.content
    assert page.url == f"http://127.0.0.1:{review.port}/"  # the token is gone from the address
    assert page.locator("#cells tbody tr").count() == part.table.num_rows
    rows = [int(text.replace(",", "")) for text in page.locator("#cells tbody td:nth-child(4)").all_inner_texts()]
    assert sorted(rows) == rows == sorted(part.table.column("rows").to_pylist())
    head, rolled_up = page.locator("header").inner_text(), part.metadata["policy"]["rolled_up"]
    assert rolled_up > 0
    assert f"{rolled_up:,}\nblocks, shown only inside coarser cells" in head
    assert f"{epsilon_of(review.waiting.line.rho, 1e-6):.3g}\nat delta 1e-06" in head
    assert page.locator("svg[aria-label='Histogram of cell sizes'] rect.bar").count() >= 5
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.screenshot(path=artefacts / f"review-{scheme}-{width}.png", full_page=True)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len({*ids}) == len(ids)
    assert watched.complaints == []
    assert all(url.startswith(f"http://127.0.0.1:{review.port}/") for url in watched.asked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier(
    open_page: Open, review: ReviewServer, barriers: Callable[..., list[str]], scheme: str
) -> None:
    page = open_page(review.address, 1280, scheme).page
    rules = [] if scheme == "light" else ["color-contrast"]  # all else is the same in the dark
    assert barriers(page, *rules) == []


def walk_to(page: Page, target: str, most: int = 120) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(target) => document.activeElement.matches(target)", target):
            return
    pytest.fail(f"{target} cannot be reached by Tab")


def test_approve_by_keyboard_alone(open_page: Open, review: ReviewServer, pending: Path) -> None:
    page = open_page(review.address).page
    walk_to(page, "#search-cells")
    page.keyboard.type("north yes")
    assert 0 < page.locator("#cells tbody tr:visible").count() < page.locator("#cells tbody tr").count()
    walk_to(page, "#cells th button")
    page.keyboard.press("Space")
    assert page.locator("#cells th[aria-sort]").count() == 1
    walk_to(page, "#name")
    page.keyboard.type("A. Muster")
    walk_to(page, "#reason")
    page.keyboard.type("agreed on 3 May")
    walk_to(page, "button[value=approval]")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Approved')")
    assert decisions(pending) == [("approval", "A. Muster", "agreed on 3 May")]
    written = Part.read(pending.with_name("bank.part.parquet"))
    assert written.metadata["hash"] == review.waiting.content.metadata["hash"]
    assert not pending.exists()


def test_refuse(open_page: Open, review: ReviewServer, pending: Path) -> None:
    page = open_page(review.address).page
    refuse = page.get_by_role("button", name="Refuse")
    refuse.click()
    assert decisions(pending) == []  # the browser asks for name and reason first
    page.get_by_label("Your name").fill("B. Beispiel")
    page.get_by_label("Reason").fill("<b>not</b> now")
    refuse.click()
    page.wait_for_selector("h1:has-text('Refused')")
    assert decisions(pending) == [("refusal", "B. Beispiel", "<b>not</b> now")]
    assert not pending.exists()
    assert not pending.with_name("bank.part.parquet").exists()


def test_what_the_ledger_does_not_allow_is_said_on_the_page(
    open_page: Open, review: ReviewServer, pending: Path
) -> None:
    page = open_page(review.address).page
    Pending.read(pending).decide("refusal", "C", "meanwhile, in the terminal")
    page.get_by_label("Your name").fill("A. Muster")
    page.get_by_label("Reason").fill("fine")
    page.get_by_role("button", name="Approve").click()
    assert "decided on already" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Reason").input_value() == "fine"
    assert not pending.with_name("bank.part.parquet").exists()


def test_the_part_to_download_is_the_part(open_page: Open, review: ReviewServer, tmp_path: Path) -> None:
    page = open_page(review.address).page
    with page.expect_download() as download:
        page.get_by_text("Download the part").click()
    download.value.save_as(tmp_path / "seen.parquet")
    assert Part.read(tmp_path / "seen.parquet").metadata == review.waiting.content.metadata


def test_a_wrong_token_is_refused_and_a_right_one_works_once(open_page: Open, review: ReviewServer) -> None:
    address = review.address
    wrong = open_page(address[:-4] + "aaaa").page
    assert wrong.locator("h1").inner_text() == "Not allowed"
    first = open_page(address).page
    assert first.locator("#cells").count() == 1
    first.reload()
    assert first.locator("#cells").count() == 1
    second = open_page(address).page
    assert second.locator("h1").inner_text() == "Not allowed"
    assert second.locator("#cells").count() == 0


def asked(request: Request) -> int:
    try:
        with urlopen(request) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_nobody_else_gets_in(review: ReviewServer, pending: Path) -> None:
    base = f"http://127.0.0.1:{review.port}"
    body = b"verdict=approval&name=a&reason=b&secret=guess"
    assert asked(Request(f"{base}/")) == 403
    assert asked(Request(f"{base}/part.parquet")) == 403
    assert asked(Request(f"{base}/decide", data=body)) == 403
    assert asked(Request(f"{base}/", headers={"Cookie": f"{review.cookie_name}=guess"})) == 403
    known = {"Cookie": f"{review.cookie_name}={review.admit(review.address.split('token=')[1])}"}
    assert asked(Request(f"{base}/", headers=known)) == 200
    assert asked(Request(f"{base}/elsewhere", headers=known)) == 404
    assert asked(Request(f"{base}/", headers={**known, "Host": f"evil.example:{review.port}"})) == 403
    assert asked(Request(f"{base}/decide", data=body, headers=known)) == 403  # the page's secret is missing
    assert decisions(pending) == []
    assert pending.exists()
