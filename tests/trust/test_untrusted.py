"""Untrusted checkouts are indexed and searched, but cannot run, send, read or delete anything."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from docindex_dagster.cli.dagster_runs import RecordedRuns
from docindex_dagster.core.privileges import environment_privileges
from docindex_dagster.core.settings import load_settings
from docindex_dagster.core.trust import Privilege
from docindex_dagster.search.live_index import Live
from tests.serving.http.server import free_port, running
from tests.trust.conftest import LONGEST_S, PRIVATE, instance_of, settings_of


def test_it_is_indexed_by_the_local_model_from_its_own_folder_into_the_cache(hostile):
    done = hostile.run("index")

    assert done.returncode == 0, done.stderr
    assert "library/own: 3 files" in done.stdout
    assert done.stderr.count(f"{hostile.root} is not trusted") == 1
    for name in ("embedding.base_url", "llm.provider", "rerank.url", "discovery.secrets", "memory", "serve.hosts"):
        assert name in done.stderr
    assert f"source {hostile.private.parent}" in done.stderr
    assert f"docindex trust {hostile.root}" in done.stderr
    assert not (hostile.root / ".docindex").exists()
    assert (hostile.user / "cache/docindex/untrusted").is_dir()
    hostile.check()


def test_it_is_searched_asked_and_looked_at(hostile):
    hostile.run("index")

    assert "guide.md" in hostile.run("search", "prime a pump").stdout
    assert "guide.md" in hostile.run("ask", "how is a pump primed?").stdout
    assert "basalt" not in hostile.run("search", "combination of the safe").stdout
    assert "library/own" in hostile.run("status").stdout
    assert hostile.run("doctor").returncode == 0
    hostile.check()


def test_harmless_settings_hold(hostile):
    hostile.run("index")
    for number in range(5):
        (hostile.root / f"pump-{number}.md").write_text(f"# Pump {number}\n\nHow pump {number} is primed.\n")
    (hostile.root / "large.md").write_text("A pump.\n" * 20_000)
    hostile.run("index")

    hits = json.loads(hostile.run("search", "how is a pump primed", "--json").stdout)
    assert len(hits) == 3
    assert "over-size" in hostile.run("why", "large.md").stdout.replace("too-large", "over-size")


def test_watching_and_agents_do_no_more(hostile):
    watch = subprocess.Popen(
        [sys.executable, "-P", "-m", "docindex_dagster.cli", "watch"],
        cwd=hostile.root,
        env=hostile.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = iter(watch.stdout.readline, "")
    assert any("library/own" in line and "files" in line for line in lines)
    watch.send_signal(signal.SIGINT)
    watch.communicate(timeout=LONGEST_S)
    hostile.check()

    async def session() -> None:
        shell = f"exec '{sys.executable}' -P -m docindex_dagster.cli mcp --watch 2>'{hostile.user}/errors'"
        server = StdioServerParameters(command="/bin/sh", args=["-c", shell], cwd=hostile.root, env=hostile.environment)
        async with Client(stdio_client(server)) as client:
            found = await client.call_tool("search", {"query": "prime a pump"})
            assert "guide.md" in found.content[0].text
            status = await client.call_tool("status", {})
            assert "is not trusted" in status.content[0].text

    anyio.run(session)
    assert "is not trusted" in (hostile.user / "errors").read_text()
    hostile.check()


def test_the_python_api_warns_and_does_no_more(hostile):
    hostile.run("index")
    program = f"from docindex_dagster import open_index\nprint(open_index({str(hostile.root)!r}).search('combination'))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=hostile.environment, capture_output=True, text=True, check=True
    )

    assert "DocindexWarning" in done.stderr
    assert "is not trusted" in done.stderr
    assert "basalt" not in done.stdout
    hostile.check()


def test_runs_in_dagster_do_no_more(hostile):
    program = """
import os
import dagster as dg
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.defs.resources import Project
root = os.getcwd()
with dg.DagsterInstance.ephemeral() as instance:
    definitions = build_definitions()
    repository = definitions.get_repository_def()
    for name in ("sources_changed", "library_files_changed"):
        resources = {"project": Project(root=root)}
        with dg.build_sensor_context(instance=instance, repository_def=repository, resources=resources) as context:
            repository.get_sensor_def(name)(context)
    instance.add_dynamic_partitions(SOURCES_NAME, ["library/own", "library/private"])
    job = definitions.resolve_job_def("index_source")
    for key in ("library/own", "library/private"):
        print(job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False).success)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=hostile.root,
        env=hostile.environment,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=True,
    )

    assert done.stdout.split() == ["True", "False"]
    assert "is not trusted" in done.stderr
    hostile.check()


def test_an_index_that_came_with_it_is_not_opened(hostile):
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\n')
    (hostile.root / "dagster.yaml").unlink()
    hostile.run("index", XDG_CONFIG_HOME=str(hostile.user / "author"))
    theirs = hostile.root / ".docindex"
    before = {file: file.read_bytes() for file in theirs.rglob("*") if file.is_file()}
    assert before

    searched = hostile.run("search", "pump")
    assert searched.returncode == 1
    assert "nothing is indexed" in searched.stderr
    assert hostile.run("index").returncode == 0
    assert "guide.md" in hostile.run("search", "pump").stdout
    assert {file: file.read_bytes() for file in before} == before


def test_a_place_in_the_project_that_leads_out_is_declared_but_not_trusted(hostile):
    (hostile.root / "docs").symlink_to(hostile.private.parent)
    (hostile.root / "docindex.toml").write_text("")
    (hostile.root / "dagster.yaml").unlink()

    done = hostile.run("index", "docs")

    assert done.returncode == 1
    assert f"docs (reads {hostile.private.parent})" in done.stderr
    hostile.check()


def test_a_submodule_that_a_pull_left_in_the_index_is_refused(hostile):
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\n')
    (hostile.root / "dagster.yaml").unlink()
    hostile.run("index")
    left = hostile.home / "dagster" / "empty"
    left.mkdir(parents=True)
    (left / ".git").write_text("gitdir: ../../../.git/modules/evil\n")

    refused = hostile.start("search", "pump")

    assert refused.returncode == 1
    assert "is part of another repository" in refused.stderr


def test_a_folder_whose_name_leads_databases_elsewhere_is_refused(hostile):
    folder = hostile.root / "x%2F..%2F..%2Fother"
    folder.mkdir()
    (folder / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\n')
    before = sorted(hostile.root.parent.rglob("*.db"))

    done = hostile.run("index", "--run", cwd=folder)

    assert done.returncode == 1
    assert "set DOCINDEX_HOME to a path without" in done.stderr
    assert sorted(hostile.root.parent.rglob("*.db")) == before


def test_what_is_approved_is_shown_whole(hostile):
    (hostile.root / "docs").symlink_to(hostile.private.parent)
    (hostile.root / "docindex.toml").write_text(
        f"""
embedding = {{ provider = "openai", base_url = "{hostile.url}/x@api.openai.com/v1" }}
[[source]]
kind = "library"
path = "docs"
[[source]]
kind = "git"
path = ".\\nembedding.base_url"
branch = "evil"
"""
    )

    shown = hostile.run("trust")

    assert f'"{hostile.url}/x@api.openai.com/v1"' in shown.stdout
    assert f"docs (reads {hostile.private.parent})" in shown.stdout
    assert "branch evil" in shown.stdout
    assert "command: touch" in shown.stderr
    assert not any(line.startswith("embedding.base_url (") for line in shown.stdout.splitlines())


def test_neither_modules_nor_variables_of_the_checkout_reach_the_processes_of_the_ui(hostile):
    for name in ("docindex_dagster", "sitecustomize", "dagster"):
        (hostile.root / f"{name}.py").write_text(f"open({str(hostile.pwned)!r}, 'w').close()\n")
    (hostile.root / ".env").write_text(f"DOCINDEX_EMBEDDING__BASE_URL={hostile.url}\nEVIL=1\n")
    printed = hostile.user / "printed"
    with printed.open("w") as output:
        ui = subprocess.Popen(
            [sys.executable, "-P", "-m", "docindex_dagster.cli", "ui", "--port", str(free_port())],
            cwd=hostile.root,
            env=hostile.environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until and not _code_servers(ui.pid):
            time.sleep(0.2)
        time.sleep(5)
        servers = _code_servers(ui.pid)
        assert servers
        for process in servers:
            assert b"EVIL=1" not in (process / "environ").read_bytes()
            assert f"DAGSTER_HOME=/proc/{ui.pid}/fd/".encode() in (process / "environ").read_bytes()
            assert not (process / "cwd").readlink().is_relative_to(hostile.root)
    finally:
        os.killpg(ui.pid, signal.SIGKILL)
        ui.wait()
    assert "ignoring .env" in printed.read_text()
    hostile.check()


def _code_servers(session: int) -> list[Path]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == session and b"code-server" in (process / "cmdline").read_bytes():
                found.append(process)
        except OSError:
            continue
    return found


def test_what_its_user_declares_is_trusted_and_nothing_else(hostile):
    (wanted := hostile.user / "wanted").mkdir()
    (wanted / "valve.md").write_text("# Valves\n\nHow a valve is opened.\n")

    done = hostile.run("index", str(wanted))

    assert done.returncode == 0, done.stderr
    assert "valve.md" in hostile.run("search", "open a valve").stdout
    again = hostile.run("index", str(hostile.private.parent))
    assert again.returncode == 1
    assert "is already declared, but" in again.stderr
    hostile.check()


def test_branches_of_the_project_itself_are_declared_without_a_question(hostile, git):
    for file in ("docindex.toml", "dagster.yaml"):
        (hostile.root / file).unlink()
    git(hostile.root, "init", "-q", "-b", "main")
    git(hostile.root, "add", ".")
    git(hostile.root, "commit", "-qm", "Start")

    assert hostile.run("source", "add", ".", "--branch", "main").returncode == 0
    assert (done := hostile.run("index")).returncode == 0, done.stderr
    assert "docindex trust" not in done.stderr
    assert "guide.md" in hostile.run("search", "how is a pump primed").stdout


@pytest.mark.parametrize("how", ["docindex trust", "--trust", "DOCINDEX_TRUST", "DOCINDEX_TRUST of a folder"])
def test_with_trust_everything_holds(hostile, how):
    settings = hostile.root / "docindex.toml"
    settings.write_text("\n".join(line for line in settings.read_text().splitlines() if hostile.url not in line))
    settings.write_text(settings.read_text().replace("enabled = true", "enabled = false"))
    (hostile.root / "dagster.yaml").unlink()
    variables = {}
    if how == "docindex trust":
        assert hostile.run("trust", "--yes").returncode == 0
    elif how.startswith("DOCINDEX_TRUST"):
        variables = {"DOCINDEX_TRUST": str(hostile.root.parent) if "folder" in how else "1"}
    more = ["--trust"] if how == "--trust" else []

    done = hostile.run(*more, "index", **variables)

    assert done.returncode == 0, done.stderr
    assert "not trusted" not in done.stderr
    assert "library/private" in done.stdout
    assert ((hostile.home if how == "docindex trust" else hostile.root / ".docindex") / "stores/CURRENT").exists()
    assert "private.md" in hostile.run(*more, "search", "combination of the safe", "--mode", "bm25", **variables).stdout


def test_what_changes_is_asked_for_again(hostile):
    (hostile.root / "dagster.yaml").unlink()
    hostile.run("trust", "--yes")
    settings = hostile.root / "docindex.toml"
    assert "not trusted" not in hostile.run("source", "list").stderr

    settings.write_text(settings.read_text() + "\n[history]\ncommits = 3\n")
    assert "not trusted" not in hostile.run("source", "list").stderr
    settings.write_text(settings.read_text().replace(hostile.url, "http://127.0.0.1:9/v1"))
    changed = hostile.run("source", "list")
    assert "embedding.base_url" in changed.stderr
    assert "library/private" in changed.stdout
    assert hostile.run("trust", "--revoke").returncode == 0
    assert "library/private" not in hostile.run("source", "list").stdout


@pytest.mark.parametrize("more", ['include = ["**"]', "recursive = true", 'kind = "git"'])
def test_a_source_of_which_more_is_read_is_asked_for_again(hostile, more):
    settings = hostile.root / "docindex.toml"
    settings.write_text(f'[[source]]\npath = "{hostile.private.parent}"\nkind = "library"\nname = "private"\n')
    hostile.run("trust", "--yes")
    assert "library/private" in hostile.run("source", "list").stdout

    declared = settings.read_text()
    settings.write_text(declared.replace('kind = "library"', more) if "kind" in more else f"{declared}{more}\n")

    assert "/private" not in hostile.run("source", "list").stdout


def test_trust_shows_what_is_asked_for_and_needs_an_answer(hostile):
    shown = hostile.run("trust")

    assert shown.returncode == 1
    assert str(hostile.private.parent) in shown.stdout
    assert hostile.url in shown.stdout
    assert "dagster.yaml" in shown.stdout
    assert "pass --yes" in shown.stderr
    assert "not trusted" in hostile.run("source", "list").stderr


def test_nothing_is_trusted_that_a_pull_changes_before_it_is_shown(hostile, monkeypatch):
    def pulled(root: Path) -> list[Privilege]:
        (root / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        return environment_privileges(root)

    monkeypatch.setattr("docindex_dagster.core.settings.environment_privileges", pulled)

    done = hostile.run("trust", "--yes")

    assert done.returncode == 1
    assert "changed in the meantime" in done.stderr
    assert "not trusted" in hostile.run("source", "list").stderr


def test_trust_deletes_no_memory(hostile):
    """A pull that asks for anything moves the home to the cache, where agents keep adding memories."""
    (hostile.root / "docindex.toml").write_text('serve = { hosts = ["docs.example"] }\n')
    (hostile.root / "dagster.yaml").unlink()
    assert hostile.run("memory", "ingest", "-s", "1", "The valve is blue.").returncode == 0
    [home] = (hostile.user / "cache/docindex/untrusted").iterdir()

    trusted = hostile.run("trust", "--yes")

    assert f"kept {home}" in " ".join(trusted.stderr.split())
    assert "valve is blue" in hostile.run("memory", "recall", "valve", DOCINDEX_HOME=str(home)).stdout


def test_a_source_of_a_link_that_leads_out_is_left_out(hostile):
    (hostile.root / "docs").symlink_to(hostile.private.parent)
    (hostile.root / "libraries").mkdir()
    (hostile.root / "libraries" / "evil").symlink_to(hostile.private.parent)
    (hostile.root / "docindex.toml").write_text(
        '[[source]]\nkind = "library"\npath = "docs"\n[[source]]\nkind = "library"\npath = "libraries/{library}"\n'
        '[[source]]\nkind = "library"\npath = "."\n'
    )

    hostile.run("index")

    hostile.check()
    assert PRIVATE not in hostile.run("search", "combination of the safe").stdout


def test_a_source_that_a_pull_leads_out_is_left_out_by_a_process_that_runs(hostile, monkeypatch):
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
    (hostile.root / "dagster.yaml").unlink()
    (docs := hostile.root / "docs").mkdir()
    monkeypatch.delenv("DOCINDEX_TRUST")
    monkeypatch.setenv("XDG_CONFIG_HOME", hostile.environment["XDG_CONFIG_HOME"])
    live = Live(load_settings(hostile.root))
    assert len(live.settings.source) == 1

    docs.rmdir()
    docs.symlink_to(hostile.private.parent)
    monkeypatch.setattr("docindex_dagster.search.live_index._MAX_AGE_S", 0)

    assert not live.settings.source


@pytest.mark.slow
def test_a_job_of_the_server_does_no_more(hostile):
    environment = hostile.environment | {"DOCINDEX_TRUST": "0"}
    with running(hostile.root, environment=environment) as server:
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=LONGEST_S) as client:
            assert client.post("/sources/library/private/index").status_code == 404
            job = client.post("/sources/library/own/index").json()["id"]
            until = time.monotonic() + LONGEST_S
            while (state := client.get(f"/jobs/{job}").json()["state"]) in {"queued", "running"}:
                assert time.monotonic() < until
                time.sleep(0.2)
            assert state == "succeeded"
        assert "is not trusted" in server.output.read_text()
    hostile.check()


def test_a_file_that_a_pull_brings_is_not_trusted_by_a_process_that_runs(hostile, monkeypatch):
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\n')
    (hostile.root / "dagster.yaml").unlink()
    assert hostile.run("index", "--run").returncode == 0
    monkeypatch.delenv("DOCINDEX_TRUST")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, hostile.environment[name])
    runs = RecordedRuns(load_settings(hostile.root))

    (hostile.root / "dagster.yaml").write_text(
        "run_storage:\n  module: dagster._core.storage.runs\n  class: SqliteRunStorage\n"
        f"  config: {{base_dir: {hostile.pwned}}}\n"
    )

    assert len(runs.newest(5)) == 1
    hostile.check()


@pytest.mark.parametrize("borrows", ["links", "alternates"])
def test_a_repository_outside_of_the_source_does_not_borrow_from_others(hostile, git, borrows):
    git(hostile.user, "init", "-q", "-b", "main", "secret")
    (hostile.user / "secret" / "a.md").write_text("a")
    git(hostile.user / "secret", "add", ".")
    git(hostile.user / "secret", "commit", "-qm", PRIVATE)
    secret, prepared = hostile.user / "secret" / ".git", hostile.root / "prepared"
    (hostile.root / "sub").mkdir()
    (hostile.root / "sub" / "a.md").write_text("# Pumps\n")
    (hostile.root / "sub" / ".git").write_text("gitdir: ../prepared\n")
    prepared.mkdir()
    (prepared / "HEAD").write_text("ref: refs/heads/main\n")
    (prepared / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tworktree = ../sub\n")
    if borrows == "links":
        (prepared / "refs").symlink_to(secret / "refs")
        (prepared / "objects").symlink_to(secret / "objects")
    else:
        shutil.copytree(secret / "refs", prepared / "refs")
        (prepared / "objects" / "info").mkdir(parents=True)
        (prepared / "objects" / "info" / "alternates").write_text(f"{secret / 'objects'}\n")
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "sub"\n')
    (hostile.root / "dagster.yaml").unlink()

    assert "not trusted" in hostile.run("index").stderr
    assert PRIVATE not in hostile.run("log").stdout


def test_a_folder_that_its_user_names_is_refused_if_its_repository_borrows_from_others(hostile, git):
    git(hostile.user, "init", "-q", "-b", "main", "secret")
    (hostile.user / "secret" / "a.md").write_text("a")
    git(hostile.user / "secret", "add", ".")
    git(hostile.user / "secret", "commit", "-qm", PRIVATE)
    git(hostile.root, "init", "-q", "-b", "main")
    for name in ("refs", "objects"):
        shutil.rmtree(hostile.root / ".git" / name)
        (hostile.root / ".git" / name).symlink_to(hostile.user / "secret" / ".git" / name)
    (own := hostile.user / "own").mkdir()
    (own / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\nname = "own"\n')

    done = hostile.run("index", str(hostile.root), cwd=own)

    assert done.returncode == 1
    assert str(hostile.user / "secret" / ".git" / "objects") in done.stderr
    assert PRIVATE not in hostile.run("log", cwd=own).stdout


def test_what_a_later_pull_brings_is_not_trusted(hostile, git):
    """The author waits until the checkout is indexed, then adds an index and settings."""
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\nname = "own"\n')
    (hostile.root / "dagster.yaml").unlink()
    git(hostile.root, "init")
    hostile.run("index")
    planted = hostile.root / ".docindex/stores/CURRENT"
    (hostile.root / "docindex.toml").write_text(settings_of(hostile))
    (hostile.root / "dagster.yaml").write_text(instance_of(hostile))
    planted.parent.mkdir()
    planted.write_text("{}")
    git(hostile.root, "add", "--force", ".docindex/stores/CURRENT", "docindex.toml", "dagster.yaml")

    pulled = hostile.run("index")

    assert pulled.returncode == 0, pulled.stderr
    assert planted.read_text() == "{}"
    hostile.check()


def test_settings_that_are_a_fifo_keep_no_command_waiting(hostile):
    (hostile.root / "dagster.yaml").unlink()
    (hostile.root / "docindex.toml").unlink()
    os.mkfifo(hostile.root / "docindex.toml")

    done = hostile.start("source", "add", ".")

    assert done.returncode == 0, done.stderr
    assert "path = " in (hostile.root / "docindex.toml").read_text()
