"""Tests of the generated server token, and of the link that logs in with it."""

import os
import pty
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.serving.http.sessions import Sessions, stored_token
from tests.serving.http.server import LONGEST_S, free_port, running
from tests.serving.http.test_process import TOKEN, VARIABLE

SERVE = (sys.executable, "-m", "docindex_dagster.cli", "serve")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "serve.token"


def stored(file: Path) -> str:
    return stored_token(file, file.parent / "locks" / "serve.lock")


def test_a_server_asks_for_the_token_that_its_user_alone_can_read(root):
    file = root / ".docindex" / "serve.token"
    with running(root, stores_token=True) as server:
        token = file.read_text().strip()
        folder = root.parent / "home of somebody"
        folder.mkdir()
        answers = [
            httpx.request(method, f"{server.url}/api/v1/{path}", json=body).status_code
            for method, path, body in (
                ("GET", "search?query=pump", None),
                ("POST", "sources", {"kind": "library", "path": str(folder)}),
                ("POST", "sources/library/manual/index", None),
            )
        ]
        assert answers == [401, 401, 401]
        assert httpx.get(f"{server.url}/api/v1/health").status_code == 200
        sent = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{server.url}/api/v1/search?query=pump", headers=sent).status_code == 200
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        printed = server.output.read_text()
        assert str(file) in printed
        assert not re.search(f"{token}|code=", printed)  # others may be able to read the log file
    with running(root, stores_token=True) as server:
        assert httpx.get(f"{server.url}/api/v1/search?query=pump", headers=sent).status_code == 200


@contextmanager
def in_a_terminal(root: Path, port: int) -> Iterator[int]:
    """Run a server that writes to a terminal, and yield the terminal's file descriptor."""
    terminal, output = pty.openpty()
    with subprocess.Popen((*SERVE, "--port", str(port), "--no-jobs"), cwd=root, stdout=output, stderr=output) as server:
        os.close(output)
        try:
            yield terminal
        finally:
            server.send_signal(signal.SIGINT)
            os.close(terminal)


def test_a_terminal_shows_a_link_that_logs_in_once(root):
    port, shown = free_port(), b""
    with in_a_terminal(root, port) as terminal:
        while not (link := re.search(rb"http://\S+code=[\w-]+(?=\s)", shown)):
            shown += os.read(terminal, 1 << 16)
        with httpx.Client(transport=httpx.HTTPTransport(retries=10), base_url=f"http://127.0.0.1:{port}") as browser:
            entered = browser.get(link[0].decode(), timeout=LONGEST_S)
            assert (entered.status_code, entered.headers["Location"]) == (303, "/")
            assert browser.get("/", headers={"Accept": "text/html"}).status_code == 200
        again = httpx.get(link[0].decode())
        assert (again.status_code, "Set-Cookie" in again.headers) == (200, False)


def test_it_is_made_once(file):
    token = stored(file)
    assert stored(file) == token
    assert len(token) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_one_that_others_could_read_or_write_is_replaced(file, mode):
    token = stored(file)
    file.chmod(mode)
    assert stored(file) != token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_empty_one_is_replaced(file):
    file.touch(0o600)
    assert stored(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_one_of_another_user_is_not_taken(file):
    file.write_text("a-token-that-another-user-knows")
    file.chmod(0o600)
    os.chown(file, 12345, 12345)
    assert stored(file) != "a-token-that-another-user-knows"


def test_where_none_can_be_stored_the_error_says_what_to_do(file):
    file.symlink_to(file.parent / "elsewhere")
    with pytest.raises(SettingsError, match=VARIABLE):
        stored(file)
    assert not (file.parent / "elsewhere").exists()


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        (["--no-token"], {VARIABLE: TOKEN}, "omit --no-token"),
        (["--no-token", "--host", "0.0.0.0"], {}, VARIABLE),
    ],
)
def test_without_a_token_it_serves_loopback_alone(root, options, variables, words):
    environment = {**os.environ, **variables}
    ended = subprocess.run([*SERVE, *options], cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert words in ended.stderr


# Sessions


def test_a_session_ends_alone():
    sessions = Sessions(TOKEN)
    one, other = sessions.begin(), sessions.begin()
    sessions.end(one)
    assert not sessions.is_valid(one)
    assert sessions.is_valid(other)


def test_what_has_ended_stays_so_for_other_servers_and_later_ones(tmp_path):
    running_too = Sessions(TOKEN, tmp_path / "ended")
    sessions = Sessions(TOKEN, tmp_path / "ended")
    one, other = sessions.begin(), sessions.begin()
    assert running_too.is_valid(one)
    sessions.end(one)
    for later in (running_too, Sessions(TOKEN, tmp_path / "ended")):
        assert not later.is_valid(one)
        assert later.is_valid(other)
    assert stat.S_IMODE((tmp_path / "ended").stat().st_mode) == 0o600


@pytest.mark.parametrize("cookie", ["", ".", "..", "x.y.z", "9999999999.a.b", "9999999999.a.é"])
def test_what_is_no_cookie_of_ours_opens_and_ends_nothing(cookie, tmp_path):
    sessions = Sessions(TOKEN, tmp_path / "ended")
    assert not sessions.is_valid(cookie)
    sessions.end(cookie)
    assert not (tmp_path / "ended").exists()
    assert not sessions.redeem(cookie)
