"""A `docindex serve` of a project, and browser tabs that view it."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, ViewportSize, expect, sync_playwright

from tests.ui.conftest import _free_port

WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 360, "height": 740}
PATIENCE_MS = 20_000
_GRAVE = {"serious", "critical"}
_NONE: Mapping[str, str] = {}


@dataclass
class Served:
    """The server, plus all browser requests and errors."""

    url: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        def noted(request: Request) -> None:
            self.requests.append(request.url)

        page.on("request", noted)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda line: self.errors.append(line.text) if "Security Policy" in line.text else None)
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))


@contextmanager
def serving(root: Path, *options: str, environment: Mapping[str, str] = _NONE) -> Iterator[Served]:
    """Serve an indexed project, with extra environment variables, until the block ends."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "DOCINDEX_"))}
    port = _free_port()
    access = () if "DOCINDEX_SERVE__TOKEN" in environment else ("--no-token",)
    command = [str(Path(sys.executable).with_name("docindex")), "serve", "--port", str(port), *access, *options]
    log = root.with_name(f"serve-{port}.log")
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=root,
            env={**kept, "DOCINDEX_TRUST": "1", **environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_it_answers(f"{url}/api/v1/health", server, log)
        yield Served(url)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=20)
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser without a tab."""
    expect.set_options(timeout=PATIENCE_MS)
    chromium = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    assert chromium, "there is no Chromium: apt-get install chromium, or set CHROMIUM to the path of one"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium)
        yield started
        started.close()


@contextmanager
def tab_of(served: Served, browser: Browser) -> Iterator[Page]:
    """A fresh tab; afterwards, assert that no request left the host and no attacker's script ran."""
    context = browser.new_context(base_url=served.url, viewport=WIDE, reduced_motion="reduce", color_scheme="light")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    served.watch(page)
    yield page
    owned = page.evaluate("document.documentElement.dataset.owned ?? ''")
    context.close()
    assert owned == ""
    assert served.errors == []
    assert [url for url in served.requests if not url.startswith((f"{served.url}/", "data:"))] == []


def expect_no_grave_barrier(tab: Page) -> None:
    """Assert that axe-core finds no serious or critical violation in either color scheme."""
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        found = Axe().run(tab).response["violations"]
        grave = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found if one["impact"] in _GRAVE]
        assert grave == [], scheme


def _wait_until_it_answers(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    raise AssertionError(f"docindex serve did not start:\n{log.read_text()}")
