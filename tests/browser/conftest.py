"""A real browser for the tests: Debian's Chromium, driven by Playwright; and axe-core, which judges accessibility."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

ROOT = Path(__file__).parents[2]
AXE = "4.14.0"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
_INSTALL = "run .ci/services to install it"


def absent(what: str) -> None:
    """A developer may lack a browser; where every change is tested it must be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}: {_INSTALL}")
    pytest.skip(f"{what}: {_INSTALL}")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    found = shutil.which("chromium")
    if found is None:
        absent("there is no Chromium")
    running = playwright.chromium.launch(executable_path=found, args=FLAGS.split())
    yield running
    running.close()


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """Where screenshots go; git ignores it."""
    folder = ROOT / "artefacts" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Watched:
    """A page and all it complained about or asked the network for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))


Open = Callable[..., Watched]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens an address in a window of its own, so wide, light or dark."""
    contexts = []

    def opened(address: str, width: int = 1280, scheme: str = "light") -> Watched:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.goto(address)
        return watched

    yield opened
    for context in contexts:
        context.close()


def _fetch_axe(folder: str) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        absent("there is no npm to fetch axe-core with")
    command = [npm, "install", "--prefix", folder, "--no-audit", "--no-fund", "--no-save", f"axe-core@{AXE}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        absent(f"axe-core could not be fetched ({done.stderr[-200:]})")
    return Path(folder, "node_modules", "axe-core", "axe.min.js")


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core, from npm; tests in several processes may fetch it at once, so it moves into place whole."""
    script = ROOT / "artefacts" / f"axe-{AXE}.min.js"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=script.parent) as folder:
            fetched = _fetch_axe(folder)
            os.replace(fetched, script)
    return script.read_text()


@pytest.fixture
def barriers(axe: str) -> Callable[..., list[str]]:
    """The serious and critical barriers axe finds on a page, by all its rules or by those named."""

    def found(page: Page, *rules: str) -> list[str]:
        page.evaluate(axe)
        only = {"runOnly": list(rules)} if rules else {}
        result: dict[str, Any] = page.evaluate("(only) => axe.run(only)", only)
        assert len(result["passes"]) + len(result["violations"]) >= (len(rules) or 10)  # it looked
        return [
            f"{one['impact']} {one['id']}: {[node['target'] for node in one['nodes']]}"
            for one in result["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    return found
