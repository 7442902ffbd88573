"""Symlinks in a home that came with a checkout: their targets are never deleted, written, read or shown."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from docindex_dagster import open_index
from docindex_dagster.core.errors import LinkError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import Run
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from tests.defs.conftest import Project
from tests.defs.daemon import Daemon

KEY, REPOSITORY, DOMAIN = "library/manual", "git/tool", "memory/main"
CANARY = "zanzibar"  # no command may print it
LAYOUT = Layout(Path("/nowhere/.docindex"))
REFUSED = "is a symbolic link, and docindex follows none inside its home"

COMMANDS = {
    "index": ("index",),
    "index --full": ("index", "--full"),
    "prune": ("prune",),
    "prune --erase": ("prune", "--erase"),
    "search": ("search", "pump"),
    "search --good": ("search", "pump", "--good", "1"),
    "status": ("status",),
    "memory ingest": ("memory", "ingest", "--session", "s", "The pump is primed."),
    "memory recall": ("memory", "recall", "pump"),
    "memory forget": ("memory", "forget", "--session", "s", "--erase"),
    "source remove": ("source", "remove", "manual"),
}


def _places() -> list[str]:
    """Return every path in the layout, their parent folders, and some paths that only libraries name."""
    domain = LAYOUT.domain(DOMAIN)
    named = [getattr(LAYOUT, name) for name, value in vars(Layout).items() if isinstance(value, property)]
    paths = {path for path in named if isinstance(path, Path)} | {
        *(LAYOUT.table(asset, KEY) for asset in ("discovered_files", "chunks", "embeddings", "fresh_references")),
        *(LAYOUT.journal / name for name in ("0-run.jsonl", "0-run.log")),
        *(LAYOUT.cached_vectors(KEY, "model"), LAYOUT.spilled_vectors(KEY), LAYOUT.summaries(KEY)),
        *(LAYOUT.withdrawal(KEY), LAYOUT.previous("PREVIOUS-1"), LAYOUT.source_lock(KEY)),
        *(LAYOUT.repository(REPOSITORY), LAYOUT.checkout(REPOSITORY), LAYOUT.repository_lock(REPOSITORY)),
        *(domain.log, domain.receipts, domain.erasure, domain.messages, domain.log_lock),
        *(LAYOUT.home / name for name in (".gitignore", "dagster/dagster.yaml", "dagster/history/runs.db")),
        *(LAYOUT.tantivy / "00000001", LAYOUT.tantivy / "00000001/meta.json", LAYOUT.lance / "chunks.lance"),
    }
    folders = {folder for path in paths for folder in path.parents if folder.is_relative_to(LAYOUT.home)}
    return sorted(str(path.relative_to(LAYOUT.home)) for path in (paths | folders) - {LAYOUT.home})


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch) -> None:
    monkeypatch.setattr("docindex_dagster.core.confinement._checked", {})


@pytest.fixture
def outside(tmp_path_factory) -> Path:
    outside: Path = tmp_path_factory.mktemp("user") / "projects"
    (outside / "precious").mkdir(parents=True)
    for name in ("precious/notes.md", "precious.parquet", "precious.json", "precious.jsonl", "precious.arrow"):
        (outside / name).write_text(f"The pump of {CANARY}.\n")
    return outside


def plant(place: str, outside: Path) -> None:
    """Replace a path in the home with a symlink to its content, moved among the user's own files."""
    link = Path(".docindex", place)
    link.parent.mkdir(parents=True, exist_ok=True)
    is_file = link.is_file() or (not link.exists() and bool(link.suffix) and link.suffix != ".git")
    target = outside / "private" if is_file else outside
    if link.is_dir():
        shutil.copytree(link, outside, dirs_exist_ok=True)
        shutil.rmtree(link)
    elif link.is_file():
        link.rename(target)
    elif is_file:
        target.write_text(f"The pump of {CANARY}.\n")
    link.symlink_to(target)


def content(folder: Path) -> dict[str, bytes | None]:
    """Return everything in a folder, with the bytes of its files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("place", _places())
def test_commands_leave_alone_what_a_link_leads_to(run_indexed, outside, place):
    plant(place, outside)
    before = content(outside)

    wrong = []
    for name, arguments in COMMANDS.items():
        result = run_indexed(*arguments)
        if content(outside) != before:
            wrong.append(f"{name} changed what is outside")
            before = content(outside)
        if CANARY in result.out + result.err:
            wrong.append(f"{name} showed what is outside")
        if result.code != 1 or REFUSED not in " ".join(result.err.split()):
            wrong.append(f"{name} ended with {result.code}: {result.err[-300:]}")

    assert wrong == []


def test_work_trees_of_followed_repositories_keep_their_links(run_indexed, outside):
    plant("checkouts/git%2Ftool/docs", outside)
    before = content(outside)

    assert run_indexed("index").code == 0
    assert run_indexed("prune").code == 0  # it belongs to no source
    assert not Path(".docindex/checkouts/git%2Ftool").exists()
    assert content(outside) == before


def test_the_home_may_be_a_link(run_indexed, tmp_path_factory, monkeypatch):
    disk = tmp_path_factory.mktemp("disk") / "home"
    shutil.move(".docindex", disk)
    Path(".docindex").symlink_to(disk)
    Path("manual/new.md").write_text("# Windmill\n\nThe windmill lifts the water now.\n")

    assert run_indexed("index").code == 0
    assert "new.md" in run_indexed("search", "windmill").out
    assert run_indexed("prune").code == 0


class TestEveryWayIn:
    """A symlink `stores/tantivy -> ~/projects`, tried with everything that opens a home."""

    @pytest.fixture(autouse=True)
    def _planted(self, run_indexed, outside) -> Iterator[None]:
        plant("stores/tantivy", outside)
        before = content(outside)
        yield
        assert content(outside) == before

    @pytest.mark.parametrize(
        "arguments",
        [("watch",), ("mcp",), ("mcp", "--watch"), ("mcp", "--domain", DOMAIN), ("serve",), ("ui",), ("doctor",)],
        ids=" ".join,
    )
    def test_commands_that_stay(self, arguments):
        port = ("--port", str(_free_port())) if arguments[0] in {"serve", "ui"} else ()
        command = [sys.executable, "-P", "-m", "docindex_dagster.cli", *arguments, *port]

        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)

        assert ended.returncode == 1
        assert REFUSED in " ".join(ended.stderr.decode().split())
        assert "Traceback" not in ended.stderr.decode()

    def test_the_process_of_a_job(self, tmp_path):
        elsewhere = Layout(tmp_path / "home")
        elsewhere.prepare()
        journal.add_queued(elsewhere, Run("job", KEY, "serve", 0.0))
        (path,) = journal.files(elsewhere)
        with journal.starting(path) as (descriptor, _):
            command = [sys.executable, "-P", "-m", "docindex_dagster.cli.job", path.stem, str(descriptor)]
            ended = subprocess.run(command, capture_output=True, timeout=60, check=False, pass_fds=[descriptor])

        assert ended.returncode == 1
        assert REFUSED in ended.stderr.decode()

    def test_python_programs(self):
        with pytest.raises(LinkError, match=REFUSED):
            open_index(".")

    def test_runs_without_dagster(self):
        settings = load_settings(Path.cwd())
        (source,) = registry.sources(settings).values()

        with pytest.raises(LinkError, match=REFUSED):
            index(settings, source, StaticEmbedder())

    @pytest.mark.parametrize("name", ["sources_changed", "library_files_changed"])
    def test_sensors(self, name):
        root = Path.cwd()
        with dg.DagsterInstance.ephemeral() as instance:
            instance.add_dynamic_partitions(SOURCES_NAME, [KEY])
            daemon = Daemon(Project(root, instance), build_definitions(root))

            with pytest.raises(LinkError, match=REFUSED):
                daemon.tick(name)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
