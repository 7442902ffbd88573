"""History search."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core import tables
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.publication import golden_query
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.log import CommitFilters, log
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.model import RETRIEVING
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import git_alone, publish_rows, vectors_of

HISTORY = [
    ("Ada <ada@example.com>", "2024-01-01", "pump/valve.py", "Close the valve before the pump starts"),
    ("Grace <grace@example.com>", "2024-02-01", "pump/motor.py", "Turn the motor the other way round"),
    ("Ada <ada@example.com>", "2024-03-01", "docs/guide.md", "Explain how the valve is cleaned"),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    """Index two repositories with the same history, and a library."""
    with pytest.MonkeyPatch.context() as patch:
        return open_reader(_published(tmp_path_factory.mktemp("history"), patch))


def _published(folder: Path, patch: pytest.MonkeyPatch) -> Layout:
    git = git_alone(patch)
    layout = Layout(folder / "home")
    for name in ("one", "two"):
        root = folder / name
        root.mkdir()
        git(root, "init", "-q")
        for author, date, path, message in HISTORY:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text("valve = 'pump'\nmotor = 'valve'\n" if path.endswith("py") else f"# {message}\n")
            git(root, "add", ".")
            patch.setenv("GIT_COMMITTER_DATE", f"{date}T00:00:00Z")
            git(root, "commit", "-qm", message, "--author", author, f"--date={date}T00:00:00Z")
        source = Source(f"git/{name}", "git", name, root)
        commits = read_commits(source, git(root, "rev-parse", "HEAD").strip(), None, 500)
        file = layout.table("commits", source.key)
        tables.write(file, commits)
        chunks = build_chunks(
            source, gather(discover(source), ChunkingSettings(), tables.read(file)), None, ChunkingSettings()
        ).table
        publish_rows(layout, source.key, chunks, vectors_of(chunks))
    return layout


def subjects(reader: Reader, query: str = "", sources: tuple[str, ...] = ("git/one",), top_k: int = 10, **filters):
    found = log(reader, query, StaticEmbedder, top_k=top_k, filters=CommitFilters(sources=sources, **filters))
    return [row["subject"] for row in found]


ALL = [message for *_, message in reversed(HISTORY)]


def test_without_a_query_the_latest_commits_come_first(reader):
    assert subjects(reader) == ALL
    assert subjects(reader, top_k=1) == ALL[:1]
    assert subjects(reader, sources=()) == ALL  # though two sources contain each commit


def test_a_query_ranks_commits_by_what_they_say(reader):
    assert subjects(reader, "motor direction")[0] == "Turn the motor the other way round"
    assert set(subjects(reader, "valve", top_k=2)) == {ALL[0], ALL[2]}


@pytest.mark.parametrize("query", ["", "valve"])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"author": "GRACE"}, {ALL[1]}),
        ({"author": "ada@example"}, {ALL[0], ALL[2]}),
        ({"author": "nobody"}, set()),
        ({"author": ".*"}, set()),
        ({"since": datetime(2024, 2, 1, tzinfo=UTC)}, {ALL[0], ALL[1]}),
        ({"path_glob": "pump/*.py"}, {ALL[1], ALL[2]}),
        ({"path_glob": "*.md", "author": "ada"}, {ALL[0]}),
        ({"path_glob": "*.md", "author": "grace"}, set()),
    ],
)
def test_every_commit_meets_every_filter(reader, query, filters, expected):
    assert set(subjects(reader, query, **filters)) == expected


def test_a_glob_that_is_too_complex_is_refused(reader):
    with pytest.raises(QueryError, match="too complex"):
        subjects(reader, path_glob="*a" * 100)


@pytest.mark.parametrize("mode", RETRIEVING)
def test_a_search_finds_commits_only_when_it_asks_for_them(reader, mode):
    def types(*wanted: str) -> set[str]:
        hits = search(reader, "valve pump", StaticEmbedder, mode=mode, top_k=100, filters=Filters(source_types=wanted))
        return {hit.source_type for hit in hits}

    assert types() == {"code", "doc"}
    assert types("commit") == {"commit"}
    assert types("doc", "commit") == {"doc", "commit"}


def test_a_commit_is_found_by_how_its_hash_begins(reader):
    commit = log(reader, "", StaticEmbedder, filters=CommitFilters(sources=("git/one",)))[0]["commit"]

    for reference in (commit, commit[:7], commit[:12].upper()):
        assert {row["commit"] for row in find_chunks(reader, reference, ("git/one",))} == {commit}
    for reference in (commit[:6], "0" * 12):
        with pytest.raises(QueryError):
            find_chunks(reader, reference)


def test_the_golden_query_of_a_source_with_commits_passes(reader):
    assert golden_query(reader.layout, "git/one", StaticEmbedder) == ""
