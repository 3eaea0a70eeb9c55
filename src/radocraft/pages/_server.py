"""The server of the review page, on this machine only.

It listens on the loopback address only. The address it gives holds a token that
works once: the first visit trades it for a cookie, and every later request must
bring that cookie, name this machine as the host, and, to decide, send the page's
own secret back. Nothing is loaded from elsewhere and nothing is cached.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from dataclasses import replace
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from radocraft.errors import RadocraftError
from radocraft.ledger import Verdict
from radocraft.pages._review import ReviewForm, closing_page, review_page
from radocraft.peer import Conclusion, Pending, conclude, destination

LOOPBACK = "127.0.0.1"
_LONGEST = 100_000


class ReviewServer:
    """Shows one pending release until it is decided on.

    Parameters
    ----------
    pending
        The file that waits.
    output
        Where to write an approved part; beside the pending file if None.
    replace
        Whether another file may be written over there.
    """

    def __init__(self, pending: Path, output: Path | None = None, *, replace: bool = True) -> None:
        destination(pending, output)
        self.pending, self.output, self.replace = pending, output, replace
        self.waiting = Pending.read(pending)
        self.secret = secrets.token_urlsafe(32)
        self.conclusion: Conclusion | None = None
        self._token: str | None = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._http = _Http((LOOPBACK, 0), _Handler)
        self._http.review = self

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """The address to open; its token works once."""
        return f"http://{LOOPBACK}:{self.port}/?token={self._token}"

    @property
    def cookie_name(self) -> str:
        """Cookies do not tell ports apart, so their names do."""
        return f"radocraft-review-{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.server_close()

    def wait(self) -> Conclusion | None:
        """Serve until a decision was made; None if it was stopped before."""
        self._http.serve_forever(poll_interval=0.1)
        return self.conclusion

    def admit(self, token: str) -> str | None:
        """The cookie for the first who brings the token; None for all others."""
        with self._lock:
            if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
                return None
            self._token = None
            return self._cookie

    def knows(self, cookie: str) -> bool:
        """Whether a request comes from the browser that brought the token."""
        return hmac.compare_digest(cookie.encode(), self._cookie.encode())

    def decide(self, verdict: Verdict, name: str, reason: str) -> Conclusion:
        """Carry the decision out, once."""
        with self._lock:
            if self.conclusion is None:
                self.conclusion = conclude(self.pending, verdict, name, reason, self.output, replace=self.replace)
            return self.conclusion

    def stop(self) -> None:
        """End `wait`, once the answer is on its way."""
        threading.Thread(target=self._http.shutdown).start()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    review: ReviewServer


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    server_version = "radocraft"
    sys_version = ""

    def do_GET(self) -> None:
        """The page, the part, or the way in."""
        where = urlsplit(self.path)
        if not self._at_home():
            return self._forbid("This page can only be opened on this machine.")
        if where.path == "/" and (token := parse_qs(where.query).get("token")):
            return self._let_in(token[0])
        if not self._known():
            return self._forbid("The address was used already, or its token is wrong. Run radocraft review --web anew.")
        if where.path == "/":
            return self._show(ReviewForm(self.server.review.secret))
        if where.path == "/part.parquet":
            return self._send_part()
        return self._close("Page not found", "Go back to the review.", HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """A decision."""
        review = self.server.review
        sent = self._form()
        if not (
            self._at_home()
            and self._known()
            and hmac.compare_digest(sent.get("secret", "").encode(), review.secret.encode())
        ):
            return self._forbid("A decision must come from the review page itself. Run radocraft review --web anew.")
        form = ReviewForm(review.secret, sent.get("name", "").strip(), sent.get("reason", "").strip())
        verdict = sent.get("verdict")
        if verdict not in ("approval", "refusal") or not form.name or not form.reason:
            return self._show(
                replace(form, problem="A decision needs your name, a reason, and one of the two buttons.")
            )
        try:
            conclusion = review.decide("approval" if verdict == "approval" else "refusal", form.name, form.reason)
        except RadocraftError as error:
            return self._show(replace(form, problem=str(error)), HTTPStatus.CONFLICT)
        if conclusion.part is not None:
            self._close(
                "Approved", f"The part was written to {conclusion.part} and may leave. The ledger has recorded it."
            )
        else:
            self._close("Refused", "Nothing left, and nothing will. The ledger has recorded it.")
        return review.stop()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the ledger is the record."""

    def _at_home(self) -> bool:
        """Another name for this address would let pages from elsewhere ask in the visitor's name."""
        return self.headers.get("Host") in (
            f"{LOOPBACK}:{self.server.review.port}",
            f"localhost:{self.server.review.port}",
        )

    def _known(self) -> bool:
        try:
            crumb = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.review.cookie_name)
        except CookieError:
            return False
        return crumb is not None and self.server.review.knows(crumb.value)

    def _let_in(self, token: str) -> None:
        cookie = self.server.review.admit(token)
        if cookie is None and not self._known():
            return self._forbid("The address was used already, or its token is wrong. Run radocraft review --web anew.")
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", "/")
        if cookie is not None:
            self.send_header(
                "Set-Cookie", f"{self.server.review.cookie_name}={cookie}; HttpOnly; SameSite=Strict; Path=/"
            )
        self._finish_headers(0)

    def _form(self) -> dict[str, str]:
        header = self.headers.get("Content-Length", "")
        length = min(int(header), _LONGEST) if header.isdecimal() else 0
        sent = parse_qs(self.rfile.read(length).decode("utf-8", "replace"), keep_blank_values=True)
        return {name: values[0] for name, values in sent.items()}

    def _show(self, form: ReviewForm, status: HTTPStatus = HTTPStatus.OK) -> None:
        nonce = secrets.token_urlsafe(16)
        self._send(review_page(self.server.review.waiting, form, nonce), nonce, status)

    def _close(self, title: str, words: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        nonce = secrets.token_urlsafe(16)
        self._send(closing_page(title, words, nonce), nonce, status)

    def _forbid(self, words: str) -> None:
        self._close("Not allowed", words, HTTPStatus.FORBIDDEN)

    def _send(self, text: str, nonce: str, status: HTTPStatus) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header(
            "Content-Security-Policy",
            f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; form-action 'self'; "
            "base-uri 'none'; frame-ancestors 'none'",
        )
        self._finish_headers(len(body))
        self.wfile.write(body)

    def _send_part(self) -> None:
        body = self.server.review.waiting.encoded
        name = f"{self.server.review.waiting.line.file[:16]}.part.parquet"
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/vnd.apache.parquet")
        self.send_header("Content-Disposition", f'attachment; filename="{name}"')
        self._finish_headers(len(body))
        self.wfile.write(body)

    def _finish_headers(self, length: int) -> None:
        for name, value in (
            ("Content-Length", str(length)),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ):
            self.send_header(name, value)
        self.end_headers()
