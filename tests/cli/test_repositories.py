"""Git repositories on the command line: commits, URLs, branches, linked worktrees."""

import json
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from tests.cli.conftest import CODE
from tests.sources.remotes import serving


@pytest.fixture
def repository(run, git) -> Path:
    """An indexed git repository `service` with two commits."""
    folder = Path("service")
    folder.mkdir()
    git(folder, "init", "-q")
    for message in ("Add the pump", "Prime the pump before its first use"):
        (folder / "pump.py").write_text(CODE + f"# {message}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", message, "--date=2024-05-06T07:08:09Z")
    assert run("index", "service").code == 0
    return folder


def test_log_shows_the_latest_commits_and_finds_those_that_a_query_means(run, repository, git):
    head = git(repository, "rev-parse", "HEAD").strip()

    latest = run("log", "--source", "service").out.splitlines()
    assert latest[0] == f"{head[:10]} 2024-05-06 Ada  Prime the pump before its first use"
    assert latest[1] == "   +1 -1  pump.py"
    found = json.loads(run("log", "prime", "--top-k", "1", "--path", "*.py", "--author", "ada", "--json").out)
    assert [(row["commit"], row["file_count"]) for row in found] == [(head, 1)]
    assert run("log", "--since", "2099-01-01").out == "No commits found. Try other words or fewer filters.\n"
    assert run("log", "--since", "yesterday").code == 2


def test_show_prints_a_commit_by_how_its_hash_begins(run, repository, git):
    head = git(repository, "rev-parse", "HEAD").strip()

    shown = run("show", head[:8]).out

    assert f"commit {head}" in shown
    assert "Prime the pump before its first use" in shown
    assert "M pump.py +1 -1" in shown


def test_search_finds_commits_by_their_type_alone(run, repository):
    every = json.loads(run("search", "prime the pump", "--json").out)
    commits = json.loads(run("search", "prime the pump", "--type", "commit", "--json").out)

    assert {hit["source_type"] for hit in every} == {"code"}
    assert [hit["chunk_type"] for hit in commits] == ["message", "message"]


def test_status_has_the_figures_of_a_repository(run, repository, git):
    (row,) = json.loads(run("status", "--json").out)

    assert (row["files"], row["commits"]) == (1, 2)
    assert row["repository"]["commits"] == 2
    assert row["repository"]["latest_commit"] == git(repository, "rev-parse", "HEAD").strip()
    assert "commits" in run("status").out


def test_a_url_is_cloned_indexed_searched_followed_and_removed(run, upstream, git):
    url = upstream.as_uri()
    assert "git/upstream: 1 file" in run("index", url).out
    assert "nothing changed" in run("index", url).out
    (upstream / "tank.md").write_text("# Tanks\n\nThe tank stands on the roof and holds a day's water.\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-q", "-m", "Add the tank")

    assert "git/upstream: 2 files" in run("index", "upstream").out

    assert json.loads(run("search", "roof", "--mode", "bm25", "--json").out)[0]["path"] == "tank.md"
    assert "searchable" in run("why", "tank.md").out
    assert run("source", "remove", "upstream").code == 0
    assert not list(Path(".docindex/repositories").glob("**/*.git"))


def test_a_branch_is_a_source_of_its_own(run, upstream):
    url = upstream.as_uri()
    run("index", url)
    assert "added git/upstream@feature/x" in run("source", "add", url, "--branch", "feature/x").out
    listed = json.loads(run("source", "list", "--json").out)
    assert [(row["source"], row["url"], row["branch"]) for row in listed] == [
        ("git/upstream", url, None),
        ("git/upstream@feature/x", url, "feature/x"),
    ]
    assert [row["state"] for row in json.loads(run("status", "--json").out)] == ["ok", "not indexed"]
    page = Layout(Path(".docindex")).checkout("git/upstream") / "pump.py"
    assert "is not cloned yet" not in run("why", str(page)).err

    assert "git/upstream@feature/x: 2 files" in run("index", "upstream@feature/x").out

    only_branch = json.loads(run("search", "valve", "--source", "upstream@feature/x", "--json").out)
    assert only_branch[0]["path"] == "valve.md"
    refused = run("source", "remove", "git/upstream")
    assert (refused.code, "remove git/upstream@feature/x first" in refused.err) == (1, True)
    assert run("source", "remove", "upstream@feature/x").code == 0
    assert [row["source"] for row in json.loads(run("status", "--json").out)] == ["git/upstream"]


def test_a_linked_work_tree_is_indexed_beside_its_repository(run, upstream, git):
    git(upstream, "worktree", "add", "-q", "../upstream-feature", "feature/x")
    run("index", str(upstream))

    assert "git/upstream@feature/x: 2 files" in run("index", "elsewhere/upstream-feature").out


def test_a_repository_that_cannot_be_reached_is_one_line_and_keeps_its_index(run, upstream):
    run("index", upstream.as_uri())
    upstream.rename(upstream.with_name("away"))

    output = run("index", "upstream")

    assert output.code == 1
    assert len(output.err.splitlines()[1:]) == 1
    assert "cannot fetch file://" in output.err
    assert "pump.py" in run("search", "prime_pump").out


def test_credentials_are_in_no_file_and_no_message_of_a_run(run, upstream, tmp_path, monkeypatch):
    askpass = tmp_path / "askpass"
    askpass.write_text('#!/bin/sh\ncase "$1" in User*) echo ada;; *) echo s3cret;; esac\n')
    askpass.chmod(0o755)
    monkeypatch.setenv("GIT_ASKPASS", str(askpass))
    with serving(upstream.parent, password="s3cret") as server:
        outputs = [run("index", f"{server.url}/upstream"), run("index", f"{server.url}/nowhere")]
        monkeypatch.delenv("GIT_ASKPASS")
        outputs += [run("index", "upstream"), run("index", server.url.replace("//", "//ada:s3cret@") + "/x")]

    assert [output.code for output in outputs] == [0, 1, 1, 1]
    assert "set up a git credential helper or an ssh key" in outputs[2].err
    assert "s3cret" not in repr(outputs)
    files = [path for path in Path().rglob("*") if path.is_file() and path != Path("askpass")]
    assert not [path for path in files if b"s3cret" in path.read_bytes()]


def test_a_search_looks_at_a_further_branch_only_when_it_is_asked_to(run, upstream):
    url = upstream.as_uri()
    run("index", url)
    run("source", "add", url, "--branch", "feature/x")
    run("index")

    def sources(*arguments: str) -> set[str]:
        found = run("search", "valve pump", "--mode", "bm25", "--json", *arguments)
        return {hit["source"] for hit in json.loads(found.out)}

    assert sources() == {"git/upstream"}
    assert sources("--source", "upstream@feature/x") == {"git/upstream@feature/x"}
    assert sources("--all") == {"git/upstream", "git/upstream@feature/x"}
    assert {row["source"] for row in json.loads(run("show", "pump.py", "--json").out)} == {"git/upstream"}
    assert "valve.md" in run("show", "valve.md").out


def test_a_commit_of_several_branches_is_reported_once(run, upstream):
    url = upstream.as_uri()
    run("index", url)
    run("source", "add", url, "--branch", "feature/x")
    run("index")

    for query in ((), ("pump",)):
        commits = [row["commit"] for row in json.loads(run("log", *query, "--all", "--json").out)]
        assert commits
        assert len(commits) == len(set(commits))
