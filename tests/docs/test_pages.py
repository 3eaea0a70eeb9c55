"""Every code block of the documentation runs as it stands, from a folder a reader would have."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pytest
from tests.docs.blocks import DOCS, NOISY, blocks, check, says_about, walk
from tests.docs.warm import warm_command
from tests.engines.conftest import Cluster

from radocraft import Contract, share
from radocraft.demo._example import example_people, write_example

PAGES = sorted(path for path in DOCS.rglob("*.md") if "reference" not in path.parts)
OWN_TESTS = {"tutorial.md", "postgres.md", "spark.md"}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_command(tmp_path_factory.mktemp("bin")) as folder:
        yield folder


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    write_example(folder)
    contract = Contract.load(folder / "contract.toml")
    for peer, table in (("bank", "bank.csv"), ("insurer", "insurer.parquet")):
        share(folder / table, contract, peer, output=folder / f"{peer}.part.parquet")
    pyarrow.csv.write_csv(example_people(300, seed=2), folder / "consented.csv")
    return folder


@pytest.fixture
def folder(example: Path, tmp_path: Path) -> Path:
    """A reader's folder: the example's files, the parts made of them, and some linked rows."""
    shutil.copytree(example, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_the_tutorial_works_in_an_empty_folder(tmp_path: Path, command: Path) -> None:
    assert not [*tmp_path.iterdir()]
    walk(DOCS / "tutorial.md", tmp_path, command)
    assert (tmp_path / "trial" / "report.html").exists()
    assert len((tmp_path / "trial" / "scores.csv").read_text().splitlines()) == 1001


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OWN_TESTS], ids=lambda page: page.stem)
def test_every_block_runs(page: Path, folder: Path, command: Path) -> None:
    walk(page, folder, command)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_postgres(postgres: Cluster, folder: Path, command: Path) -> None:
    import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415

    with driver.connect(postgres.address()) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("customers", pyarrow.csv.read_csv(folder / "bank.csv"), mode="replace")
        connection.commit()
    walk(DOCS / "howto" / "postgres.md", folder, command, DATABASE=postgres.address())


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_spark(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, where Spark is running already."""
    page = DOCS / "howto" / "spark.md"
    write_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    (code,) = [block.text for block in blocks(page) if block.language == "python"]
    exec(code, {})
    (said,) = [block.text for block in blocks(page) if block.title == NOISY]
    assert says_about(capsys.readouterr().out, said)
    for block in blocks(page):
        check(block, page)


def test_an_excuse_is_an_installation_or_names_the_test_that_runs_the_block() -> None:
    for page in PAGES:
        for excuse in (block.excuse for block in blocks(page) if block.excuse):
            named = re.findall(r"tests/[\w/]+\.py", excuse)
            assert named or "installs what is installed already" in excuse, (page.name, excuse)
            assert all((DOCS.parent / path).exists() for path in named), (page.name, excuse)


@pytest.mark.parametrize(
    ("line", "holds"),
    [("rows 10,054 in 31 cells", True), ("rows 12,054 in 31 cells", False), ("columns 10,054 in 31 cells", False)],
)
def test_output_with_noise_may_differ_by_a_tenth(line: str, holds: bool) -> None:
    assert says_about("peer bank\nrows       9,999 in 32 cells, by 10 columns", line) is holds


def test_few_blocks_are_excused() -> None:
    excused = [block for page in PAGES for block in blocks(page) if block.excuse]
    run = [block for page in PAGES for block in blocks(page) if block.runs]
    pages = {page.name for page in PAGES for block in blocks(page) if block.runs}
    assert len(excused) < len(run) + len(blocks(DOCS / "study.md"))
    assert {
        "tutorial.md",
        "privacy.md",
        "models.md",
        "proofs.md",
        *(p.name for p in (DOCS / "howto").iterdir()),
    } <= pages
