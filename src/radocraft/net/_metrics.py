"""Prometheus metrics and health of a running service, over HTTP on this host."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest

from radocraft.errors import NetworkError, RadocraftError


class Metrics:
    """Counts of one service; never a name of a column, a value or a count of rows.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.calls.labels("request", "ok").inc()
    >>> b'radocraft_calls_total{kind="request",outcome="ok"} 1.0' in metrics.page()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.calls = Counter("radocraft_calls", "Calls, by outcome", ["kind", "outcome"], registry=self._registry)
        self.turned_away = Counter("radocraft_turned_away", "Calls refused", ["reason"], registry=self._registry)
        self.jobs = Counter("radocraft_jobs", "Jobs by the state they reached", ["state"], registry=self._registry)
        self.sent = Counter("radocraft_sent_bytes", "Bytes of parts and models sent", registry=self._registry)
        self.received = Counter(
            "radocraft_received_bytes", "Bytes of parts and models received", registry=self._registry
        )
        self.expiry = Gauge(
            "radocraft_certificate_days_left", "Days until our certificate expires", registry=self._registry
        )

    def page(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)


def parse_port(listen: str) -> tuple[str, int]:
    """Host and port of ``127.0.0.1:9464``.

    Examples
    --------
    >>> parse_port("127.0.0.1:9464")
    ('127.0.0.1', 9464)
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or not host:
        raise NetworkError(f"'{listen}' is not an address. Write it as HOST:PORT, e.g. 127.0.0.1:9464.")
    return host.strip("[]"), int(port)


def serve_metrics(listen: str, metrics: Metrics, healthy: Callable[[], None]) -> ThreadingHTTPServer:
    """Answer ``/metrics`` and ``/health`` until `shutdown`; ``healthy`` raises a `RadocraftError` if it is not."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._say(200, CONTENT_TYPE_LATEST, metrics.page())
            elif self.path == "/health":
                try:
                    healthy()
                    self._say(200, "text/plain; charset=utf-8", b"ok\n")
                except RadocraftError as error:
                    self._say(503, "text/plain; charset=utf-8", f"{error}\n".encode())
            else:
                self._say(404, "text/plain; charset=utf-8", b"there are /metrics and /health\n")

        def _say(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: scrapes are no news."""

    try:
        page = ThreadingHTTPServer(parse_port(listen), Handler)
    except OSError as error:
        raise NetworkError(f"Cannot listen on {listen} for metrics: {error.strerror}. Choose another port.") from error
    page.daemon_threads = True
    Thread(target=page.serve_forever, daemon=True).start()
    return page
