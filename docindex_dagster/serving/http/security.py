"""Who may ask what: names of the server, origins, the token, how many at once, and what a browser may do with answers.

It is one layer of ASGI before all routes, so that no route can be forgotten.
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
from docindex_dagster.serving.http.problems import Places, ProblemError
from docindex_dagster.serving.http.sessions import Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGIN = "/login"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# What is answered without a token: it holds nothing of what is indexed.
_OPEN_PATHS = frozenset({LOGIN, "/api/v1/health", "/favicon.ico"})
_OPEN_FOLDERS = ("/static/", "/problems/")
_AUTHORITY = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
_TOO_LARGE = "a body has {:,} bytes at most"
_LONGEST_FORM = 64 * 1024  # bytes of a body that is sent without a token, as that of a login
_LONGEST_ADDRESS = 32 * 1024  # bytes of a path and its query
_RETRY_AFTER_S = 1
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send our own forms with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",  # what is indexed may be private, and may change at any moment
}


def is_loopback(host: str) -> bool:
    """Whether an address or name is one that only this machine can reach."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: by which names the server is called, in lower case, the token, if one is needed, and how much.

    Attributes:
        sessions: of browsers that gave the token.
    """

    hosts: frozenset[str]
    token: str | None = field(default=None, repr=False)
    concurrency: int = 64
    max_body_bytes: int = 1 << 20
    ended_sessions: Path | None = None
    sessions: Sessions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Let the token open sessions."""
        object.__setattr__(self, "sessions", Sessions(self.token, self.ended_sessions))

    @classmethod
    def of(
        cls, listens_on: str, token: str | None, limits: ServeSettings, ended_sessions: Path | None = None
    ) -> "Access":
        """Access to a server that listens on an address, and that clients may call by further names as well.

        Args:
            listens_on: the address.
            token: that clients have to send; None for none.
            limits: the settings.
            ended_sessions: the file that names the sessions that have ended; None to keep them in memory.
        """
        names = (listens_on, *_LOOPBACK_NAMES, *limits.hosts)
        hosts = frozenset(name.lower().strip("[]") for name in names)
        return cls(hosts, token, limits.concurrency, limits.max_body_bytes, ended_sessions)

    def admits(self, given: str) -> bool:
        """Whether it is the token, in a time that does not tell how much of it is right."""
        return self.token is None or hmac.compare_digest(given.encode(), self.token.encode())

    @property
    def cookie(self) -> str:
        """The name of the cookie of a session. It differs between servers of one machine, which share cookies."""
        return f"docindex_session_{self.sessions.fingerprint}"


class Guard:
    """Answers what may not be asked, and passes on the rest."""

    def __init__(self, app: "ASGIApp", access: Access) -> None:
        """Guard an application."""
        self._app = app
        self._access = access
        self._places = Places(access.concurrency, "requests are under way", _RETRY_AFTER_S)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _WithHeaders(send)
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        # A place is taken once the body has come, so that a client that sends half of one takes none from others.
        is_open = _is_open(scope["path"])
        try:
            body = await _read(receive, _LONGEST_FORM if is_open else self._access.max_body_bytes)
            with nullcontext() if is_open else self._places.one():
                answer = self._headers_alone if scope["method"] == "HEAD" else self._app
                await answer(scope, _given_back(body, receive), guarded)
        except ClientDisconnect:
            return
        except Exception as error:
            if guarded.has_begun:
                raise
            await problems.of_error(error)(scope, receive, guarded)

    async def _headers_alone(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer HEAD as GET, and end where the body would begin, which may have no end."""
        with anyio.CancelScope() as until_the_body:

            async def send_start(message: "Message") -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b""})
                    until_the_body.cancel()

            await self._app({**scope, "method": "GET"}, receive, send_start)

    def _refusal(self, scope: "Scope", headers: Headers) -> Response | None:
        """The answer to what may not be asked; None for what may."""
        host = _host_of(headers.getlist("host"))
        if host not in self._access.hosts:
            return problems.answer("host", f"this server is not called {host or 'nothing'}")
        if scope["method"] not in _SAFE_METHODS and (reason := _foreign(headers)) is not None:
            return problems.answer("forbidden", reason)
        if self._access.token is not None and not _is_open(scope["path"]) and not self._is_known(headers):
            return _unauthorized(scope, headers)
        return self._excess(scope, headers)

    def _excess(self, scope: "Scope", headers: Headers) -> Response | None:
        """The answer to what is too much; None for what is not. A body without a length is looked at as it is read."""
        if len(scope["raw_path"]) + len(scope["query_string"]) > _LONGEST_ADDRESS:
            return problems.answer("too-long", f"an address has {_LONGEST_ADDRESS:,} bytes at most")
        length, most = headers.get("content-length", ""), self._access.max_body_bytes
        if length.isdecimal() and int(length) > most:
            return problems.answer("too-large", _TOO_LARGE.format(most))
        return None

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._access.admits(given.strip()):
            return True
        return self._access.sessions.is_valid(_cookies(headers).get(self._access.cookie, ""))


class _WithHeaders:
    """Sends an answer with the headers that each has."""

    def __init__(self, send: "Send") -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


async def _read(receive: "Receive", most: int) -> bytes:
    """Read the body of a request.

    Raises:
        ProblemError: it has more than `most` bytes.
        ClientDisconnect: its client has left before the end.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > most:
            raise ProblemError("too-large", _TOO_LARGE.format(most))
        if not message.get("more_body", False):
            return bytes(body)


def _given_back(body: bytes, receive: "Receive") -> "Receive":
    """Receive a body that has been read, and then what its client does."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_some() -> "Message":
        return messages.pop() if messages else await receive()

    return receive_some


def _unauthorized(scope: "Scope", headers: Headers) -> Response:
    """Where to give the token, for people; that it is missing, for programs."""
    if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
        wanted = scope["raw_path"].decode("ascii", "replace") + f"?{scope['query_string'].decode('latin-1')}".rstrip(
            "?"
        )
        return RedirectResponse(LOGIN if wanted == "/" else f"{LOGIN}?{urlencode({'next': wanted})}", 303)
    detail = "this server answers those alone who send its token"
    return problems.answer("unauthorized", detail, {"WWW-Authenticate": "Bearer"})


def is_from_here(scope: "Scope") -> bool:
    """Whether a request comes from a program on this machine, and through no proxy."""
    headers = Headers(scope=scope)
    client = scope.get("client")
    is_direct = not any(name in headers for name in _FORWARDED)
    return (
        is_direct and client is not None and is_loopback(client[0]) and is_loopback(_host_of(headers.getlist("host")))
    )


def origin_of(scope: "Scope") -> str:
    """The scheme and the authority by which a client calls the server, which the guard has let pass."""
    headers = Headers(scope=scope)
    scheme = "https" if is_encrypted(scope) else "http"
    return f"{scheme}://{headers.get('host', '')}"


def is_encrypted(scope: "Scope") -> bool:
    """Whether the client speaks TLS, with us or with the proxy before us."""
    return "https" in {scope["scheme"], Headers(scope=scope).get("x-forwarded-proto", "").lower()}


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS)


def _host_of(authorities: Sequence[str]) -> str:
    """The name in the one `Host` header of a request, without its port; empty where it is none, or not the only one."""
    found = _AUTHORITY.fullmatch(authorities[0]) if len(authorities) == 1 else None
    return found["name"].strip("[]").lower() if found else ""


def _foreign(headers: Headers) -> str | None:
    """Why a request that changes something comes from another site's page; None where it does not."""
    site = headers.get("sec-fetch-site", "same-origin")
    if site not in {"same-origin", "none"}:
        return f"a page of another site asks for a change (Sec-Fetch-Site: {site})"
    origin = headers.get("origin")
    if origin is None:
        return None
    try:
        asked_by = urlsplit(origin).netloc.lower()
    except ValueError:
        asked_by = ""
    if not asked_by or asked_by != headers.get("host", "").lower():
        return f"a page of another site asks for a change (Origin: {origin})"
    return None


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}
