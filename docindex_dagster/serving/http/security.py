"""Access control: host names, origins, the token, concurrency limits, and security headers for browsers.

It is one ASGI layer in front of all routes, so that no route can be forgotten.
"""

import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response

from docindex_dagster.core.settings import ServeSettings
from docindex_dagster.serving.http import problems
from docindex_dagster.serving.http.problems import ProblemError, Slots
from docindex_dagster.serving.http.sessions import Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGIN = "/login"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Paths answered without a token, because they reveal no indexed content.
_OPEN_PATHS = frozenset({LOGIN, "/api/v1/health", "/favicon.ico"})
_OPEN_FOLDERS = ("/static/", "/problems/")
_AUTHORITY = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
_TOO_LARGE = "the body may have at most {:,} bytes"
_MAX_OPEN_BODY = 64 * 1024  # bytes of a body sent without a token, such as a login
_MAX_URL = 32 * 1024  # bytes of path and query
_RETRY_AFTER_S = 1
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send our own forms with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",  # indexed content may be private and may change at any time
}


def is_loopback(host: str) -> bool:
    """Return whether an address or name can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True, slots=True)
class Access:
    """Access rules: the server's names in lower case, the token if one is required, and the limits.

    Attributes:
        sessions: the sessions of browsers that sent the token.
    """

    hosts: frozenset[str]
    token: str | None = field(default=None, repr=False)
    concurrency: int = 64
    max_body_bytes: int = 1 << 20
    ended_sessions: Path | None = None
    sessions: Sessions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Create the sessions that the token opens."""
        object.__setattr__(self, "sessions", Sessions(self.token, self.ended_sessions))

    @classmethod
    def of(
        cls, listens_on: str, token: str | None, limits: ServeSettings, ended_sessions: Path | None = None
    ) -> "Access":
        """Create the rules for a server that listens on an address and may have further names.

        Args:
            listens_on: the address.
            token: the token that clients have to send; None if none is required.
            limits: the settings.
            ended_sessions: the file with the sessions that have ended; None to keep them in memory.
        """
        names = (listens_on, *_LOOPBACK_NAMES, *limits.hosts)
        hosts = frozenset(name.lower().strip("[]") for name in names)
        return cls(hosts, token, limits.concurrency, limits.max_body_bytes, ended_sessions)

    def admits(self, candidate: str) -> bool:
        """Return whether a text is the token, in constant time."""
        return self.token is None or hmac.compare_digest(candidate.encode(), self.token.encode())

    @property
    def cookie(self) -> str:
        """The name of the session cookie. It differs between servers of one machine, which share cookies."""
        return f"docindex_session_{self.sessions.fingerprint}"


class Guard:
    """Middleware that rejects requests that are not allowed and passes on the rest."""

    def __init__(self, app: "ASGIApp", access: Access) -> None:
        """Protect an application."""
        self._app = app
        self._access = access
        self._slots = Slots(access.concurrency, "requests are in progress", _RETRY_AFTER_S)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _WithHeaders(send)
        rejection = self._rejection(scope, Headers(scope=scope))
        if rejection is not None:
            await rejection(scope, receive, guarded)
            return
        # Take a slot only after receiving the body, so that a client that sends half of one cannot block others.
        is_open = _is_open(scope["path"])
        try:
            body = await _read(receive, _MAX_OPEN_BODY if is_open else self._access.max_body_bytes)
            with nullcontext() if is_open else self._slots.take():
                answer = self._answer_head if scope["method"] == "HEAD" else self._app
                await answer(scope, _replay(body, receive), guarded)
        except ClientDisconnect:
            return
        except Exception as error:
            if guarded.has_started:
                raise
            await problems.of_error(error)(scope, receive, guarded)

    async def _answer_head(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer HEAD like GET, but stop before the body, which may be endless."""
        with anyio.CancelScope() as until_the_body:

            async def send_start(message: "Message") -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b""})
                    until_the_body.cancel()

            await self._app({**scope, "method": "GET"}, receive, send_start)

    def _rejection(self, scope: "Scope", headers: Headers) -> Response | None:
        """Return the response to a request that is not allowed; None if it is allowed."""
        host = _host_of(headers.getlist("host"))
        if host not in self._access.hosts:
            return problems.answer("host", f"unknown host name {host!r}")
        if scope["method"] not in _SAFE_METHODS and (reason := _cross_site_reason(headers)) is not None:
            return problems.answer("forbidden", reason)
        if self._access.token is not None and not _is_open(scope["path"]) and not self._is_known(headers):
            return _unauthorized(scope, headers)
        return self._excess(scope, headers)

    def _excess(self, scope: "Scope", headers: Headers) -> Response | None:
        """Return the response to an oversized request, else None. Bodies without a length are checked while read."""
        if len(scope["raw_path"]) + len(scope["query_string"]) > _MAX_URL:
            return problems.answer("too-long", f"the path and query may have at most {_MAX_URL:,} bytes")
        length, limit = headers.get("content-length", ""), self._access.max_body_bytes
        if length.isdecimal() and int(length) > limit:
            return problems.answer("too-large", _TOO_LARGE.format(limit))
        return None

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._access.admits(given.strip()):
            return True
        return self._access.sessions.is_valid(_cookies(headers).get(self._access.cookie, ""))


class _WithHeaders:
    """Sender that adds the headers that every response has."""

    def __init__(self, send: "Send") -> None:
        self._send = send
        self.has_started = False

    async def __call__(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


async def _read(receive: "Receive", limit: int) -> bytes:
    """Read the body of a request.

    Raises:
        ProblemError: it has more than `limit` bytes.
        ClientDisconnect: the client disconnected before the end.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > limit:
            raise ProblemError("too-large", _TOO_LARGE.format(limit))
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: "Receive") -> "Receive":
    """Return a receiver that replays a body that has been read, then continues with the original."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_some() -> "Message":
        return messages.pop() if messages else await receive()

    return receive_some


def _unauthorized(scope: "Scope", headers: Headers) -> Response:
    """Redirect browsers to the login page, and send other clients a problem."""
    if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
        target = scope["raw_path"].decode("ascii", "replace") + f"?{scope['query_string'].decode('latin-1')}".rstrip(
            "?"
        )
        return RedirectResponse(LOGIN if target == "/" else f"{LOGIN}?{urlencode({'next': target})}", 303)
    detail = "this server requires its token"
    return problems.answer("unauthorized", detail, {"WWW-Authenticate": "Bearer"})


def is_from_here(scope: "Scope") -> bool:
    """Return whether a request comes from a program on this machine, and not through a proxy."""
    headers = Headers(scope=scope)
    client = scope.get("client")
    is_direct = not any(name in headers for name in _FORWARDED)
    return (
        is_direct and client is not None and is_loopback(client[0]) and is_loopback(_host_of(headers.getlist("host")))
    )


def origin_of(scope: "Scope") -> str:
    """Return the scheme and authority that the client used for this server. The guard has already checked them."""
    headers = Headers(scope=scope)
    scheme = "https" if is_encrypted(scope) else "http"
    return f"{scheme}://{headers.get('host', '')}"


def is_encrypted(scope: "Scope") -> bool:
    """Return whether the client uses TLS, with this server or with the proxy in front of it."""
    return "https" in {scope["scheme"], Headers(scope=scope).get("x-forwarded-proto", "").lower()}


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS)


def _host_of(authorities: Sequence[str]) -> str:
    """Return the name in a request's single `Host` header, without port; empty if invalid or not single."""
    found = _AUTHORITY.fullmatch(authorities[0]) if len(authorities) == 1 else None
    return found["name"].strip("[]").lower() if found else ""


def _cross_site_reason(headers: Headers) -> str | None:
    """Return why a request comes from another site's page; None if it does not."""
    site = headers.get("sec-fetch-site", "same-origin")
    if site not in {"same-origin", "none"}:
        return f"request from a page of another site (Sec-Fetch-Site: {site})"
    origin = headers.get("origin")
    if origin is None:
        return None
    try:
        requester = urlsplit(origin).netloc.lower()
    except ValueError:
        requester = ""
    if not requester or requester != headers.get("host", "").lower():
        return f"request from a page of another site (Origin: {origin})"
    return None


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}
