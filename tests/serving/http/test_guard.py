"""Tests of access to `docindex serve`: host names, origins, the token and limits."""

from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from docindex_dagster.core.settings import ServeSettings
from docindex_dagster.serving.http.security import Access, Guard, is_from_here, is_loopback
from tests.serving.http.conftest import serving

TOKEN = "a-token-that-is-long-enough-0123456789"
OTHER = "a-token-that-is-long-enough-9876543210"


@dataclass(frozen=True)
class Asked:
    """A request: its host name, origin and credentials."""

    method: str = "GET"
    host: str = "127.0.0.1:8090"
    origin: str | None = None
    site: str | None = None
    token: str | None = None
    cookie: str | None = None

    def headers(self) -> list[tuple[bytes, bytes]]:
        given = {
            "Host": self.host,
            "Origin": self.origin,
            "Sec-Fetch-Site": self.site,
            "Authorization": self.token and f"Bearer {self.token}",
            "Cookie": self.cookie and f"{access(token=TOKEN).cookie}={self.cookie}",
        }
        return [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None]


async def anything(request):
    return PlainTextResponse("secret")


METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]


def access(*, host: str = "127.0.0.1", token: str | None = None, **limits) -> Access:
    return Access.of(host, token, ServeSettings(**limits))


def guarded(given: Access) -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", anything, methods=METHODS)])
    return TestClient(Guard(app, given), base_url="http://127.0.0.1:8090")


def status(given: Access, asked: Asked, path: str = "/api/v1/search") -> int:
    return guarded(given).request(asked.method, path, headers=asked.headers()).status_code


def statuses(given: Access, asked: Asked) -> dict[str, int]:
    """Return the response status of each method."""
    client = guarded(given)
    return {method: client.request(method, "/x", headers=asked.headers()).status_code for method in METHODS}


HOSTS = {
    "127.0.0.1:8090": True,
    "127.0.0.1": True,
    "localhost:8090": True,
    "LOCALHOST": True,
    "[::1]:8090": True,
    "[::1]": True,
    "docs.example.com": True,  # named in the settings
    "evil.example.com": False,  # DNS rebinding: a name now bound to 127.0.0.1
    "127.0.0.1.evil.example.com": False,
    "localhost.": False,
    "evil@127.0.0.1": False,
    "127.0.0.1/evil": False,
    "127.0.0.1:8090:1": False,
    "127.0.0.1:": False,
    "[::1": False,
    "::1": False,
    "": False,
    "0.0.0.0": False,
    "192.168.1.7:8090": False,
}
# Requesting page: its origin and site as sent by the browser, and whether it may make changes.
PAGES = {
    "no page": (None, None, True),
    "its own": ("http://127.0.0.1:8090", "same-origin", True),
    "its own, behind TLS": ("https://127.0.0.1:8090", "same-origin", True),
    "typed by the user": (None, "none", True),
    "another port": ("http://127.0.0.1:3000", "same-site", False),
    "another port of an old browser": ("http://127.0.0.1:3000", None, False),
    "another name of this machine": ("http://localhost:8090", "cross-site", False),
    "another site": ("https://evil.example.com", "cross-site", False),
    "another site in an old browser": ("https://evil.example.com", None, False),
    "another site that sends no origin": (None, "cross-site", False),
    "a sandbox": ("null", "cross-site", False),
    "a sandbox in an old browser": ("null", None, False),
    "what is no origin": ("http://[", None, False),
    "an empty origin": ("", None, False),
    "what is no site": (None, "nonsense", False),
}
# Client: the tokens in its header and cookie, and whether they suffice where a token is required.
CLIENTS = {
    "nobody": (None, None, False),
    "the wrong token": (OTHER, None, False),
    "a part of the token": (TOKEN[:-1], None, False),
    "the token and more": (TOKEN + "0", None, False),
    "the token": (TOKEN, None, True),
    "a session": (None, access(token=TOKEN).sessions.begin(), True),
    "a session of another token": (None, access(token=OTHER).sessions.begin(), False),
    "a session that was made longer": (None, "9" + access(token=TOKEN).sessions.begin(), False),
    "a session without a signature": (None, "99999999999.", False),
    "what is no session": (None, "ÿ²", False),
}


@pytest.mark.parametrize(("host", "is_ours"), HOSTS.items())
def test_it_answers_to_its_own_names_alone(host, is_ours):
    given = access(hosts=("docs.example.com",))
    assert set(statuses(given, Asked(host=host)).values()) == {200 if is_ours else 421}


@pytest.mark.parametrize("who", CLIENTS)
@pytest.mark.parametrize("needs_token", [False, True])
@pytest.mark.parametrize("page", PAGES)
def test_who_may_ask(page, needs_token, who):
    origin, site, may_change = PAGES[page]
    token, cookie, is_known = CLIENTS[who]
    asked = Asked(origin=origin, site=site, token=token, cookie=cookie)
    to_read = 401 if needs_token and not is_known else 200
    to_change = to_read if may_change else 403

    found = statuses(access(token=TOKEN if needs_token else None), asked)

    assert found == {
        "GET": to_read,
        "HEAD": to_read,
        "POST": to_change,
        "PUT": to_change,
        "DELETE": to_change,
        "PATCH": to_change,
    }


@pytest.mark.parametrize("path", ["/api/v1/health", "/static/page.css", "/login", "/favicon.ico", "/problems/host"])
def test_what_tells_nothing_of_the_index_needs_no_token(path):
    assert status(access(token=TOKEN), Asked(), path) == 200


@pytest.mark.parametrize("path", ["/", "/mcp", "/metrics", "/openapi.json", "/api/v1/healthy", "/static", "/STATIC/x"])
def test_all_else_does(path):
    assert status(access(token=TOKEN), Asked(), path) == 401


def test_a_request_without_the_header_host_is_for_nobody():
    async def call() -> list[int]:
        found = []

        async def send(message):
            found.append(message)

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "headers": []}
        for headers in ([], [(b"host", b"127.0.0.1"), (b"host", b"evil.example.com")]):
            await Guard(Starlette(), access())({**scope, "headers": headers}, receive, send)
        return [message["status"] for message in found if message["type"] == "http.response.start"]

    assert anyio.run(call) == [421, 421]


def test_a_person_without_a_token_is_led_to_where_it_is_asked_for():
    answer = guarded(access(token=TOKEN)).get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login")


@pytest.mark.parametrize("listens_on", ["127.0.0.2", "192.168.1.7", "::1", "fd00::7", "search.example.com"])
def test_the_address_that_it_listens_on_is_one_of_its_names(listens_on):
    name = f"[{listens_on}]" if ":" in listens_on else listens_on
    given = access(host=listens_on, token=TOKEN)
    assert status(given, Asked(host=f"{name}:8090", token=TOKEN)) == 200
    assert status(given, Asked(host="evil.example.com", token=TOKEN)) == 421


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.7", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_what_is_loopback(host, is_ours):
    assert is_loopback(host) is is_ours


@pytest.mark.parametrize(
    ("client", "headers", "is_here"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("192.168.1.7", {}, False),
        ("127.0.0.1", {"X-Forwarded-For": "192.168.1.7"}, False),
        ("127.0.0.1", {"Forwarded": "for=192.168.1.7"}, False),
        ("127.0.0.1", {"Via": "1.1 proxy"}, False),
        ("127.0.0.1", {"Host": "docs.example.com"}, False),  # as forwarded by a reverse proxy
    ],
)
def test_who_is_on_this_machine(client, headers, is_here):
    sent = {"Host": "127.0.0.1:8090", **headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    assert is_from_here({"type": "http", "client": (client, 1), "headers": raw}) is is_here


FOLDERS = ["manual", "/etc", "file:///etc", "FILE:///etc", "~", "./manual"]


@pytest.mark.parametrize("place", FOLDERS)
@pytest.mark.parametrize(
    ("client", "headers"),
    [
        (("192.168.1.7", 1), {"Host": "127.0.0.1"}),
        (("127.0.0.1", 1), {"X-Forwarded-For": "192.168.1.7"}),
        (("127.0.0.1", 1), {"Host": "docs.example.com"}),
        (None, {}),
    ],
)
def test_folders_of_the_server_are_sources_for_who_is_on_it_alone(root: Path, place, client, headers):
    settings = root / "docindex.toml"
    settings.write_text('[serve]\nhosts = ["docs.example.com"]\n' + settings.read_text())
    before = settings.read_text()

    with serving(root, token=TOKEN, client=client) as elsewhere:
        asked = {"Authorization": f"Bearer {TOKEN}", **headers}
        answer = elsewhere.post("/api/v1/sources", json={"place": place}, headers=asked)

    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")
    assert settings.read_text() == before


@pytest.mark.parametrize("asked", [Asked(), Asked(host="evil.example.com"), Asked("POST", origin="null")])
def test_each_answer_tells_browsers_to_trust_nothing(asked):
    headers = guarded(access()).request(asked.method, "/", headers=asked.headers()).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers


def test_an_answer_to_what_nobody_expected_is_a_problem_with_the_same_headers():
    async def fail(request):
        raise RuntimeError("the token is " + TOKEN)

    app = Starlette(routes=[Route("/", fail)], middleware=[Middleware(Guard, access=access())])
    answer = TestClient(app, base_url="http://127.0.0.1").get("/")

    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/internal")
    assert "Content-Security-Policy" in answer.headers
    assert TOKEN not in answer.text


def test_head_is_answered_as_get_without_a_body():
    asked = guarded(access())
    head, get = asked.head("/x"), asked.get("/x")
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers == get.headers


def test_too_much_is_refused():
    given = access(max_body_bytes=1024)
    asked = guarded(given)
    assert asked.post("/x", content=b"1" * 1024).status_code == 200
    assert asked.post("/x", content=b"1" * 1025).json()["type"] == "/problems/too-large"
    assert asked.get("/x?" + "1" * 30_000).status_code == 200
    assert asked.get("/x?" + "1" * 33_000).json()["type"] == "/problems/too-long"
    busy = guarded(replace(given, concurrency=0)).get("/x")
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "1")


def test_the_token_is_no_part_of_what_is_shown_of_the_access():
    assert TOKEN not in repr(access(token=TOKEN))
