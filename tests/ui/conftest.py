"""A new user's project, its `docindex ui`, and a browser to view it.

`make test-ui` installs Playwright; a plain `make test` lacks it and does not collect these tests.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.nights import distant_night

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 30_000
# Screenshots show the entire project; the tests themselves need only a part, which is indexed in seconds.
SCREENSHOTS = os.environ.get("DOCINDEX_SCREENSHOTS")
WORDS_SHOWN = 6_000  # characters of page text and of server log in a failure report

collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]


@dataclass(frozen=True)
class Project:
    """A folder with an empty `docindex.toml`, content to index next to it, and the UI that serves it."""

    folder: Path
    environment: dict[str, str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder.with_name("ui.log")

    @property
    def notes(self) -> Path:
        """Documentation: a few Markdown files."""
        return self.folder.with_name("docindex-docs")

    @property
    def code(self) -> Path:
        """A git repository with Python files and two commits."""
        return self.folder.with_name("docindex")

    def docindex(self, *arguments: str) -> str:
        command = [str(Path(sys.executable).with_name("docindex")), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The project while its UI runs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "DOCINDEX_"))}
    environment = {
        **kept,
        "DOCINDEX_TRUST": "1",
        **distant_night(),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    made = Project(tmp_path_factory.mktemp("ui") / "project", environment, _free_port())
    made.folder.mkdir()
    (made.folder / "docindex.toml").touch()
    made.notes.mkdir()
    for file in (ROOT / "docs" / ("" if SCREENSHOTS else "tutorials")).rglob("*.md"):
        shutil.copy(file, made.notes)
    _make_repository(made)
    command = [str(Path(sys.executable).with_name("docindex")), "ui", "--port", str(made.port)]
    with made.log.open("wb") as log:
        server = subprocess.Popen(
            command, cwd=made.folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until_it_answers(server, made)
        yield made
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=30)
        with suppress(ProcessLookupError):  # includes orphaned processes
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture(scope="module")
def page(project: Project) -> Iterator["Page"]:
    """A browser tab, wide enough for Dagster to show full details in each lineage node."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    chromium = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    assert chromium, "there is no Chromium: apt-get install chromium, or set CHROMIUM to the path of one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        tab = browser.new_page(base_url=project.url, viewport={"width": 3200, "height": 1200}, reduced_motion="reduce")
        tab.set_default_timeout(PATIENCE_MS)
        yield tab
        browser.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function, call: pytest.CallInfo[None]) -> Any:
    """Add the page and server output to a failure report, since nobody can see the screen where it happens."""
    report = yield
    if report.failed and "page" in item.funcargs:
        tab: Any = item.funcargs["page"]
        served: Any = item.funcargs["project"]
        with suppress(Exception):  # the browser itself may have failed
            report.sections.append(("the page", f"{tab.url}\n{tab.inner_text('body')[:WORDS_SHOWN]}"))
        report.sections.append(("the end of the server's log", served.log.read_text()[-WORDS_SHOWN:]))
    return report


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _make_repository(project: Project) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(
            ["git", *identity, *arguments], cwd=project.code, env=project.environment, check=True, capture_output=True
        )

    package = ROOT / "docindex_dagster"
    for folder in (package,) if SCREENSHOTS else (package / "core", package / "documents"):
        target = project.code / folder.relative_to(package)
        shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    git("init")
    git("add", ".")
    git("commit", "-m", "One index of code and documentation")
    shutil.copy(ROOT / "README.md", project.code)
    git("add", "README.md")
    git("commit", "-m", "Say how to try it")


def _wait_until_it_answers(server: "subprocess.Popen[bytes]", project: Project) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(f"{project.url}/server_info", timeout=5).close()
            return
        time.sleep(0.2)
    raise AssertionError(f"docindex ui did not start:\n{project.log.read_text()}")
