"""The report in a real browser: it draws everything, complains of nothing, and leaves nobody out."""

from collections.abc import Callable
from pathlib import Path

import pytest
from report import BLOCKS, FEATURES, large_model
from tests.browser.conftest import Open
from tests.unit.pages.models import learned, renamed

from radocraft.pages._report import write_report

CHARTS = [
    "ROC curve",
    "Reliability",
    "Error to expect",
    "Loss on linked rows",
    "What pressure adds",
    "What weight adds",
    "Histogram of block sizes",
    "Tuning curve",
]
BLANK = """() => [...document.querySelectorAll("svg.chart")].filter((svg) => {
  const drawn = [...svg.querySelectorAll("path.line, rect.bar")];
  return !drawn.some((mark) => { const box = mark.getBoundingClientRect(); return box.width > 40 || box.height > 40; })
    || /NaN|Infinity/.test(svg.outerHTML);
}).map((svg) => svg.ariaLabel)"""
OUTSIDE = """() => [...document.querySelectorAll("svg.chart")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("path.line, rect.bar, text")].filter((mark) => {
    const box = mark.getBoundingClientRect();
    return box.left < frame.left - 8 || box.right > frame.right + 8 || box.bottom > frame.bottom + 4;
  }).map((mark) => `${svg.ariaLabel}: ${mark.outerHTML.slice(0, 80)}`);
})"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(learned("linked"), path)
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_and_nothing_complains(
    open_page: Open, address: str, artefacts: Path, width: int, scheme: str
) -> None:
    watched = open_page(address, width, scheme)
    page = watched.page
    labels = page.evaluate("[...document.querySelectorAll('svg.chart')].map((svg) => svg.ariaLabel)")
    assert all(any(label.startswith(chart) for label in labels) for chart in CHARTS), labels
    assert page.evaluate(BLANK) == []
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.screenshot(path=artefacts / f"report-{scheme}-{width}.png", full_page=True)
    assert watched.complaints == []
    assert watched.asked == [address]


@pytest.mark.parametrize("label", ["classes", "number"])
def test_other_labels(open_page: Open, artefacts: Path, tmp_path: Path, label: str) -> None:
    write_report(learned(label), tmp_path / "report.html")
    watched = open_page((tmp_path / "report.html").as_uri(), 1280)
    for width in (390, 1280):
        watched.page.set_viewport_size({"width": width, "height": 900})
        assert watched.page.evaluate(BLANK) == []
        assert watched.page.evaluate(OUTSIDE) == []
        assert watched.page.evaluate("document.documentElement.scrollWidth") == width
    assert watched.page.locator("svg.chart").count() >= 4
    watched.page.screenshot(path=artefacts / f"report-{label}.png", full_page=True)
    assert watched.complaints == []


@pytest.mark.parametrize(("label", "width"), [("matching", 1280), ("matching", 390), ("classes", 1280)])
def test_whom_it_speaks_of_is_seen_without_scrolling(open_page: Open, tmp_path: Path, label: str, width: int) -> None:
    write_report(renamed(learned(label)), tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri(), width).page
    cut = page.locator("#people .scroll").evaluate_all("all => all.map((one) => one.scrollWidth - one.clientWidth)")
    assert cut == [0, 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier(open_page: Open, address: str, barriers: Callable[..., list[str]], scheme: str) -> None:
    page = open_page(address, 1280, scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    rules = [] if scheme == "light" else ["color-contrast"]  # all else is the same in the dark
    assert barriers(page, *rules) == []


def test_the_judge_sees_a_barrier(open_page: Open, address: str, barriers: Callable[..., list[str]]) -> None:
    page = open_page(address).page
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert len(barriers(page, "html-has-lang")) == 1


def test_light_and_dark_follow_the_system_until_told(open_page: Open, address: str) -> None:
    page = open_page(address, scheme="dark").page
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(18, 21, 24)"
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate(ground) == "rgb(250, 250, 248)"
    assert page.locator("#theme").inner_text() == "Dark"


def test_the_pointer_shows_numbers(open_page: Open, address: str) -> None:
    page = open_page(address).page
    strips = page.locator("svg[aria-label^='ROC'] .strip")
    strips.nth(20).scroll_into_view_if_needed()
    strips.nth(20).hover()
    assert "found at" in page.locator("#tip").inner_text()
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()


def test_tables_sort_and_filter_by_keyboard(open_page: Open, address: str) -> None:
    page = open_page(address).page
    page.get_by_text("columns of the model").first.press("Enter")
    field = page.get_by_label("Find a column")
    field.press_sequentially("drug=")
    shown = page.locator("#columns tbody tr:visible")
    assert shown.count() == 13  # eleven drugs, missing, unseen
    assert page.locator("#found-columns").inner_text().startswith("13 of ")
    page.get_by_role("button", name="Effect").press("Enter")
    effects = [float(text.replace("−", "-")) for text in shown.locator("td:nth-child(3)").all_inner_texts()]
    assert effects == sorted(effects)
    assert page.locator("#columns th[aria-sort=ascending]").inner_text() == "Effect"


def test_it_prints_light_and_without_what_only_a_screen_needs(open_page: Open, address: str, artefacts: Path) -> None:
    page = open_page(address, scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--card')") == "#FFFFFF"
    assert page.locator(".top").is_hidden()
    assert page.locator("svg.chart").first.is_visible()
    page.pdf(path=artefacts / "report.pdf", format="A4")
    assert (artefacts / "report.pdf").read_bytes().startswith(b"%PDF")


def test_it_can_be_read_without_scripts(browser, address: str) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("h1").inner_text() == "Back <within> 30 days & more"
    assert page.locator("svg.chart").count() >= len(CHARTS)
    assert page.locator("#theme").is_hidden()
    context.close()


def test_a_large_model_has_a_small_report(open_page: Open, tmp_path: Path) -> None:
    model = large_model()
    assert (len(model.blocks.labels), sum(c.peer is not None for c in model.coefficients)) == (BLOCKS, FEATURES)
    assert write_report(model, tmp_path / "report.html") < 5_000_000
    watched = open_page((tmp_path / "report.html").as_uri())
    assert watched.complaints == []
    assert watched.page.evaluate(BLANK) == []
    assert watched.page.locator("#columns tbody tr").count() == len(model.coefficients)
