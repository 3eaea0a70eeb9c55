"""The site builds without a warning, its links lead somewhere, and what is generated is fresh."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from tests.docs.blocks import DOCS

ROOT = DOCS.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Links(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "link":
                self.targets.add(value)
            if name == "id" and value:
                self.ids.add(value)


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 20
    broken = []
    for path, links in pages.items():
        for target in links.targets:
            where, anchor = urldefrag(unquote(target))
            if ":" in where or where.startswith("//"):
                continue
            file = (path.parent / where).resolve() if where else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (anchor and file in pages and anchor not in pages[file].ids):
                broken.append(f"{path.name}: {target}")
    assert broken == []


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "fonts.googleapis" not in text
        assert '<script src="http' not in text


def test_every_page_is_in_the_navigation(site: Path) -> None:
    home = Links((site / "index.html").read_text(encoding="utf-8"))
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    assert pages <= home.targets, f"give them a place in mkdocs.yml: {sorted(pages - home.targets)}"


def test_the_picture_is_fresh() -> None:
    """If this fails: python docs/picture.py."""
    code = "import sys; sys.path.insert(0, 'docs'); import picture as p; print(p.PICTURE.read_text() == p.picture())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_generated_pages_are_fresh() -> None:
    """If this fails: python docs/generate.py."""
    code = (
        "import sys; sys.path.insert(0, 'docs'); import generate as g\n"
        "pages = g.pages()\n"
        "print(*(name for name, text in pages.items() if (g.DOCS / name).read_text(encoding='utf-8') != text))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
