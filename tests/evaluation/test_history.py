"""Questions from a repository's history: which commits qualify, and which files answer them."""

import os
from pathlib import Path
from typing import Literal

import pytest

from docindex_dagster.evaluation.history import History, indexed_commit, read_history
from docindex_dagster.evaluation.questions import IndexedFile
from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, path_to_name
from tests.evaluation.conftest import commit, new_repository

SUBJECT = "Sign sessions with the newest key"
CODE = "key = 1\n" * 20


@pytest.fixture
def folder(tmp_path, git) -> Path:
    root = new_repository(tmp_path / "app", git)
    commit(root, git, "Initial commit", {"src/keys.py": "", "README.md": "# App\n"})
    return root


def history_of(
    folder: Path, most: int = 100, secrets: Literal["skip", "index"] = "skip", head: str = "HEAD"
) -> History:
    source = Source("git/app", "git", "app", folder, secrets=secrets)
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path_to_name(os.fsencode(path.relative_to(folder)))
        kind = classify_name(name_to_path(name)) if path.is_file() and not name.startswith(".git/") else None
        if kind is not None:
            files[name] = IndexedFile(kind.source_type, kind.language or "text")
    return read_history(source, head, files, most)


def asked(folder: Path, **options) -> dict[str, list[str]]:
    return {
        question.text: [target.path for target in question.targets]
        for question in history_of(folder, **options).questions
    }


def test_a_commit_asks_by_its_subject_for_the_files_that_it_changed(folder, git):
    commit(folder, git, SUBJECT, {"src/keys.py": "a", "src/session.py": "b", "README.md": "# c\n"})

    assert asked(folder) == {SUBJECT: ["README.md", "src/keys.py", "src/session.py"]}


def test_a_question_says_which_commit_it_is_of_and_in_which_language_its_answers_are(folder, git):
    made = commit(folder, git, SUBJECT, {"src/keys.py": "a", "src/session.py": "b", "README.md": "# c\n"})

    (question,) = history_of(folder).questions

    assert question.name == f"git/app@{made[:12]}"
    assert question.language == "python"
    assert question.within == ("git/app",)
    assert question.is_of_history


def test_tests_settings_and_change_logs_answer_nothing(folder, git):
    others = {
        "tests/test_keys.py": "a",
        "settings.toml": "a = 1\n",
        "CHANGELOG.md": "# a\n",
        "doc/changelog/17.rst": "a\n",
        "tests/data/page.md": "# a\n",
    }
    commit(folder, git, SUBJECT, {"src/keys.py": "a", **others})
    commit(folder, git, "Say in the notes what is new", {name: f"{text}b" for name, text in others.items()})

    assert asked(folder) == {SUBJECT: ["src/keys.py"]}


@pytest.mark.parametrize("author", ["dependabot[bot] <a@b>", "Release Bot <bot@example.org>"])
def test_programs_ask_nothing(folder, git, author):
    commit(folder, git, SUBJECT, {"src/keys.py": "a"}, f"--author={author}")

    assert asked(folder) == {}


def test_a_change_of_many_files_asks_nothing(folder, git):
    commit(folder, git, SUBJECT, {f"src/module_{number}.py": "a" for number in range(11)})
    commit(folder, git, "Count the beats of the drum", {f"src/module_{number}.py": "b" for number in range(10)})

    assert list(asked(folder)) == ["Count the beats of the drum"]


def test_a_merge_asks_nothing(folder, git):
    git(folder, "switch", "-q", "-c", "other")
    commit(folder, git, SUBJECT, {"src/keys.py": "a"})
    git(folder, "switch", "-q", "main")
    commit(folder, git, "Count the beats of the drum", {"src/drum.py": "a"})
    git(folder, "merge", "-q", "--no-ff", "-m", "Let keys and drums go together", "other")

    assert {*asked(folder)} == {SUBJECT, "Count the beats of the drum"}


def test_a_file_that_is_renamed_answers_under_its_present_name(folder, git):
    commit(folder, git, SUBJECT, {"src/keys.py": CODE})
    git(folder, "mv", "src/keys.py", "src/secrets.py")
    commit(folder, git, "Call keys what they are, which is secrets", {})

    assert asked(folder) == {SUBJECT: ["src/secrets.py"]}


def test_the_file_that_had_a_name_before_does_not_answer_for_the_one_that_has_it_now(folder, git):
    commit(folder, git, SUBJECT, {"src/keys.py": CODE})
    (folder / "src/keys.py").unlink()
    commit(folder, git, "Drop the keys that nobody uses", {})
    commit(folder, git, "Draw the keys of the piano", {"src/keys.py": CODE * 2})
    git(folder, "mv", "src/keys.py", "src/piano.py")
    commit(folder, git, "Call the keys what they are of", {})

    assert asked(folder) == {"Draw the keys of the piano": ["src/piano.py"]}


def test_a_commit_asks_nothing_when_a_file_that_answers_is_gone(folder, git):
    commit(folder, git, SUBJECT, {"src/keys.py": "a", "src/session.py": "b"})
    (folder / "src/session.py").unlink()
    commit(folder, git, "Drop the session of old browsers", {})

    assert asked(folder) == {}


def test_a_subject_that_two_commits_have_asks_nothing(folder, git):
    for text in ("a", "b"):
        commit(folder, git, SUBJECT, {"src/keys.py": text})

    assert asked(folder) == {}


def test_a_subject_with_a_secret_asks_nothing(folder, git):
    token = "ghp_" + "Zq3x8Kd0vN4mYt7Rb1Lw9Gs6Hc2Jf5Pa0UeE"
    commit(folder, git, f"Replace the leaked token {token} everywhere", {"src/keys.py": "a"})

    found = " ".join(asked(folder))

    assert token not in found


def test_the_newest_commits_are_read_and_no_more(folder, git):
    for number, word in enumerate(("violins", "trumpets", "cellos")):
        commit(folder, git, f"Tune the {word} before the concert", {"src/keys.py": str(number)})

    found = history_of(folder, most=2)

    assert found.commits == 2
    assert [question.text.split()[2] for question in found.questions] == ["cellos", "trumpets"]


def test_history_ends_with_the_commit_that_is_indexed(folder, git):
    indexed = commit(folder, git, SUBJECT, {"src/keys.py": "a"})
    commit(folder, git, "Count the beats of the drum", {"src/keys.py": "b"})

    assert list(asked(folder, head=indexed)) == [SUBJECT]


def test_a_name_that_is_no_text_is_written_as_the_index_writes_it(folder, git):
    (folder / "src").joinpath("k\udce9y.py").write_text("a")
    commit(folder, git, SUBJECT, {})

    assert asked(folder) == {SUBJECT: ["src/k%E9y.py"]}


def test_the_commit_that_is_indexed_is_the_one_that_the_index_names_or_else_head(folder, git):
    first = git(folder, "rev-parse", "HEAD").strip()
    newest = commit(folder, git, SUBJECT, {"src/keys.py": "a"})
    source = Source("git/app", "git", "app", folder)

    assert indexed_commit(source, first) == first
    assert indexed_commit(source, "2.0") == newest
    assert indexed_commit(source, "--all") == newest
    assert indexed_commit(source, "0" * 40) is None
