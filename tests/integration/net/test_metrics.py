"""What a machine may ask of a running peer: metrics and health, and nothing about rows."""

import urllib.error
import urllib.request

import pytest
from tests.integration.net.live import live
from tests.integration.net.world import World

from radocraft.errors import IdentityError, NetworkError
from radocraft.net._messages import Hello, Nothing
from radocraft.net._metrics import Metrics, serve_metrics


def get(port: int | None, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_count_calls_jobs_bytes_and_refusals(world: World) -> None:
    with live(world, metrics="127.0.0.1:0") as bank:
        port = bank.node.metrics_port
        assert get(port, "/health") == (200, "ok\n")
        with bank.call() as channel:
            assert bank.ask(channel, bank.request()).state == "ready"
            channel.act("hello", Nothing(), Hello)
        with bank.call("shop/identity") as stranger, pytest.raises(IdentityError):
            stranger.act("hello", Nothing(), Hello)
        code, page = get(port, "/metrics")
        assert code == 200
        for line in (
            'radocraft_jobs_total{state="asked"} 1.0',
            'radocraft_jobs_total{state="ready"} 1.0',
            'radocraft_turned_away_total{reason="no member"} 1.0',
        ):
            assert line in page
        assert "radocraft_certificate_days_left 36" in page
        assert get(port, "/other")[0] == 404
        (world.folder / "bank" / "jobs").rename(world.folder / "gone")
        assert (get(port, "/health")[0], "cannot be written" in get(port, "/health")[1]) == (503, True)
        (world.folder / "gone").rename(world.folder / "bank" / "jobs")


def test_a_port_that_is_taken(world: World) -> None:
    with live(world, metrics="127.0.0.1:0") as bank, pytest.raises(NetworkError, match="Choose another port"):
        serve_metrics(f"127.0.0.1:{bank.node.metrics_port}", Metrics(), lambda: None)
