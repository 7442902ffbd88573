"""Tests of logging in with the token and logging out."""

from http.cookies import SimpleCookie

import anyio
import pytest

from docindex_dagster.serving.web import pages
from tests.serving.web.conftest import serving

TOKEN = "a-token-that-is-long-enough-0123456789"


@pytest.fixture
def guarded(indexed, monkeypatch):
    monkeypatch.setattr(pages, "_WRONG_TOKEN_DELAY_S", 0.01)
    with serving(indexed, TOKEN) as client:
        yield client


def log_in(client, token: str = TOKEN, **headers: str):
    return client.post("/login", content=f"token={token}", headers=headers)


def cookie_of(answer):
    (morsel,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    return morsel


def test_a_browser_is_led_to_the_form(guarded):
    answer = guarded.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login")
    assert guarded.get("/login").status_code == 200
    assert guarded.get("/static/page.css").status_code == 200


def test_the_token_opens_the_pages_until_one_logs_out(guarded):
    assert log_in(guarded).status_code == 303
    assert guarded.get("/sources").status_code == 200
    assert "Log out" in guarded.get("/").text
    assert guarded.post("/logout").headers["Location"] == "/login"
    assert guarded.get("/sources").status_code == 303


def test_who_followed_a_link_comes_to_its_page_after_the_login(guarded):
    link = "/file/git/shop/tank.py?from=3#L3"
    form = guarded.get(guarded.get(link).headers["Location"])
    assert 'name="next" value="/file/git/shop/tank.py?from=3"' in form.text

    answer = guarded.post("/login", data={"token": TOKEN, "next": "/file/git/shop/tank.py?from=3"})
    assert answer.headers["Location"] == "/file/git/shop/tank.py?from=3"


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/a\r\nb", ""]
)
def test_the_login_leads_to_no_other_site(guarded, elsewhere):
    answer = guarded.post("/login", data={"token": TOKEN, "next": elsewhere})
    assert answer.headers["Location"] == "/"


def test_a_wrong_token_is_refused_late_and_is_not_repeated(guarded, monkeypatch):
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)
    answer = log_in(guarded, "wrong-secret")
    assert answer.status_code == 401
    assert waited == [pages._WRONG_TOKEN_DELAY_S]
    assert "Set-Cookie" not in answer.headers
    assert "wrong-secret" not in answer.text
    assert guarded.get("/sources").status_code == 303


def test_the_cookie_is_for_this_site_alone_and_no_script_reads_it(guarded):
    morsel = cookie_of(log_in(guarded))
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "lax", "/")
    assert not morsel["secure"]
    assert TOKEN not in morsel.value


def test_behind_tls_the_cookie_is_sent_over_tls_alone(guarded):
    answer = log_in(guarded, **{"X-Forwarded-Proto": "https"})
    assert cookie_of(answer)["secure"]


def test_a_form_of_another_site_logs_nobody_in(guarded):
    assert log_in(guarded, Origin="https://evil.example").status_code == 403


def test_without_a_token_there_is_nothing_to_log_in_to(client):
    assert client.get("/login").headers["Location"] == "/"
    assert "Log out" not in client.get("/").text


def test_a_copied_cookie_is_worth_nothing_once_its_session_has_ended(guarded):
    log_in(guarded)
    copied = {"Cookie": "; ".join(f"{name}={value}" for name, value in guarded.cookies.items())}
    guarded.post("/logout")
    assert guarded.get("/sources", headers=copied).status_code == 303


def test_who_has_logged_in_needs_no_form(guarded):
    log_in(guarded)
    answer = guarded.get("/login", params={"next": "/sources"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sources")


def test_many_wrong_tokens_at_once_hold_few_connections(guarded, monkeypatch):
    class Full:
        def acquire_nowait(self) -> None:
            raise anyio.WouldBlock

    monkeypatch.setattr(pages, "_WRONG_TOKEN_DELAY_S", 600.0)
    monkeypatch.setattr(pages, "_delayed", Full())
    assert log_in(guarded, "wrong").status_code == 401
