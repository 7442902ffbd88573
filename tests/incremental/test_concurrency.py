"""Tests of concurrent indexing, searching and editing: no errors, and every answer shows a single generation.

Each section of the two marked files names the revision of the file, which is replaced atomically. An answer that mixes
generations or stores therefore shows two revisions of a file, or lacks a section.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import RETRIEVING
from docindex_dagster.stores.reader import open_reader
from tests.incremental.contents import difference, leftovers, problems
from tests.incremental.processes import Child, How, anew, contents_of, docindex, index_by_command, index_by_library
from tests.incremental.projects import Project

SECTIONS = 6
_MARK = re.compile(r"section (\d+) of revision (\d+)")
_MARKED = ("marked.md", "marked.py")


def test_indexing_and_searching_concurrently(folder):
    run_concurrently(folder, seconds=1, files=8)


@pytest.mark.parallel
def test_indexing_and_searching_concurrently_for_a_minute(folder, say):
    counts = run_concurrently(folder, seconds=60, commands=2)
    say(f"{counts}")


def run_concurrently(folder: Path, *, seconds: float, files: int = 20, commands: int = 0) -> dict[str, int]:
    """Edit files, index in two processes and several commands, search, and return the number of times each was done."""
    project = Project.create(folder, 1, files=files)
    write_marked(project, 0)
    how: How = "command" if commands else "library"
    index_all = index_by_command if commands else index_by_library
    index_all(project)
    children = [Child.start(project, "loop") for _ in range(2)]
    for child in children:
        child.go()
    until = time.monotonic() + seconds
    work: dict[str, Callable[[], None]] = {
        "edits": Editor(project).edit,
        "answers": lambda: look(project),
    }
    if commands:
        work["docindex search"] = lambda: search_by_command(project)
    work |= {f"docindex index {at}": lambda: index_by_command(project) for at in range(commands)}
    loops = [Loop(name, step, until) for name, step in work.items()]
    for loop in loops:
        loop.thread.start()
    for loop in loops:
        loop.thread.join()
    assert [child.stop() for child in children] == [0, 0]
    assert [loop.error for loop in loops if loop.error] == []

    index_all(project)
    assert difference(contents_of(project), anew(project, how)) == ""
    assert problems(project.layout) == []
    assert leftovers(project.layout) == []
    return {loop.name: loop.count for loop in loops} | {"generation": open_reader(project.layout).generation.number}


class Loop:
    """Thread that repeats an action until a deadline or an error."""

    def __init__(self, name: str, step: Callable[[], None], until: float) -> None:
        self.name, self.step, self.until = name, step, until
        self.count = 0
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            while time.monotonic() < self.until or not self.count:
                self.step()
                self.count += 1
        except BaseException as error:  # noqa: BLE001 the test's own thread shows it
            self.error = error


class Editor:
    """Editor that changes files and replaces marked files atomically."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.revision = 0

    def edit(self) -> None:
        self.revision += 1
        write_marked(self.project, self.revision)
        if self.revision % 5 == 0:
            self.project.edit(0.1, spared=_MARKED)
        time.sleep(0.1)


def write_marked(project: Project, revision: int) -> None:
    mark = "section {0} of revision {1}"
    page = "\n\n".join(f"## Part {at}\n\n" + f"{mark.format(at, revision)}. " * 40 for at in range(SECTIONS))
    module = "\n\n".join(
        f'def part_{at}() -> None:\n    """{mark.format(at, revision)}."""\n' + f"    print({revision})\n" * 60
        for at in range(SECTIONS)
    )
    for place, text in ((project.notes.root / "marked.md", page), (project.code.root / "marked.py", module)):
        outside = project.root / place.name
        outside.write_text(text)
        outside.replace(place)


def look(project: Project) -> None:
    """Open the published index, and query every retriever for every section."""
    reader = open_reader(project.layout)
    expected = sum(source.chunks for source in reader.generation.sources.values())
    assert reader.searcher.num_docs == reader.table.count_rows() == expected
    seen: dict[str, set[str]] = {}
    for name in _MARKED:
        for mode in RETRIEVING:
            hits = search(
                reader, "section of revision", StaticEmbedder, mode=mode, top_k=50, filters=Filters(path_glob=name)
            )
            seen.setdefault(name, set()).add(revision_of(hit.text for hit in hits))
    assert all(len(revisions) == 1 for revisions in seen.values()), seen


def search_by_command(project: Project) -> None:
    for name in _MARKED:
        done = docindex(project, "search", "section of revision", "--path", name, "--top-k", "50", "--json")
        assert done.returncode == 0, done.stderr
        revision_of(hit["text"] for hit in json.loads(done.stdout))


def revision_of(texts: Iterable[str]) -> str:
    """Return the single revision of all sections in an answer."""
    marks: set[tuple[str, str]] = {mark for text in texts for mark in _MARK.findall(text)}
    assert len({revision for _, revision in marks}) == 1, f"of several revisions: {marks}"
    assert {int(section) for section, _ in marks} == set(range(SECTIONS)), f"not whole: {marks}"
    return next(iter(marks))[1]
