"""A world for each test, with no process left behind."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.net.nursery import Nursery, nursery
from tests.integration.net.world import World


@pytest.fixture(scope="session")
def processes() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Without processes."""
    return World.make(tmp_path)


@pytest.fixture
def town(tmp_path: Path, processes: Nursery) -> Iterator[World]:
    """With processes."""
    made = World.make(tmp_path, processes)
    yield made
    made.close()


@pytest.fixture(params=["one network", "a namespace each"])
def place(request: pytest.FixtureRequest, town: World) -> Iterator[World]:
    """Processes on one host, and each on a host of its own as far as the network can tell."""
    if request.param == "one network":
        yield town
        return
    with namespaces(town):
        yield town
        for process in town.running:
            process.end(9)


@contextmanager
def namespaces(town: World) -> Iterator[None]:
    """A network namespace for each, joined by a bridge in one of their own."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    tag = f"rc{os.getpid()}"
    if ip(f"netns add {tag}", check=False):
        pytest.skip("this machine has no network namespaces")
    made = [tag]
    try:
        ip(f"-n {tag} link add bridge type bridge", f"-n {tag} link set bridge up")
        for at, who in enumerate(("collector", "bank", "insurer", "shop"), start=1):
            name, wire = f"{tag}-{who}", f"to{at}"
            ip(f"netns add {name}")
            made.append(name)
            ip(
                f"-n {tag} link add {wire} type veth peer name eth0 netns {name}",
                f"-n {tag} link set {wire} master bridge up",
                f"-n {name} addr add 10.77.0.{at}/24 dev eth0",
                f"-n {name} link set eth0 up",
                f"-n {name} link set lo up",
            )
            town.spaces[who] = (name, f"10.77.0.{at}")
        yield
    finally:
        for name in made:
            ip(f"netns delete {name}", check=False)


def ip(*commands: str, check: bool = True) -> int:
    return max(subprocess.run(["ip", *line.split()], check=check, capture_output=True).returncode for line in commands)
