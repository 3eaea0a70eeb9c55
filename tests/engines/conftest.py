"""Real engines for the tests: a private Postgres cluster and a local Spark session, each started once."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port

_INSTALL = "run .ci/services to install it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark leaves a socket to the garbage collector, in whichever test comes next."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def absent(what: str) -> None:
    """A developer may lack an engine; where every change is tested it must be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}: {_INSTALL}")
    pytest.skip(f"{what}: {_INSTALL}")


@dataclass(frozen=True)
class Cluster:
    """A running Postgres of our own."""

    binaries: Path
    folder: Path
    port: int
    user: str = "peer"
    password: str = "open sesame/@"

    def address(self, password: str = "open%20sesame%2F%40", database: str = "postgres") -> str:
        return f"postgresql://{self.user}:{password}@127.0.0.1:{self.port}/{database}"

    def run(self, program: str, *options: str) -> None:
        """Postgres refuses to run as root, so its own user does it."""
        account: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if is_root() else {}
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        command = [str(self.binaries / program), *options]
        done = subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            **account,
        )
        assert done.returncode == 0, f"{program} failed: {(self.folder / 'log').read_text()}"


def is_root() -> bool:
    return os.geteuid() == 0


def find_postgres() -> Path | None:
    on_path = shutil.which("initdb")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = [Path(on_path)] if on_path else installed[-1:]
    return found[0].resolve().parent if found else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    if find_spec("adbc_driver_postgresql") is None:
        absent("the Postgres driver is not installed")
    binaries = find_postgres()
    if binaries is None:
        absent("there is no Postgres server")
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="radocraft-postgres-"))
    port = free_port()
    cluster = Cluster(binaries, folder, port)
    (folder / "password").write_text(cluster.password + "\n")
    if is_root():
        shutil.chown(folder, "postgres", "postgres")
        shutil.chown(folder / "password", "postgres", "postgres")
    data = str(folder / "data")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    try:
        login = ["-A", "scram-sha-256", "--pwfile", str(folder / "password"), "-U", cluster.user]
        cluster.run("initdb", "-D", data, "-E", "UTF8", "--no-sync", *login)
        cluster.run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        yield cluster
        cluster.run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    if find_spec("pyspark") is None:
        absent("PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        absent("there is no Java to run Spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]").appName("radocraft tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
