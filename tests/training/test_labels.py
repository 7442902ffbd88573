"""Questions with known answers from the history and texts of repositories: selection and held-out data."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from training.labels.changes import questions_of_commits, questions_of_issues
from training.labels.checkout import Checkout, is_left_out
from training.labels.history import commits_of
from training.labels.questions import Question, content_words, distinct, is_worth_asking, normalised
from training.labels.repository import Job, make
from training.labels.table import jobs_of, problems, read_table
from training.licences import Entry

FOLDER = Path(__file__).parents[2] / "training"
BENCHMARK = Path(os.environ.get("DOCINDEX_TEST_BENCH", FOLDER.parents[1] / "shared" / "bench")) / "never-train-on.txt"

STORE = '''\
"""Sessions of users."""


class SessionStore:
    """Keeps the sessions of users that are signed in.

    They are in memory alone.
    """

    def purge(self, now):
        """Remove all sessions whose time has expired."""
        for key in [key for key, session in self.sessions.items() if session.expires < now]:
            del self.sessions[key]
'''
PROXY = """\
// Forwards the address of a client to the backend.
function forwardAddress(request) {
  return request.headers["x-forwarded-for"];
}
"""
PAGE = """\
# Deploying

Sessions are safe behind a load balancer, whichever it is, as long as it passes on the address.

## Trust networks of a proxy

Set `trusted_proxies` to the networks that the proxies are in, so that nobody else can forge the header of an address.

Other pages
-----------

Words of no importance that make this section long enough to be one of those
that are asked for, were it not for its title.
"""
CHANGELOG = "# Changelog\n\n- Purge sessions that have expired while the store is locked\n"


@pytest.fixture
def mirror(tmp_path: Path, git: Callable[..., str]) -> Callable[..., Entry]:
    """Return a function that creates a repository `ada/sessions` with the files above and further commits."""

    def made(*commits: tuple[str, dict[str, str]], author: str = "") -> Entry:
        path = tmp_path / "mirrors" / "ada+sessions" / "repo"
        path.mkdir(parents=True)
        git(path, "init", "-q")
        first = {"src/store.py": STORE, "src/proxy.js": PROXY, "docs/deploy.md": PAGE, "CHANGELOG.md": CHANGELOG}
        for subject, files in (("Initial commit", first), *commits):
            for name, text in files.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_text(text)
            git(path, "add", ".")
            git(path, "commit", "-qm", subject, *([f"--author={author}"] if author else []))
        return Entry("ada/sessions", git(path, "rev-parse", "HEAD").strip(), "MIT")

    return made


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    def of(
        entry: Entry,
        build: str = "build",
        folders: tuple[str, ...] = (".",),
        without: tuple[str, ...] = (),
        most: int = 60,
    ) -> Job:
        return Job(entry, folders, without, (), tmp_path / "mirrors", tmp_path / build, 0, most)

    return of


def labels(job: Job) -> list[dict[str, Any]]:
    make(job)
    found: list[dict[str, Any]] = json.loads((job.build / "labels" / "sessions.json").read_text())
    return found


def asked(job: Job, category: str) -> dict[str, list[str]]:
    return {row["query"]: row["targets"] for row in labels(job) if row["category"] == category}


# Repositories.


def test_no_repository_is_one_never_to_train_on_and_each_has_a_licence():
    assert problems(FOLDER) == []


@pytest.mark.skipif(not BENCHMARK.exists(), reason="the benchmark's list is not beside the project")
def test_nothing_of_the_benchmark_beside_the_project_is_trained_on():
    assert problems(FOLDER, [BENCHMARK]) == []


def test_a_list_of_a_benchmark_has_to_be_in_ours(tmp_path):
    (tmp_path / "never.txt").write_text("pallets/flask\nada/secret\n")

    assert problems(FOLDER, [tmp_path / "never.txt"]) == [
        f"ada/secret: in {tmp_path / 'never.txt'}, and not in never.txt"
    ]


@pytest.mark.parametrize("name", ["pallets/flask", "someone/Flask"])
def test_a_repository_of_a_benchmark_and_its_forks_are_refused(tmp_path, name):
    (tmp_path / "never.txt").write_text("pallets/flask\n")
    (tmp_path / "corpus.csv").write_text(f"repository,revision,licence\n{name},{'0' * 40},BSD-3-Clause\n")
    (tmp_path / "labels.csv").write_text(f"repository,folders,without\n{name},src,\n")

    assert problems(tmp_path) == [f"{name}: on the list of repositories never to train on"]


def test_revisions_are_those_of_the_corpus(tmp_path):
    jobs = jobs_of(FOLDER, tmp_path, tmp_path, seed=0, most=60)

    assert {job.entry.repository: (job.folders, job.without) for job in jobs} == read_table(FOLDER / "labels.csv")
    assert {len(job.entry.revision) for job in jobs} == {40}
    assert len({job.name for job in jobs}) == len(jobs)


# Suitable queries.


@pytest.mark.parametrize(
    ("query", "is_worth"),
    [
        ("purge expired sessions", True),
        ("fix the store and update it", False),  # only one content word
        ("исправить purge expired sessions", False),
        ("session store python", True),
        ("the session_store_purge", False),  # the file's name
        ("make session_store_purge.py purge expired entries", False),
        ("x " * 101 + "purge expired sessions", False),
    ],
)
def test_a_question_has_three_words_with_content_in_english_beyond_the_name_of_the_file(query, is_worth):
    assert is_worth_asking(Question(query, "commit", ("src/session_store_purge.py",))) is is_worth


def test_words_with_content_are_those_of_names_too():
    assert content_words("fix getHTTPHeader in the http_parser") == {"header", "http", "parser"}


def test_a_question_is_asked_once_whatever_its_marks():
    once = Question("Purge sessions", "commit", ("a",))

    assert [*distinct([once, Question("purge `sessions`!", "issue", ("b",))])] == [once]


# Commits and pull requests.


def test_a_subject_asks_for_the_files_that_it_changed(mirror, job):
    entry = mirror(("Expire locked sessions early (#7)", {"src/store.py": STORE + "\n# locked sessions expire\n"}))

    assert asked(job(entry), "commit") == {"Expire locked sessions early": ["src/store.py"]}


def test_tests_and_changelogs_are_no_answers_unless_asked_for(mirror, job):
    files = {"src/store.py": STORE + "\n# locked expire\n", "tests/test_store.py": "locked = expire = early = 1\n"}
    entry = mirror(
        ("Expire locked sessions early", {**files, "CHANGELOG.md": "# Changelog\n"}),
        ("Test that locked sessions expire", {"tests/test_store.py": "locked = expire = 2\n"}),
    )

    assert asked(job(entry), "commit") == {
        "Expire locked sessions early": ["src/store.py"],
        "Test that locked sessions expire": ["tests/test_store.py"],
    }
    assert not (job(entry).build / "corpora" / "sessions" / "CHANGELOG.md").exists()


def test_mass_edits_and_files_that_are_gone_are_not_asked_for(mirror, job, tmp_path, git):
    many = {f"src/part{number}.py": "sessions = expire = locked = 1\n" for number in range(6)}
    entry = mirror(
        ("Split locked sessions in parts", many), ("Expire sessions of part", {"src/part1.py": "expire = part = 2\n"})
    )
    repo = tmp_path / "mirrors" / "ada+sessions" / "repo"
    git(repo, "rm", "-q", "src/part1.py")
    git(repo, "commit", "-qm", "Drop the first part of sessions")
    git(repo, "mv", "src/part2.py", "src/renamed.py")
    git(repo, "commit", "-qm", "Call locked sessions otherwise")

    assert asked(job(Entry(entry.repository, git(repo, "rev-parse", "HEAD").strip(), "MIT")), "commit") == {}


def test_what_programs_wrote_is_not_asked(mirror, job):
    entry = mirror(
        ("Expire locked sessions early", {"src/store.py": STORE + "\n# locked sessions expire\n"}),
        author="dependabot[bot] <d@example.com>",
    )

    assert asked(job(entry), "commit") == {}


def test_the_title_of_a_pull_request_asks_for_what_its_merge_brought(mirror, job, tmp_path, git):
    mirror()
    repo = tmp_path / "mirrors" / "ada+sessions" / "repo"
    git(repo, "checkout", "-qb", "topic")
    (repo / "src" / "proxy.js").write_text(PROXY + "// chains of proxies\n")
    git(repo, "commit", "-qam", "wip")
    git(repo, "checkout", "-q", "main")
    git(
        repo,
        "merge",
        "-q",
        "--no-ff",
        "topic",
        "-m",
        "Merge pull request #5 from ada/topic\n\nFollow chains of proxies",
    )
    entry = Entry("ada/sessions", git(repo, "rev-parse", "HEAD").strip(), "MIT")

    assert asked(job(entry), "issue") == {"Follow chains of proxies": ["src/proxy.js"]}
    assert asked(job(entry), "commit") == {}


def test_a_rename_has_its_new_path(mirror, tmp_path, git):
    mirror()
    repo = tmp_path / "mirrors" / "ada+sessions" / "repo"
    git(repo, "mv", "src/proxy.js", "src/a name.js")
    git(repo, "commit", "-qm", "Rename it")

    newest = next(commits_of(repo, "HEAD", merges=False))

    assert (newest.author, newest.subject) == ("Ada <ada@example.com>", "Rename it")
    assert [(change.status, change.path) for change in newest.changes] == [("R100", "src/a name.js")]


# Held-out texts.


def test_a_docstring_is_asked_and_is_not_in_the_checkout(mirror, job):
    entry = mirror()
    made = job(entry)

    assert asked(made, "docstring") == {
        "Keeps the sessions of users that are signed in": ["src/store.py"],
        "Remove all sessions whose time has expired": ["src/store.py"],
        "Forwards the address of a client to the backend": ["src/proxy.js"],
    }
    store = (made.build / "corpora" / "sessions" / "src" / "store.py").read_text()
    assert "signed in" not in store
    assert "in memory alone" not in store
    assert store.startswith(
        '"""Sessions of users."""\n\n\nclass SessionStore:\n\n    def purge(self, now):\n        for key in'
    )
    assert (made.build / "corpora" / "sessions" / "src" / "proxy.js").read_text().startswith("function forwardAddress")


def test_a_heading_is_asked_and_is_not_in_the_checkout(mirror, job):
    made = job(mirror())

    assert asked(made, "heading") == {"Trust networks of a proxy": ["docs/deploy.md"]}
    page = (made.build / "corpora" / "sessions" / "docs" / "deploy.md").read_text()
    assert page == PAGE.replace("## Trust networks of a proxy\n", "")


def test_a_heading_of_restructured_text_goes_with_the_lines_around_it(mirror, job):
    page = f"""\
=======================
Networks behind proxies
=======================

{"Words that say how networks are trusted. " * 5}
"""
    made = job(mirror(("Write it down", {"docs/net.rst": page})))

    assert "Networks behind proxies" in asked(made, "heading")
    assert (made.build / "corpora" / "sessions" / "docs" / "net.rst").read_text().startswith("\nWords that say")


def test_words_that_stand_elsewhere_too_are_not_asked(mirror, job):
    copied = "Somebody wrote: remove *all* sessions\nwhose time has expired.\n"

    questions = asked(job(mirror(("Copy it", {"docs/copy.md": copied}))), "docstring")

    assert "Remove all sessions whose time has expired" not in questions
    assert len(questions) == 2


def test_no_question_is_in_the_texts_whatever_marks_stand_between_its_words(mirror, job):
    made = job(mirror())
    held = [row["query"] for row in labels(made) if row["category"] in {"docstring", "heading"}]
    texts = Checkout.of(made.build / "corpora" / "sessions").normalised_texts().values()

    assert len(held) == 4
    assert not [query for query in held if any(normalised(query) in text for text in texts)]


# Names.


def test_a_name_asks_for_the_one_file_that_defines_it(mirror, job):
    again = "class Ledger:\n    pass\n"
    entry = mirror(("Add two", {"src/a.py": again + "class Purger:\n    pass\n", "src/b.py": again}))

    assert asked(job(entry), "symbol") == {
        "SessionStore": ["src/store.py"],
        "forwardAddress": ["src/proxy.js"],
        "Purger": ["src/a.py"],
    }


def test_a_header_and_its_source_define_a_name_together(mirror, job):
    files = {
        "src/pool.h": "int pool_size(void);\nstruct pool_entry { int a; };\n",
        "src/pool.c": "int pool_size(void) { return 1; }\n",
    }

    assert asked(job(mirror(("Add a pool", files))), "symbol")["pool_size"] in (
        ["src/pool.c"],
        ["src/pool.c", "src/pool.h"],
    )


# End to end.


def test_only_what_is_wanted_is_checked_out(mirror, job):
    entry = mirror(("More", {"lib/a.py": "x = 1\n", "lib/copied/b.py": "x = 1\n"}))
    made = job(entry, folders=("src/store.py", "lib"), without=("lib/copied",))
    make(made)
    corpus = made.build / "corpora" / "sessions"

    assert sorted(str(path.relative_to(corpus)) for path in corpus.rglob("*") if path.is_file()) == [
        "lib/a.py",
        "src/store.py",
    ]
    assert all(map(is_left_out, ["docs/release-notes/2.0.md", "ChangeLog-2.0", "CHANGES.rst"]))
    assert not is_left_out("src/history.py")


def test_there_are_no_more_questions_of_a_category_than_asked_for(mirror, job):
    assert len(asked(job(mirror(), most=1), "docstring")) == 1


def test_the_same_again_is_the_same_byte_for_byte(mirror, job):
    entry = mirror(("Expire locked sessions early", {"src/store.py": STORE + "\n# locked sessions expire\n"}))
    one, other = (job(entry, build) for build in ("one", "other"))
    make(one)
    make(other)

    def files(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert files(one.build) == files(other.build)
    assert "labels/sessions.json" in files(one.build)


def test_questions_are_of_the_newest_commits_and_of_pull_requests_only_for_merges(mirror, job, tmp_path):
    entry = mirror(("Expire locked sessions early", {"src/store.py": STORE + "\n# locked sessions expire\n"}))
    make(job(entry))
    checkout = Checkout.of(tmp_path / "build" / "corpora" / "sessions")
    repo = tmp_path / "mirrors" / "ada+sessions" / "repo"

    assert [question.query for question in questions_of_commits(repo, entry.revision, checkout)] == [
        "Expire locked sessions early"
    ]
    assert [*questions_of_issues(repo, entry.revision, checkout)] == []
