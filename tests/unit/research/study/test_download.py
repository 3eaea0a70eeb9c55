"""The loader against files served on this machine: the real formats, and everything that can go wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyarrow import csv
from tests.ports import free_port
from tests.unit.research.study.data import needs_data

from radocraft.errors import StudyError
from radocraft.research.study._domains import load_table
from radocraft.research.study._download import SOURCES, DomainFile, cache_folder, fetch, to_csv, values_digest

SMALL = DomainFile("/small.data", ("x", "y", "class"), "", class_first=True)
CONTENT = b"1,0.5,.25\n2,1.5,7\n"
WHOLE = replace(SMALL, digest=values_digest(pa.table({"x": [0.5, 1.5], "y": [0.25, 7.0], "class": [1.0, 2.0]})))


class Repository:
    """A web server that gives out what is put into ``files``."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.promised_extra = 0
        self.asked = 0
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.asked += 1
                body = repository.files.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + repository.promised_extra))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def repository() -> Iterator[Repository]:
    served = Repository()
    thread = Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


def test_a_file_is_converted_checked_and_kept(repository: Repository, tmp_path: Path) -> None:
    repository.files["/small.data"] = CONTENT
    path = fetch("small", tmp_path / "new", base=repository.base, source=WHOLE)
    assert path.read_text() == "x,y,class\n0.5,.25,1\n1.5,7,2\n"
    fetch("small", tmp_path / "new", base=repository.base, source=WHOLE)
    assert repository.asked == 1


def test_other_ways_to_write_the_same_number_pass(repository: Repository, tmp_path: Path) -> None:
    repository.files["/small.data"] = b"1,0.50,0.250\n2,1.5,7.0\n"
    assert fetch("small", tmp_path, base=repository.base, source=WHOLE).exists()


@pytest.mark.parametrize("content", [b"1,0.5,.25\n2,1.5,8\n", b"2,1.5,7\n1,0.5,.25\n", b"1,0.5\n2,1.5\n", b""])
def test_a_wrong_checksum_is_refused_and_nothing_kept(repository: Repository, tmp_path: Path, content: bytes) -> None:
    repository.files["/small.data"] = content
    with pytest.raises(StudyError, match="another checksum"):
        fetch("small", tmp_path, base=repository.base, source=WHOLE)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"small\.data answers 404"):
        fetch("small", tmp_path, base=repository.base, source=WHOLE)


def test_a_broken_transfer_is_told_and_nothing_kept(repository: Repository, tmp_path: Path) -> None:
    repository.files["/small.data"] = CONTENT
    repository.promised_extra = 100
    with pytest.raises(StudyError, match="broke off"):
        fetch("small", tmp_path, base=repository.base, source=WHOLE)
    assert list(tmp_path.iterdir()) == []


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="RADOCRAFT_DATA"):
        fetch("small", tmp_path, base=f"http://127.0.0.1:{free_port()}", source=WHOLE)


def original(name: str, source: DomainFile) -> bytes:
    """A domain's file as the repository writes it, made from our CSV."""
    header, *rows = Path(os.environ["RADOCRAFT_DATA"], f"{name}.csv").read_text().splitlines()
    separator = {None: " ", ";": ";"}.get(source.separator, ",")
    lines = []
    for row in rows:
        cells = row.split(",")
        cells = [cells[-1], *cells[:-1]] if source.class_first else cells
        lines.append(separator.join([*["id"] * source.drop, *cells]))
    if name == "firmteacher":
        lines[5] += " error fixed"
    before = ["% a remark", "@attribute x", "@DATA"] if source.skip == "@data" else [header] * int(source.skip)
    return "\r\n".join([*before, *lines, ""]).encode()


@needs_data
@pytest.mark.parametrize("name", list(SOURCES))
def test_every_domain_from_the_repositorys_own_format(name: str, repository: Repository, tmp_path: Path) -> None:
    source = SOURCES[name]
    assert quote(source.path, safe="/%-.") == source.path
    repository.files[source.path] = original(name, source)
    ours = Path(os.environ["RADOCRAFT_DATA"], f"{name}.csv").read_bytes()
    assert fetch(name, tmp_path, base=repository.base).read_bytes() == ours


@needs_data
def test_without_the_variable_the_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path(os.environ["RADOCRAFT_DATA"], "wine.csv").read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("RADOCRAFT_DATA")
    cache_folder().mkdir(parents=True)
    (cache_folder() / "wine.csv").write_bytes(data)
    assert load_table("wine").features.shape == (178, 13)


def test_quotes_and_blank_lines_do_not_matter() -> None:
    source = replace(SMALL, separator=None, class_first=False)
    assert to_csv(b"1\t2  a\n\n3 4 b\n", source) == b"x,y,class\n1,2,a\n3,4,b\n"


def test_the_digest_sees_values_not_types() -> None:
    whole, exact = csv.read_csv(pa.BufferReader(b"x\n1\n2\n")), csv.read_csv(pa.BufferReader(b"x\n1.0\n2\n"))
    assert values_digest(whole) == values_digest(exact)
    assert values_digest(whole) != values_digest(csv.read_csv(pa.BufferReader(b"x\n2\n1\n")))
