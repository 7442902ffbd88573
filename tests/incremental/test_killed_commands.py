"""Tests that any writing command can be killed at any time.

Searches keep working, and `docindex index` repairs the rest.
"""

import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import open_reader
from tests.incremental.contents import Contents, difference, from_nothing, leftovers, problems, stores_of, tables_of
from tests.incremental.processes import Child, docindex, ended
from tests.incremental.projects import TOPICS, Project

_ORPHANS_END_WITHIN_S = 10.0
_REPORT_EVERY = 25  # attempts
_FILES = 16
_NOTES = "library/notes"
_ERASE = ("prune", "--erase")
_TINY = {"DOCINDEX_TEST_MODEL": "tiny"}


@dataclass(frozen=True, slots=True)
class Command:
    """A command to kill, the preparation that gives it work, and its environment variables."""

    arguments: tuple[str, ...]
    prepare: Callable[[Project], None]
    variables: tuple[tuple[str, str], ...] = ()
    ends: bool = True  # without being stopped

    @property
    def name(self) -> str:
        return " ".join([*self.arguments, *(f"({value})" for _, value in self.variables)])


def _edited(project: Project) -> None:
    project.edit()


def _pruned_before(project: Project) -> None:
    """Create old rows, a previous generation and a table of an undeclared source."""
    project.edit()
    _index(project)
    table = project.layout.table("chunks", _NOTES)
    shutil.copyfile(table, table.with_name("library%2Fgone.parquet"))


def _damaged(project: Project) -> None:
    """Truncate a Tantivy segment."""
    segment = max(project.layout.tantivy.glob("*/*.store"), key=lambda file: file.stat().st_size)
    data = segment.read_bytes()
    segment.unlink()  # the hard links in other generations keep the data
    segment.write_bytes(data[: len(data) // 2])


COMMANDS = (
    Command(("index",), _edited),
    Command(("index", "--full"), _edited),
    Command(("index",), _edited, tuple(_TINY.items())),
    Command(("watch",), _edited, ends=False),
    Command(("prune",), _pruned_before),
    Command(("prune", "--previous"), _pruned_before),
    Command(_ERASE, _pruned_before),
    Command(("rollback",), _pruned_before),
    Command(("source", "remove", _NOTES), _edited),
    Command(("doctor", "--repair"), _damaged),
)


@pytest.mark.kill
def test_hundreds_of_killed_commands(folder, say):
    number = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    wanted = int(os.environ.get("DOCINDEX_TEST_KILLS") or 200)
    say(f"to repeat: make test-kill DOCINDEX_TEST_SEED={number} DOCINDEX_TEST_KILLS={wanted}")
    chance = random.Random(number)
    project = Project.create(folder, number, files=_FILES)
    config = (project.root / "docindex.toml").read_text()
    _index(project)
    durations = {command: _duration(project, command, config) for command in COMMANDS}
    killed: Counter[str] = Counter()
    done: Counter[str] = Counter()
    attempts = 0
    while killed.total() < wanted:
        command = COMMANDS[attempts % len(COMMANDS)]
        attempts += 1
        assert attempts < 3 * wanted + 10, "the commands end before they can be killed"
        child = _start(project, command)
        command.prepare(project)
        child.go()
        child.run_to("start", chance.random() * durations[command])
        died_in = child.kill(with_children=bool(chance.randrange(2)))
        where = f"{command.name}, killed in {died_in} (seed {number}, attempt {attempts})"
        assert ended(child.process.pid, _ORPHANS_END_WITHIN_S), f"{where}: processes are left over"
        if command.prepare is not _damaged:
            _search(project, where)
        _restore(project, config)
        expected = _anew(project)
        _index(project)
        if command.arguments == _ERASE:  # the second run completes the erasure
            again = docindex(project, *_ERASE)
            assert again.returncode == 0, f"{where}: {again.stderr}"
        found = tables_of(project.layout, _keys(project)) | stores_of(project.layout, TOPICS)
        assert difference(found, expected) == "", where
        assert problems(project.layout) == [], where
        assert _damaged_records(project) == [], where
        (done if died_in == "done" else killed)[command.name] += 1
        if attempts % _REPORT_EVERY == 0:
            say(f"{killed.total()} killed, no fault so far")
    project.edit()
    _index(project)
    assert docindex(project, "prune").returncode == 0
    assert leftovers(project.layout) == []
    say("\n".join([f"{killed.total()} commands killed:", *(f"  {name:<28} {n:>4}" for name, n in killed.items())]))
    say(f"ended before: {dict(done)}")


def _start(project: Project, command: Command) -> Child:
    return Child.start(project, "command", command.arguments, **dict(command.variables))


def _duration(project: Project, command: Command, config: str) -> float:
    """Return the duration of an undisturbed command in seconds."""
    child = _start(project, command)
    command.prepare(project)
    child.go()
    if not command.ends:
        child.run_to("clean-up", 1.0)
    else:
        child.run_to("never", 0)
    child.kill(with_children=True)
    ended(child.process.pid, _ORPHANS_END_WITHIN_S)
    _restore(project, config)
    _index(project)
    return child.stages[-1][1] - dict(child.stages)["start"] + 0.1


def _index(project: Project) -> None:
    """Run `docindex index` on all sources, and first `doctor --repair` if the stores are damaged.

    The command names the sources: a source that was removed but is still declared in `docindex.toml` stays out
    otherwise.
    """
    done = docindex(project, "index", *_keys(project))
    if done.returncode and "doctor --repair" in done.stderr:
        repaired = docindex(project, "doctor", "--repair")
        assert repaired.returncode == 0, repaired.stdout + repaired.stderr
        done = docindex(project, "index", *_keys(project))
    assert done.returncode == 0, done.stderr


def _restore(project: Project, config: str) -> None:
    """Restore the declaration of a removed source."""
    file = project.root / "docindex.toml"
    if file.read_text() != config:
        file.write_text(config)


def _search(project: Project, where: str) -> None:
    """Assert that searches, also by vector with the default model, find published rows only."""
    reader, found = open_reader(project.layout), stores_of(project.layout, TOPICS)
    stored = {(row["chunk_id"], row["text"]) for row in found["Tantivy rows"]}
    modes = (Mode.BM25, Mode.HYBRID) if reader.generation.model == StaticEmbedder.name else (Mode.BM25,)
    for mode in modes:
        hits = search(reader, "open the pump", StaticEmbedder, mode=mode)
        assert hits, where
        assert stored.issuperset((hit.chunk_id, hit.text) for hit in hits), where


def _damaged_records(project: Project) -> list[Path]:
    """Return Dagster's databases that SQLite finds damaged."""
    damaged = []
    for database in sorted(project.layout.dagster.rglob("*.db")):
        with closing(sqlite3.connect(database)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                damaged.append(database)
    return damaged


def _keys(project: Project) -> list[str]:
    return [source.key for source in project.sources]


def _anew(project: Project) -> Contents:
    """Return the contents of a full build of the current files."""
    home = Path(project.root / "anew")
    settings = project.settings.model_copy(update={"home": home})
    return from_nothing(settings, list(registry.sources(settings).values()), home, TOPICS)
