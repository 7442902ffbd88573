"""Git history in the prompt of a question."""

from pathlib import Path

import pytest

from docindex_dagster.answering.question import git_context, is_about_history, is_about_latest
from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import make_visible
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.search.log import CommitFilters
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import publish_rows, vectors_of

LONG = "Because the pump was too slow. " * 100


class Repository:
    """Create a repository with one commit per day."""

    def __init__(self, root: Path, git, monkeypatch) -> None:
        self.root, self._git, self._patch = root, git, monkeypatch
        self._day = 0
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> None:
        self._day += 1
        self._patch.setenv("GIT_COMMITTER_DATE", f"2024-01-{self._day:02}T00:00:00Z")
        self._git(self.root, *arguments)

    def commit(self, message: str) -> None:
        (self.root / f"{message.split(maxsplit=1)[0]}.py").write_text(f"text = {message!r}\n")
        self._git(self.root, "add", ".")
        self.git("commit", "-qm", message, "--author", "Ada <ada@example.com>")

    def reader(self) -> Reader:
        layout = Layout(self.root.parent / "home")
        source = Source("git/work", "git", "work", self.root)
        file = layout.table("commits", source.key)
        tables.write(file, read_commits(source, self._git(self.root, "rev-parse", "HEAD").strip(), None, 500))
        rows = gather(discover(source), ChunkingSettings(), tables.read(file))
        chunks = build_chunks(source, rows, None, ChunkingSettings()).table
        publish_rows(layout, source.key, chunks, vectors_of(chunks))
        return open_reader(layout)


@pytest.fixture
def repository(tmp_path: Path, git, monkeypatch) -> Repository:
    (tmp_path / "work").mkdir()
    return Repository(tmp_path / "work", git, monkeypatch)


@pytest.mark.parametrize(
    "question",
    [
        "what changed last week?",
        "latest commit",
        "Show the most recent changes",
        "what is the last change to the pump",
        "who wrote the valve?",
        "when was signing added",
        "the git log, please",
        "what has changed in the station",
        "what was recently removed",
        "commits by Ada",
    ],
)
def test_a_question_about_the_history_is_known(question):
    assert is_about_history(question)


@pytest.mark.parametrize(
    "question",
    [
        "how are uncommitted files found",
        "what is a commitment",
        "how does the history of redirects work",
        "what does exchange do",
        "where is the last line parsed",
        "how do I change the level",
        "who calls pump",
        "when is the valve opened",
        "precommit",
    ],
)
def test_another_question_is_not(question):
    assert not is_about_history(question)


def test_only_the_latest_change_comes_whole():
    assert is_about_latest("what changed?")
    assert not is_about_latest("list the commits by Ada")


def test_the_five_newest_commits_have_a_line_each(repository):
    for number in range(7):
        repository.commit(f"m{number} is pumped\n\nAnd more of it.")

    found = git_context(repository.reader(), "list the commits")

    assert len(found.commits) == 5
    lines = found.text.split("\n")
    assert [line.split(" ", 1)[1] for line in lines[1:]] == [
        f"2024-01-{number + 2:02} Ada: m{number} is pumped" for number in (6, 5, 4, 3, 2)
    ]
    assert lines[1].split()[0] == found.commits[0][:10]


def test_the_latest_change_comes_with_its_message_and_files(repository):
    repository.commit("one")
    repository.commit("two valves\n\nThey are red.")

    text = git_context(repository.reader(), "what changed?").text

    assert text.endswith("Ada: two valves\n\ntwo valves\n\nThey are red.\n\n1 files +1 -0\nA two.py +1 -0")


def test_it_takes_so_many_characters_at_most(repository):
    repository.commit(f"long\n\n{LONG}")

    text = git_context(repository.reader(), "what changed?").text

    assert len(text.partition("The latest change:\n")[2]) == 1500
    assert text.endswith("…")


def test_merges_are_left_out(repository):
    repository.commit("base")
    repository.git("switch", "-qc", "other")
    repository.commit("side")
    repository.git("switch", "-q", "main")
    repository.commit("main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge other", "other")

    text = git_context(repository.reader(), "what changed?").text

    assert "Merge other" not in text
    assert text.partition("The latest change:\n")[2].split("\n", 1)[0].endswith("Ada: main")


def test_another_question_gets_none(repository):
    repository.commit("one")

    assert git_context(repository.reader(), "how are uncommitted files found") is None


def test_filters_hold(repository):
    repository.commit("one")
    reader = repository.reader()

    assert git_context(reader, "what changed?", CommitFilters(sources=("git/work",))) is not None
    assert git_context(reader, "what changed?", CommitFilters(sources=("git/other",))) is None
    assert git_context(reader, "what changed?", CommitFilters(author="Grace")) is None


def test_of_what_a_commit_says_every_character_can_be_seen(repository):
    repository.commit("one \x1b[31m\u202ered\n\n\u200bhidden")

    text = git_context(repository.reader(), "what changed?").text

    assert "\ufffdred" in text
    assert "\ufffdhidden" in text
    assert make_visible(text) == text
