"""Watching: real edits of real files, detected through the file system and found by a search."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import State
from docindex_dagster.runner.run import index
from docindex_dagster.runner.watching import folders, loop
from docindex_dagster.runner.watching.loop import Watch
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.sources import registry, removed_sources
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.reader import open_reader

LIBRARY = '[[source]]\nkind = "library"\npath = "{}"\n'
GIT = '[[source]]\nkind = "git"\npath = "{}"\n'
PATIENCE_S = 20
QUIET_S = 1.2


@dataclass
class Project:
    """A folder with a `docindex.toml`, the runs while it is watched, and the reported messages."""

    root: Path
    runs: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    is_broken: bool = False

    def declare(self, *tables: str) -> None:
        (self.root / "docindex.toml").write_text("".join(tables))

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def finds(self, word: str) -> bool:
        try:
            reader = open_reader(Layout(load_settings(self.root).home))
        except StoreError:
            return False
        return any(word in hit.text for hit in search(reader, word, StaticEmbedder, mode=Mode.BM25))

    def index(self, settings: Settings, key: str) -> bool:
        self.runs.append(key)
        if not self.is_broken:
            index(settings, registry.find(settings, key), StaticEmbedder())
        return not self.is_broken

    @contextmanager
    def watched(self, *named: str, poll: bool = False) -> Iterator[Watch]:
        """Watch once everything is up to date. Clear the runs up to that point."""
        watch = Watch(load_settings(self.root), named, self.index, self.reported.append, poll=poll)
        try:
            while not watch.is_idle:
                watch.step()
            self.runs.clear()
            yield watch
        finally:
            watch.close()


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    made = Project(tmp_path)
    made.declare(LIBRARY.format("notes"))
    made.write("notes/guide.md", "# Guide\n\nThe pump moves water.\n")
    return made


@pytest.fixture
def repository(project: Project, git) -> Path:
    """Create a work tree `service` with one commit, the only source of the project."""
    project.declare(GIT.format("service"))
    project.write("service/pump.py", "def prime_pump():\n    pass\n")
    project.write("service/.gitignore", "ignored/\n*.tmp\n")
    folder = project.root / "service"
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Add the pump")
    return folder


def until(watch: Watch, condition: Callable[[], bool]) -> None:
    """Step the watch until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        watch.step()


def for_a_while(watch: Watch, seconds: float = QUIET_S) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        watch.step()


def _command(project: Project, *arguments: str, **files: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "docindex_dagster.cli", "watch", *arguments]
    return subprocess.Popen(command, cwd=project.root, text=True, **files)


def test_an_edit_is_searchable_and_is_one_run(project):
    with project.watched() as watch:
        draft = project.write("notes/guide.md~", "# Guide\n\nMarmots live in burrows.\n")
        draft.rename(project.root / "notes/guide.md")  # atomic save, as in editors
        until(watch, lambda: project.finds("Marmots"))
        for_a_while(watch)

    assert project.runs == ["library/notes"]


def test_at_the_start_only_what_changed_meanwhile_is_indexed(project):
    project.write("other/page.md", "# Page\n")
    project.declare(LIBRARY.format("notes"), LIBRARY.format("other"))
    with project.watched():
        pass
    project.write("other/page.md", "# Page\n\nBadgers dig.\n")

    watch = Watch(load_settings(project.root), (), project.index, project.reported.append, poll=False)
    until(watch, lambda: watch.is_idle)
    watch.close()

    assert project.runs == ["library/other"]
    assert project.finds("Badgers")


def test_the_links_of_the_graph_are_written_once_nothing_happened_for_a_while(project, monkeypatch):
    links = Layout(load_settings(project.root).home).links
    monkeypatch.setattr(loop, "_QUIET_S", 3600.0)
    with project.watched() as watch:
        for_a_while(watch)
    assert not links.exists()

    monkeypatch.setattr(loop, "_QUIET_S", 0.0)
    with project.watched() as watch:
        until(watch, links.exists)


def test_the_stores_are_maintained_once_nothing_happened_for_a_while(project, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 1)
    monkeypatch.setattr(loop, "_QUIET_S", 0.0)
    layout = Layout(load_settings(project.root).home)
    with project.watched() as watch:
        until(watch, layout.links.exists)
    with project.watched() as watch:
        until(watch, lambda: not maintenance.why_due(layout))


def test_what_changes_while_a_run_goes_on_is_indexed_by_the_next(project: Project):
    def index(settings: Settings, key: str) -> bool:
        succeeded = project.index(settings, key)
        if len(project.runs) == 1:
            project.write("notes/guide.md", "# Guide\n\nOtters swim.\n")
        return succeeded

    watch = Watch(load_settings(project.root), (), index, project.reported.append, poll=False)
    until(watch, lambda: project.finds("Otters"))
    watch.close()


def test_many_edits_at_once_are_a_run_or_two(project):
    for number in range(200):
        project.write(f"notes/page{number}.md", f"# Page {number}\n\nOld words.\n")
    with project.watched() as watch:
        for number in range(200):
            project.write(f"notes/page{number}.md", f"# Page {number}\n\nNew words.\n")
        until(watch, lambda: project.finds("New") and not project.finds("Old"))
        for_a_while(watch)

    assert len(project.runs) <= 2


def test_edits_that_never_pause_are_indexed_meanwhile(project):
    stopped = threading.Event()

    def type_on() -> None:
        number = 0
        while not stopped.wait(0.02):
            number += 1
            draft = project.write("notes/guide.md~", f"# Guide\n\nKey stroke {number}.\n")
            draft.rename(project.root / "notes/guide.md")

    with project.watched() as watch:
        typist = threading.Thread(target=type_on)
        typist.start()
        try:
            until(watch, lambda: bool(project.runs))  # fails if the watch waits for a pause
        finally:
            stopped.set()
            typist.join()


def test_files_in_new_folders_are_noticed(project):
    with project.watched() as watch:
        project.write("notes/deep/down/page.md", "# Page\n\nVoles hide.\n")
        until(watch, lambda: project.finds("Voles"))
        project.write("notes/deep/down/page.md", "# Page\n\nShrews hide.\n")
        until(watch, lambda: project.finds("Shrews"))
        (project.root / "notes/deep").rename(project.root / "notes/deeper")
        project.write("notes/deeper/down/page.md", "# Page\n\nMoles hide.\n")
        until(watch, lambda: project.finds("Moles") and not project.finds("Shrews"))


def rename_into_place(folder: Path) -> None:
    """Replace a folder with a new copy, like a tool that builds its output elsewhere."""
    new = shutil.copytree(folder, folder.parent.parent / "new")
    shutil.rmtree(folder)
    new.rename(folder)


def swap(folder: Path) -> None:
    """Replace a folder with a copy and keep the old folder elsewhere."""
    new = shutil.copytree(folder, folder.parent.parent / "new")
    folder.rename(folder.parent.parent / "old")
    new.rename(folder)


def make_anew(folder: Path) -> None:
    """Delete and recreate a folder. The file system may reuse the inode."""
    texts = {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}
    shutil.rmtree(folder)
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)


@pytest.fixture
def patient(monkeypatch) -> None:
    """Disable periodic checks for the duration of a test, so that only events trigger them."""
    monkeypatch.setattr(loop, "_ROUND_S", 3600.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("replace", [rename_into_place, swap, make_anew])
@pytest.mark.parametrize("name", ["shelf/notes", "shelf/notes/deep"])
def test_edits_in_a_folder_that_was_replaced_are_noticed(project, replace, name):
    project.declare(LIBRARY.format("shelf/notes"))
    project.write("shelf/notes/guide.md", "# Guide\n")
    project.write("shelf/notes/deep/page.md", "# Page\n")
    with project.watched() as watch:
        replace(project.root / name)
        for_a_while(watch)
        project.write(f"{name}/page.md", "# Page\n\nVoles hide.\n")
        until(watch, lambda: project.finds("Voles"))


@pytest.mark.usefixtures("patient")
def test_edits_are_noticed_after_a_folder_around_the_source_was_replaced(project):
    project.declare(LIBRARY.format("room/shelf/notes"))
    project.write("room/shelf/notes/guide.md", "# Guide\n")
    with project.watched() as watch:
        swap(project.root / "room/shelf")
        for_a_while(watch)
        project.write("room/shelf/notes/guide.md", "# Guide\n\nVoles hide.\n")
        until(watch, lambda: project.finds("Voles"))


def test_an_edit_of_a_file_does_not_list_the_folders(project, monkeypatch):
    with project.watched() as watch:
        monkeypatch.setattr(folders, "folders_of", NotImplemented)
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        until(watch, lambda: project.finds("Marmots"))


def test_the_index_inside_of_a_source_starts_no_run(project, git):
    project.declare(GIT.format("."), LIBRARY.format("."))
    git(project.root, "init", "-q")
    with project.watched() as watch:
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        until(watch, lambda: len(project.runs) == 2)
        for_a_while(watch, 3)

    assert len(project.runs) == 2


def test_an_index_of_another_name_inside_of_a_source_starts_no_run(project, monkeypatch):
    monkeypatch.setenv("DOCINDEX_HOME", "notes/memory")
    with project.watched() as watch:
        for_a_while(watch)

    assert not project.runs


def test_commits_and_switched_branches_are_noticed(project, repository, git):
    with project.watched() as watch:
        git(repository, "switch", "-qc", "topic")
        git(repository, "commit", "-q", "--allow-empty", "-m", "Say why the marmot is primed")
        until(watch, lambda: bool(project.runs))
        (repository / "pump.py").write_text("def start_otter():\n    pass\n")
        git(repository, "commit", "-qam", "Start it")
        until(watch, lambda: project.finds("start_otter"))
        git(repository, "switch", "-q", "main")
        until(watch, lambda: project.finds("prime_pump") and not project.finds("start_otter"))


def test_what_is_not_indexed_starts_no_run(project, repository):
    project.write("service/node_modules/left/index.js", "pad()\n")
    (repository / "ignored").mkdir()
    log = project.write("service/server.log", "started\n")
    with project.watched() as watch:
        project.write("service/node_modules/left/pad.js", "pad()\n")
        project.write("service/ignored/notes.md", "# Mine\n")
        project.write("service/draft.tmp", "a draft\n")
        project.write("service/.git/index.lock", "").unlink()
        log.write_text("stopped\n")
        subprocess.run(["git", "status"], cwd=repository, check=True, capture_output=True)
        for_a_while(watch)

    assert not project.runs


def test_a_file_is_indexed_in_each_source_that_holds_it(project, repository):
    project.write("service/docs/page.md", "# Page\n")
    project.declare(GIT.format("service"), LIBRARY.format("service/docs"))
    with project.watched() as watch:
        project.write("service/docs/page.md", "# Page\n\nFoxes bark.\n")
        until(watch, lambda: set(project.runs) == {"git/service", "library/docs"})


def test_what_git_stops_ignoring_is_noticed(project, repository):
    project.write("service/ignored/page.md", "# Page\n\nHares run.\n")
    with project.watched() as watch:
        project.write("service/.gitignore", "")
        until(watch, lambda: project.finds("Hares"))
        project.write("service/ignored/page.md", "# Page\n\nRabbits run.\n")
        until(watch, lambda: project.finds("Rabbits"))


def test_an_edit_of_the_settings_counts_at_once(project):
    project.write("other/page.md", "# Page\n\nBadgers dig.\n")
    with project.watched() as watch:
        project.declare(LIBRARY.format("notes"), LIBRARY.format("other"))
        until(watch, lambda: project.finds("Badgers"))
        assert project.runs == ["library/other"]

        project.declare(LIBRARY.format("notes"), 'source = "none"')
        until(watch, lambda: len(project.reported) == 2)
        project.write("other/page.md", "# Page\n\nWeasels dig.\n")
        for_a_while(watch)
        assert project.runs == ["library/other"]

        project.declare(LIBRARY.format("other"))
        until(watch, lambda: project.finds("Weasels"))
    assert project.reported[0] == "now also watching library/other"
    assert project.reported[1].endswith("changes are indexed once this is fixed")
    assert project.reported[2:] == ["no longer watching library/notes, which is not declared anymore"]


def test_a_new_child_of_a_folder_of_libraries_is_watched(project):
    project.declare(LIBRARY.format("shelf/{library}"))
    project.write("shelf/first/page.md", "# Page\n")
    with project.watched() as watch:
        project.write("shelf/second/page.md", "# Page\n\nLynxes climb.\n")
        until(watch, lambda: project.finds("Lynxes"))

    assert project.runs == ["library/second"]


def test_a_new_child_is_watched_after_the_folder_of_libraries_was_replaced(project):
    project.declare(LIBRARY.format("shelf/{library}"))
    (project.root / "shelf").mkdir()
    with project.watched() as watch:
        make_anew(project.root / "shelf")
        for_a_while(watch)
        project.write("shelf/second/page.md", "# Page\n\nLynxes climb.\n")
        until(watch, lambda: project.finds("Lynxes"))


@pytest.mark.usefixtures("patient")
def test_the_settings_count_after_their_folder_was_replaced(project, monkeypatch):
    monkeypatch.setenv("DOCINDEX_HOME", str(project.root / "memory"))
    project.write("elsewhere/guide.md", "# Guide\n")
    inner = Project(project.root / "deep/project")
    inner.root.mkdir(parents=True)
    inner.declare(LIBRARY.format("../../notes"))
    with inner.watched() as watch:
        make_anew(inner.root)
        for_a_while(watch)
        inner.declare(LIBRARY.format("../../notes"), LIBRARY.format("../../elsewhere"))
        until(watch, lambda: inner.runs == ["library/elsewhere"])


def test_a_folder_that_is_missing_is_reported_once_and_watched_when_it_comes(project):
    project.declare(LIBRARY.format("notes"), LIBRARY.format("later"))
    with project.watched() as watch:
        for_a_while(watch)
        (reported,) = project.reported
        assert reported.startswith(f"library/later: {project.root}/later cannot be listed")

        project.write("later/page.md", "# Page\n\nStoats run.\n")
        until(watch, lambda: project.finds("Stoats"))
        project.write("later/page.md", "# Page\n\nMartens run.\n")
        until(watch, lambda: project.finds("Martens"))


def test_what_failed_is_tried_again_when_it_changes(project):
    with project.watched() as watch:
        project.is_broken = True
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        until(watch, lambda: bool(project.runs))
        for_a_while(watch)
        assert project.runs == ["library/notes"]
        assert project.reported == ["retrying library/notes when it changes, or in 1 min"]

        project.is_broken = False
        project.write("notes/guide.md", "# Guide\n\nOtters live in holts.\n")
        until(watch, lambda: project.finds("Otters"))


def test_what_another_process_has_indexed_is_not_indexed_again(project):
    with project.watched() as watch:
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        settings = load_settings(project.root)
        time.sleep(0.01)
        index(settings, registry.find(settings, "notes"), StaticEmbedder())
        for_a_while(watch)

    assert not project.runs


def test_a_source_that_was_taken_out_stays_out_unless_it_is_named(project):
    removed_sources.record_removal(Layout(load_settings(project.root).home), "library/notes")
    with project.watched() as watch:
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        for_a_while(watch)
        assert not project.runs
    with project.watched("library/notes"):
        assert project.finds("Marmots")


def test_a_file_whose_name_is_no_text_is_indexed_as_well(project):
    with project.watched() as watch:
        Path(os.fsdecode(os.fsencode(project.root / "notes") + b"/caf\xe9.md")).write_text(
            "# Coffee\n\nDormice sleep.\n"
        )
        until(watch, lambda: project.finds("Dormice"))


@pytest.mark.usefixtures("patient")
def test_edits_in_a_folder_that_came_with_such_a_file_are_noticed(project):
    with project.watched() as watch:
        project.write("notes/deep/page.md", "# Page\n")
        Path(os.fsdecode(os.fsencode(project.root / "notes") + b"/caf\xe9.md")).write_text("# Coffee\n")
        for_a_while(watch)
        project.write("notes/deep/page.md", "# Page\n\nVoles hide.\n")
        until(watch, lambda: project.finds("Voles"))


def test_polling_notices_edits_and_new_folders(project):
    with project.watched(poll=True) as watch:
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        until(watch, lambda: project.finds("Marmots"))
        project.write("notes/deep/page.md", "# Page\n\nVoles hide.\n")
        until(watch, lambda: project.finds("Voles"))


def test_the_command_records_a_run_of_dagster_and_ends_well_when_interrupted(project):
    with (project.root / "errors").open("w+") as errors:
        process = _command(project, "notes", "--json", stdout=subprocess.PIPE, stderr=errors)
        first = json.loads(process.stdout.readline())
        project.write("notes/guide.md", "# Guide\n\nMarmots live in burrows.\n")
        second = json.loads(process.stdout.readline())
        found = project.finds("Marmots")
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=PATIENCE_S)
        process.stdout.close()
        errors.seek(0)
        reported = errors.read().splitlines()

    assert (first["added"], second["changed"], found, code) == (1, 1, True, 0)
    assert reported == ["watching 1 source in 1 folder; stop with Ctrl-C", "stopped; the index stays searchable"]
    runs = [(entry.run.run_id, entry.state) for _, entry in journal.runs(Layout(project.root / ".docindex"))]
    assert runs == [(first["run_id"], State.SUCCEEDED), (second["run_id"], State.SUCCEEDED)]


def test_as_a_job_in_the_background_the_command_ends_when_it_is_asked_to_after_a_run(project):
    """Background jobs of a shell ignore SIGINT, and jobs of Dagster can ignore both signals."""

    def ignore_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = _command(
        project, "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=ignore_interrupts
    )
    try:
        assert json.loads(process.stdout.readline())["added"] == 1
        process.terminate()

        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("declared", "arguments", "message"),
    [
        ("", [], "no sources yet; add one with `docindex index PATH`"),
        (LIBRARY.format("notes"), ["notse"], "source 'notse' not found; known sources: library/notes"),
        (
            '[[source]]\nkind = "git"\nurl = "https://example.org/team/app"\n',
            [],
            "git/app: sources that follow a remote cannot be watched; `docindex ui` checks them",
        ),
    ],
)
def test_what_cannot_be_watched_is_an_error_of_a_line(project, declared, arguments, message):
    project.declare(declared)

    done = _command(project, *arguments, stderr=subprocess.PIPE)

    assert done.communicate()[1] == f"error: {message}\n"
    assert done.returncode == 1
