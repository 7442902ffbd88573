"""Posting to a webhook: retries, permanent failures, and keeping its URL secret."""

import logging
import socket
import traceback

import pytest
import requests
from pydantic import SecretStr

from docindex_dagster.core.errors import AlertError
from docindex_dagster.defs import alerts
from docindex_dagster.defs.alerts import as_text, post
from tests.webhooks import SECRET, listening

PAYLOAD = {"text": "library/notes failed", "source": "library/notes"}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def nowhere() -> SecretStr:
    """Return the URL of a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return SecretStr(f"http://127.0.0.1:{free.getsockname()[1]}/services/{SECRET}")


def test_a_message_is_posted_once_as_json():
    with listening() as hook:
        assert post(hook.url, PAYLOAD)

        assert hook.posted == [PAYLOAD]
        assert hook.types == ["application/json"]


def test_a_server_that_has_the_message_and_does_not_answer_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(alerts, "_TIMEOUT_S", (3, 0.1))
    with listening() as hook:
        hook.is_silent = True

        assert not post(hook.url, PAYLOAD, sleep=lambda _: None)

    assert hook.posted == [PAYLOAD]


def assert_doubled(waits: list[float]) -> None:
    """Assert waits of one and two seconds, each randomly shortened by up to half."""
    assert len(waits) == 2
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, (1, 2), strict=True))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_cannot_answer_now_is_asked_again_after_a_wait(status):
    waits: list[float] = []
    with listening([status, status]) as hook:
        post(hook.url, PAYLOAD, sleep=waits.append)

        assert hook.posted == [PAYLOAD] * 3
    assert_doubled(waits)


def test_a_server_that_stays_unable_is_given_up_after_three_tries():
    with listening([500] * 9) as hook:
        with pytest.raises(AlertError, match="answered with status 500"):
            post(hook.url, PAYLOAD, sleep=lambda _: None)

        assert len(hook.posted) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_a_refusal_is_final(status):
    with listening([status]) as hook:
        with pytest.raises(AlertError, match=f"answered with status {status}"):
            post(hook.url, PAYLOAD, sleep=lambda _: None)

        assert len(hook.posted) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_it_is_not_left_for_another_place(status):
    with listening([status]) as hook:
        with pytest.raises(AlertError, match=f"answered with status {status}"):
            post(hook.url, PAYLOAD, sleep=lambda _: None)

        assert hook.followed == []
        assert len(hook.posted) == 1


def test_a_place_that_cannot_be_reached_is_tried_three_times():
    waits: list[float] = []

    with pytest.raises(AlertError, match="cannot be reached"):
        post(nowhere(), PAYLOAD, sleep=waits.append)

    assert_doubled(waits)


def test_a_connection_that_takes_too_long_is_tried_three_times(monkeypatch):
    waits: list[float] = []

    def connect(*_, **__):
        raise requests.ConnectTimeout

    monkeypatch.setattr(requests, "post", connect)

    with pytest.raises(AlertError, match=r"cannot be reached \(ConnectTimeout\)"):
        post(SecretStr("http://127.0.0.1"), PAYLOAD, sleep=waits.append)

    assert_doubled(waits)


def test_a_handshake_that_takes_too_long_is_tried_again_as_nothing_was_sent_yet(monkeypatch):
    monkeypatch.setattr(alerts, "_TIMEOUT_S", (0.1, 0.1))
    waits: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = SecretStr(f"https://127.0.0.1:{mute.getsockname()[1]}/services/{SECRET}")

        with pytest.raises(AlertError, match=r"cannot be reached \(ReadTimeout\)"):
            post(url, PAYLOAD, sleep=waits.append)

    assert_doubled(waits)


@pytest.mark.parametrize("case", ["taken", "silent", "refused", "unable", "unreachable", "no URL"])
def test_the_url_is_in_no_log_and_no_error(case, caplog, capfd, monkeypatch):
    monkeypatch.setattr(alerts, "_TIMEOUT_S", (3, 0.1 if case == "silent" else 7))
    caplog.set_level(logging.DEBUG)
    reported = ""
    statuses = {"refused": [404], "unable": [500] * 3}.get(case, [])
    with listening(statuses) as hook:
        hook.is_silent = case == "silent"
        url = {"unreachable": nowhere(), "no URL": SecretStr(f"http://[{SECRET}/")}.get(case, hook.url)
        try:
            post(url, PAYLOAD, sleep=lambda _: None)
        except AlertError as error:
            reported = "".join(traceback.format_exception(error)) + repr(error.__context__) + repr(error.__cause__)

    assert (reported == "") == (case in {"taken", "silent"})
    assert SECRET not in reported + caplog.text + "".join(capfd.readouterr())


def test_logs_of_others_are_heard_again_afterwards(caplog):
    with listening() as hook:
        post(hook.url, PAYLOAD)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("urllib3.connectionpool").debug("something else")

    assert "something else" in caplog.text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("two\nlines", "two lines"),
        ("<!channel> & <https://x|y>", "&lt;!channel&gt; &amp; &lt;https://x|y&gt;"),
        ("@here @channel @all", "@\u200bhere @\u200bchannel @\u200ball"),
        ("git/tool@main by ada@example.com", "git/tool@main by ada@example.com"),
    ],
)
def test_a_text_calls_nobody_and_makes_no_link(given, shown):
    assert as_text(given) == shown
