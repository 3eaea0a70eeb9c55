"""Nothing is cut off without a sign: a page is as wide as its window, and what scrolls in it says so."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.browser.conftest import ROOT, Open
from tests.unit.pages.models import learned

from radocraft.pages._report import write_report

PAGES = ["index.html", "tutorial.html", "reference/cli.html"]
UNSIGNED = """() => [...document.querySelectorAll("main:not(.md-main) *, .md-content *")].filter((part) => {
  const style = getComputedStyle(part);
  const cut = part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 40 && style.display !== "inline";
  const hidden = style.overflowX !== "visible" && !["BUTTON", "INPUT", "NAV", "LABEL"].includes(part.tagName);
  return cut && hidden && !style.backgroundImage.includes("gradient") && !part.closest("svg");
}).map((part) => `${part.tagName}.${part.className}: ${part.textContent.slice(0, 40)}`)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return folder


def settled(page, width: int) -> None:
    page.wait_for_timeout(150)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(UNSIGNED) == []


@pytest.mark.parametrize(("name", "width"), [(name, width) for name in PAGES for width in (390, 768, 1280)])
def test_pages_of_the_site_fit_their_window(
    open_page: Open, site: Path, barriers: Callable[..., list[str]], name: str, width: int
) -> None:
    artefacts = ROOT / "artefacts" / "browser"
    for scheme in ("light", "dark"):
        page = open_page((site / name).as_uri(), width, scheme).page
        settled(page, width)
        page.screenshot(path=artefacts / f"site-{name.replace('/', '-')}-{scheme}-{width}.png")
        assert width != 768 or barriers(page) == []


def test_commands_are_never_cut(open_page: Open, site: Path) -> None:
    page = open_page((site / "tutorial.html").as_uri(), 1280).page
    cut = "[...document.querySelectorAll('.language-sh pre > code')].filter((c) => c.scrollWidth > c.clientWidth + 1)"
    assert page.evaluate(f"{cut}.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_on_the_front_page_goes_with_the_page(open_page: Open, site: Path, scheme: str) -> None:
    page = open_page((site / "index.html").as_uri(), 1280, scheme).page
    image = page.locator("img[src$='overview.svg']").first
    assert (image.evaluate("(image) => getComputedStyle(image).filter") == "none") == (scheme == "light")


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_tables_of_the_report_say_that_they_scroll(
    open_page: Open, artefacts: Path, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "report.html"
    write_report(learned("linked"), path)
    for scheme in ("light", "dark"):
        page = open_page(path.as_uri(), width, scheme).page
        page.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
        settled(page, width)
        signed = "(frame) => [frame.scrollWidth > frame.clientWidth + 1, frame.classList.contains('beyond')]"
        frames = page.locator(".scroll").all()
        said = [frame.evaluate(signed) for frame in frames]
        assert frames
        assert all(wide == told for wide, told in said), said
        page.screenshot(path=artefacts / f"report-wide-{scheme}-{width}.png", full_page=True)
    assert page.get_by_text("(logarithmic)").count() > 0
