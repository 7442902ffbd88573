"""Training pairs of a change description and a matching passage, from the history of a repository."""

from collections.abc import Callable
from pathlib import Path

import pytest

from training.commits import commit_pairs
from training.licences import Entry
from training.mirrors import check_out, mirror_of
from training.pairs import SCHEMA

CACHE = '''\
class Cache:
    """Holds answers."""

    def evict(self, now):
        """Drop the oldest entries when the memory limit is reached."""
        while self.size > self.limit:
            self.entries.popitem(last=False)

    def load(self, path):
        """Read entries from a file."""
        with open(path) as file:
            self.entries = parse(file)
'''
PAGE = """\
# Tuning

## Limits of memory

Entries are evicted when the limit of memory is reached, which is a quarter of what the machine has by default.

## Other pages

"""
OTHERS = (
    "What else there is to say is in the pages on how to deploy, how to upgrade, how to find what went wrong.\n\n" * 40
)


@pytest.fixture
def pairs(tmp_path: Path, git: Callable[..., str]) -> Callable[..., list[dict[str, str]]]:
    """Return a function that builds pairs from a repository with the given commits."""

    def made(*commits: tuple[str, dict[str, str]], seed: int = 0) -> list[dict[str, str]]:
        path = tmp_path / "ada+cache" / "repo"
        path.mkdir(parents=True)
        git(path, "init", "-q")
        for subject, files in commits:
            for name, text in files.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_text(text)
            git(path, "add", ".")
            git(path, "commit", "-qm", subject)
        entry = Entry("ada/cache", git(path, "rev-parse", "HEAD").strip(), "MIT")
        check_out(mirror_of(tmp_path, entry), entry.revision, tmp_path / "checkout", ())
        found = commit_pairs(path, entry.revision, tmp_path / "checkout", seed)
        assert found.schema == SCHEMA
        rows: list[dict[str, str]] = found.to_pylist()
        return rows

    return made


def test_a_subject_is_answered_by_the_passage_with_most_of_its_words(pairs):
    (pair,) = pairs(("Evict the oldest entries at the memory limit", {"src/cache.py": CACHE}))

    assert (pair["kind"], pair["language"]) == ("commit", "python")
    assert pair["query"] == "Evict the oldest entries at the memory limit"
    assert "Drop the oldest entries" in pair["passage"]


def test_of_a_page_it_is_a_part(pairs):
    (pair,) = pairs(("Explain when entries are evicted and the memory limit", {"docs/tuning.md": PAGE + OTHERS}))

    assert pair["language"] == "documents"
    assert "Entries are evicted" in pair["passage"]
    assert len(pair["passage"]) < len(PAGE + OTHERS) / 2


def test_what_was_done_to_files_alone_is_no_query(pairs):
    assert pairs(("Fix typos in evict and its memory limit", {"src/cache.py": CACHE})) == []


def test_a_repository_whose_history_says_nothing_has_no_pairs(pairs):
    assert pairs(("Initial commit", {"src/cache.py": CACHE})) == []


def test_a_template_that_no_grammar_reads_is_passed_over(pairs):
    template = "<% entries.each do |oldest| %> memory limit evict <%= oldest %> <% end %>\n" * 20
    files = {"views/cache.erb": template, "src/cache.py": CACHE}

    found = pairs(("Evict the oldest entries at the memory limit", files))

    assert [pair["language"] for pair in found] == ["python"]


def test_a_clone_without_its_history_is_fetched_again(tmp_path, git):
    """Its commits would otherwise be silently missing."""
    path = tmp_path / "ada+cache" / "repo"
    path.mkdir(parents=True)
    git(path, "init", "-q", "--bare")
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q")
    for subject in ("first", "second"):
        (origin / "a.txt").write_text(subject)
        git(origin, "add", ".")
        git(origin, "commit", "-qm", subject)
    revision = git(origin, "rev-parse", "HEAD").strip()
    git(path, "fetch", "-q", "--depth=1", f"file://{origin}", revision)
    git(path, "config", f"url.file://{origin}.insteadOf", "https://github.com/ada/cache")

    mirror_of(tmp_path, Entry("ada/cache", revision, "MIT"))

    assert git(path, "log", "--format=%s", revision).split() == ["second", "first"]
