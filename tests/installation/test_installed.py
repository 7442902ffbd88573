"""Installed from the wheel, docindex works in an empty folder without a clone, with each Python."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2 as httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.installation.conftest import TOOLS

pytestmark = pytest.mark.dist
_LOADED = """{ workspaceOrError { ... on Workspace { locationEntries { loadStatus locationOrLoadError {
  __typename ... on RepositoryLocation { repositories { assetNodes { assetKey { path } } } } } } } } }"""
# Features missing on macOS and in its Python; the folder /proc, also missing there, is hidden.
_NOT_ON_MACOS = """
import os
for name in (
    "sched_getaffinity", "sched_setaffinity", "posix_fadvise", "posix_fallocate", "fdatasync", "copy_file_range",
    "memfd_create", "eventfd", "pidfd_open", "splice", "getxattr", "setxattr", "listxattr", "removexattr", "getrandom",
    "O_TMPFILE", "O_PATH", "O_DIRECT", "O_NOATIME", "pipe2", "getresuid", "setresuid", "setns", "unshare",
):
    if hasattr(os, name):
        delattr(os, name)
if hasattr(os, "process_cpu_count"):
    os.process_cpu_count = os.cpu_count
"""


@pytest.fixture(scope="module")
def project(installed, repository, tmp_path_factory):
    """An empty folder in which the repository was indexed."""
    folder = tmp_path_factory.mktemp("empty") / "project"
    folder.mkdir()
    printed = installed.run(folder, "index", str(repository), "--yes")
    assert "git/shop: 5 files" in printed
    return folder


def test_it_is_not_the_clone_that_runs(installed, tmp_path):
    program = "import docindex_dagster; print(docindex_dagster.__file__)"
    command = [installed.python, "-c", program]
    printed = subprocess.run(command, cwd=tmp_path, env=installed.variables, check=True, capture_output=True, text=True)
    assert Path(printed.stdout.strip()).is_relative_to(installed.environment)
    assert json.loads(installed.run(tmp_path, "version", "--json"))["installed"] == "from a wheel with uv"


def test_a_work_tree_answers_after_three_commands(installed, repository, tmp_path):
    clone = shutil.copytree(repository, tmp_path / "shop")

    assert "docindex.toml" in installed.run(clone, "init", "--yes")
    installed.run(clone, "index")
    assert json.loads(installed.run(clone, "search", "sign the cookie", "--json"))[0]["path"] == "src/sessions.py"


def test_search_finds_code_pages_and_pdfs(installed, project):
    found = [hit["path"] for hit in json.loads(installed.run(project, "search", "sign the cookie", "--json"))]
    assert found[0] == "src/sessions.py"
    assert "manual.pdf" in installed.run(project, "search", "water from the well to the tank")


def test_it_tells_how_the_index_stands(installed, project):
    (status,) = json.loads(installed.run(project, "status", "--json"))
    assert (status["state"], status["last_run"], status["files"]) == ("ok", "succeeded", 5)
    assert "def sign_session" in installed.run(project, "show", "src/sessions.py")
    assert "will be indexed" in installed.run(project, "why", "src/sessions.py")
    assert "price calls src/sessions.py::sign_session" in installed.run(project, "graph", "callers", "sign_session")
    assert "Sign the cookies" in installed.run(project, "log", "sign cookies")
    assert "the index is consistent" in installed.run(project, "doctor")
    assert json.loads(installed.run(project, "support", "--json"))["doctor"]["findings"] == 0


def test_how_good_searches_are_is_measured(installed, project, tmp_path):
    questions = tmp_path / "questions.csv"
    with questions.open("w", newline="") as file:
        csv.writer(file).writerows([("question", "path"), ("how are cookies signed", "src/sessions.py")])
    assert "Hit@1" in installed.run(project, "evaluate", str(questions))


def test_what_was_said_is_remembered(installed, project):
    installed.run(project, "memory", "ingest", "--session", "one", "the shop closes at noon on Sundays")
    assert "closes at noon" in installed.run(project, "memory", "recall", "when does the shop close")


def test_pages_of_the_documentation_are_there(installed, project):
    assert installed.run(project, "help", "run-for-a-team").startswith("# Keep an index fresh")


def test_the_dagster_ui_starts_and_loads_the_code_location(installed, project):
    with installed.serving(project, "/server_info", "ui") as address:
        answer = httpx.post(f"{address}/graphql", json={"query": _LOADED}, timeout=120).json()
    (entry,) = answer["data"]["workspaceOrError"]["locationEntries"]
    assert (entry["loadStatus"], entry["locationOrLoadError"]["__typename"]) == ("LOADED", "RepositoryLocation")
    (repository,) = entry["locationOrLoadError"]["repositories"]
    assert ["chunks"] in [node["assetKey"]["path"] for node in repository["assetNodes"]]


def test_a_browser_shows_the_dagster_ui_and_the_search_page(installed, project):
    from playwright.sync_api import expect

    from tests.ui.served import browsing

    with browsing() as browser:
        tab = browser.new_page()
        with installed.serving(project, "/server_info", "ui") as address:
            tab.goto(f"{address}/assets")
            expect(tab.get_by_text("index_catalog", exact=True).first).to_be_visible()
        with installed.serving(project, "/", "serve", "--no-token") as address:
            tab.goto(f"{address}/?q=sign+the+cookie")
            expect(tab.get_by_text("sign_session").first).to_be_visible()


def test_the_page_is_served(installed, project):
    with installed.serving(project, "/", "serve", "--no-token") as address:
        page = httpx.get(address).text
        assert "<html" in page
        assert httpx.get(f"{address}/", params={"q": "sign the cookie"}).status_code == 200
        styles = [part.split('"')[0] for part in page.split('href="') if ".css" in part.split('"')[0]]
        assert styles
        assert all(httpx.get(f"{address}{style}").status_code == 200 for style in styles)


def test_an_agent_searches(installed, project):
    parameters = StdioServerParameters(
        command=str(installed.docindex), args=["mcp"], cwd=project, env=installed.variables
    )

    async def session() -> tuple[set[str], str]:
        async with Client(stdio_client(parameters)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, (await client.call_tool("search", {"query": "sign the cookie"})).content[0].text

    tools, text = anyio.run(session)
    assert {"search", "context", "show", "graph"} <= tools
    assert "sign_session" in text


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="to hide /proc takes root on Linux")
def test_it_works_with_what_macos_has(installed, repository, tmp_path):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/sitecustomize.py").write_text(_NOT_ON_MACOS)
    (tmp_path / "project").mkdir()
    hidden = f"mount -t tmpfs none /proc && PYTHONPATH='{tmp_path / 'python'}' exec \"$@\""
    before = ("unshare", "--mount", "sh", "-c", hidden, "sh")
    assert "5 files" in installed.run(tmp_path / "project", "index", str(repository), "--yes", before=before)
    found = installed.run(tmp_path / "project", "search", "water from the well", before=before)
    assert "manual.pdf" in found


def test_uvx_runs_it_without_installing_it_and_it_knows(built, tmp_path):
    command = [TOOLS / "uv", "tool", "run", "--from", built.wheel]
    printed = subprocess.run(
        [*command, "docindex", "version"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert printed.stdout.strip() == built.wheel.name.split("-")[1]
    assert way_of([*command, "python"], tmp_path) == "uvx"


def test_as_a_tool_of_uv_it_knows_what_it_is(built, tmp_path):
    variables = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    command = [TOOLS / "uv", "tool", "install", "--quiet", built.wheel]
    subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, **variables})
    assert way_of([tmp_path / "tools/docindex-dagster/bin/python"], tmp_path) == "uv tool"


def way_of(python: list[str | Path], folder: Path) -> str:
    program = "from docindex_dagster.core.installation import install_method; print(install_method())"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [*python, "-c", program]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=variables).stdout.strip()
