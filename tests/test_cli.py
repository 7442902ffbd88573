"""The command line, run as a user would: arguments in, output and an exit code out."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from docindex_dagster import cli, runs
from docindex_dagster.locks import exclusive
from docindex_dagster.settings import load_settings
from tests.sources.remotes import serving

GUIDE = "# Guide\n\n## Pumps\n\nThe pump moves water from the well to the tank. Prime it before the first use.\n"
CODE = 'def prime_pump(litres: int) -> None:\n    """Fill the pump with water."""\n    print(litres)\n'


@dataclass(frozen=True)
class Output:
    code: int
    out: str
    err: str


Run = Callable[..., Output]


@pytest.fixture
def run(tmp_path, monkeypatch, capfd) -> Run:
    """Run `docindex ARGUMENTS` in a folder that holds a library `manual`."""
    monkeypatch.chdir(tmp_path)
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    manual = tmp_path / "manual"
    manual.mkdir()
    (manual / "guide.md").write_text(GUIDE)
    (manual / "pump.py").write_text(CODE)

    def invoke(*arguments: str) -> Output:
        monkeypatch.setattr(sys, "argv", ["docindex", *arguments])
        capfd.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capfd.readouterr()
        return Output(code, captured.out, captured.err)

    return invoke


def test_a_folder_is_indexed_and_searched_with_two_commands(run):
    indexed = run("index", "manual")
    assert indexed.code == 0
    assert "library/manual: 2 files" in indexed.out

    found = json.loads(run("search", "prime", "pump", "--json").out)

    assert {hit["path"] for hit in found} == {"guide.md", "pump.py"}
    assert {signal["retriever"] for signal in found[0]["signals"]} == {"bm25", "vector"}


def test_results_are_readable_without_a_terminal(run):
    run("index", "manual")

    shown = run("search", "prime_pump", "--mode", "bm25", "--language", "python").out

    assert "pump.py:1-3" in shown
    assert "bm25 #1" in shown


def test_indexing_again_says_that_nothing_changed(run):
    run("index", "manual")

    assert "nothing changed" in run("index").out


def test_show_prints_the_chunk_at_a_line_and_why_explains_a_file(run):
    run("index", "manual")

    assert "Fill the pump" in run("show", "pump.py:2").out
    assert "can be found now" in run("why", "manual/pump.py").out
    Path("manual/photo.png").write_bytes(b"\x89PNG\0\0")
    answer = run("why", "manual/photo.png").out
    assert "binary" in answer
    assert "nothing of it can be found" in answer


def test_sources_are_added_listed_chosen_and_removed_with_comments_kept(run):
    Path("docindex.toml").write_text("# ours\n")
    assert run("source", "add", "manual", "--name", "pumps").code == 0
    run("index")
    assert run("source", "use", "pumps").code == 0

    listed = json.loads(run("source", "list", "--json").out)
    assert [(row["source"], row["default"]) for row in listed] == [("library/pumps", True)]
    assert json.loads(run("status", "--json").out)[0]["state"] == "indexed"

    assert run("source", "remove", "pumps").code == 0
    assert json.loads(run("status", "--json").out) == []
    assert "# ours" in Path("docindex.toml").read_text()
    assert run("search", "pump").out == "nothing found\n"


def test_each_child_of_a_folder_becomes_a_library(run):
    for name in ("one", "two"):
        (Path("raw/docs") / name).mkdir(parents=True)
        (Path("raw/docs") / name / "page.md").write_text(f"# {name}\n\nWords about {name} that stand here.\n")

    assert run("source", "add", "raw/docs/{library}").code == 0
    assert run("index").code == 0

    assert [row["source"] for row in json.loads(run("status", "--json").out)] == ["library/one", "library/two"]
    only_two = json.loads(run("search", "words about", "--source", "two", "--json").out)
    assert {hit["source"] for hit in only_two} == {"library/two"}


@pytest.mark.parametrize(
    "query", ["foo::bar(", '"unbalanced', "x:y AND", "", "a" * 10_000, "🙂", "--", "*", "path:/etc AND -x"]
)
def test_any_query_gives_an_answer_or_a_one_line_error(run, query):
    run("index", "manual")

    output = run("search", "--", query)

    assert output.code in {0, 1}
    assert "Traceback" not in output.err
    assert len(output.err.splitlines()) <= 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", "pump"), 1, "there is no docindex.toml here or above"),
        (("index",), 1, "there are no sources yet"),
        (("index", "nowhere"), 1, "there is no source 'nowhere'"),
        (("index", "no/where"), 1, "there is nothing at"),
        (("index", "manual/guide.md"), 1, "lies in no source: index its folder with"),
        (("index", "ftp://example.com/x.git"), 1, "the URL has the scheme ftp; allowed are https://"),
        (("index", "https://ada:s3cret@example.com/x"), 1, "use git's credential helper instead"),
        (("index", "ext::sh -c x"), 1, "is no URL of a repository"),
        (("source", "add", "https://example.com/x", "--kind", "library"), 1, "url needs kind = 'git'"),
        (("source", "add", "manual", "--kind", "git"), 1, "not the root of a git work tree"),
        (("source", "add", "manual", "--kind", "svn"), 2, "svn"),
        (("source", "add", "~nobody-of-this-name/x"), 1, "home folder"),
        (("index", "git/typo"), 1, "there is no source 'git/typo'"),
        (("ui", "--port", "70000"), 2, "--port"),
        (("source", "add", "nowhere"), 1, "there is nothing at"),
        (("source", "remove", "raw/{library}"), 1, "docindex.toml declares no path = 'raw/{library}'"),
        (("index",), 1, "begin with `docindex index PATH`"),
        (("source", "use", "x"), 1, "begin with `docindex index PATH`"),
        (("why", "/etc/hostname"), 1, "lies in no source"),
        (("search", "pump", "--mode", "psychic"), 2, "psychic"),
        (("search", "pump", "--top-k", "0"), 2, "--top-k"),
    ],
)
def test_mistakes_are_explained_in_a_line_or_two(run, arguments, code, message):
    output = run(*arguments)

    assert output.code == code
    assert message in " ".join(output.err.split())
    assert "Traceback" not in output.err


def test_a_wrong_setting_names_its_file_and_key(run):
    Path("docindex.toml").write_text("[search]\ntop_k = 'many'\n")

    output = run("status")

    assert output.code == 1
    assert "docindex.toml: search.top_k" in output.err


def test_a_missing_folder_fails_its_own_source_only_and_keeps_its_index(run):
    Path("other").mkdir()
    Path("other/page.md").write_text("# Other\n\nQuite another page about valves.\n")
    run("index", "manual")
    run("source", "add", "other")
    Path("manual").rename("moved")

    output = run("index")

    assert output.code == 1
    assert "library/manual" in output.err
    assert "library/other: 1 file," in output.out
    assert "guide.md" in run("search", "pump").out
    states = {row["source"]: row["state"] for row in json.loads(run("status", "--json").out)}
    assert states["library/manual"] == "folder missing, index kept"


def test_a_run_that_cannot_even_begin_fails_in_one_line(run):
    run("index", "manual")
    locks = Path(".docindex/locks")
    for file in locks.iterdir():
        file.unlink()
    locks.rmdir()
    locks.write_text("in the way")

    output = run("index")

    assert output.code == 1
    assert len(output.err.splitlines()) == 1


def test_a_missing_folder_is_a_line_not_a_stack_trace(run):
    run("index", "manual")
    Path("manual").rename("moved")

    output = run("index")

    assert output.code == 1
    assert len(output.err.splitlines()) == 1
    assert "manual" in output.err


def test_unknown_filter_values_are_explained(run):
    run("index", "manual")

    assert "languages: markdown, python" in run("search", "pump", "--language", "klingon").err
    assert run("search", "pump", "--type", "poem").code == 2
    assert "pump.py" in run("search", "pump", "--language", "Python").out


def test_what_a_file_holds_cannot_steer_the_terminal(run):
    Path("manual/evil.md").write_text("# Pump\n\nred pump \x1b[31m and a title \x1b]0;owned\x07 for the terminal\n")
    run("index", "manual")

    assert "\x1b" not in run("search", "red pump title", "--mode", "bm25").out
    assert "\x1b" not in run("show", "evil.md").out


@pytest.mark.parametrize("place", ["pump.py:2", "manual/pump.py:2", "./manual/../manual/pump.py:2", "pump.py:1-3"])
def test_show_takes_a_place_as_it_lies_on_disk_or_as_a_search_prints_it(run, place):
    run("index", "manual")

    assert "Fill the pump" in run("show", place).out


def test_why_takes_a_path_as_a_search_prints_it_and_normalises_others(run):
    run("index", "manual")

    for path in ("pump.py", "manual/pump.py", "manual/../manual/pump.py"):
        assert "can be found now" in run("why", path).out
    assert "name a file in it" in run("why", "manual").err


def test_a_folder_inside_a_source_stands_for_that_source(run):
    run("index", "manual")
    Path("manual/deep").mkdir()

    assert "library/manual:" in run("index", "manual/deep").out
    assert len(json.loads(run("source", "list", "--json").out)) == 1


def test_folders_of_a_folder_are_indexed_by_one_command(run):
    for name in ("one", "two"):
        (Path("raw") / name).mkdir(parents=True)
        (Path("raw") / name / "page.md").write_text(f"# {name}\n\nWords about {name} that stand here.\n")

    assert run("index", "raw/{library}").code == 0
    assert len(json.loads(run("status", "--json").out)) == 2


def test_a_source_that_is_no_longer_declared_can_still_be_searched_and_removed_by_its_name(run):
    run("index", "manual")
    Path("docindex.toml").write_text("")

    assert "pump.py" in run("search", "pump", "--source", "manual").out
    assert run("source", "remove", "manual").code == 0
    assert json.loads(run("status", "--json").out) == []


@pytest.mark.parametrize("text", ["not: [yaml", "no_such_key: 1\n"])
def test_a_wrong_dagster_file_is_a_line(run, text):
    Path("dagster.yaml").write_text(text)

    output = run("index", "manual")

    assert output.code == 1
    assert "dagster.yaml" in output.err.splitlines()[-1]
    assert "Traceback" not in output.err


def test_damage_is_a_line_for_a_search_and_a_repair_for_the_doctor(run):
    run("index", "manual")
    for file in Path(".docindex/stores/tantivy").rglob("*.term"):
        file.write_bytes(file.read_bytes()[:40])

    assert len(run("search", "pump").err.splitlines()) == 1
    assert "doctor --repair" in run("search", "pump").err
    repaired = json.loads(run("doctor", "--repair", "--json").out)
    assert repaired["findings"]
    assert repaired["left"] == []
    assert "pump.py" in run("search", "pump").out


def test_a_rollback_brings_the_generation_before_back_and_a_second_one_undoes_it(run):
    run("index", "manual")
    assert "no generation before" in run("rollback").err
    Path("manual/guide.md").write_text("# Guide\n\nThe windmill lifts the water now, all day and all night.\n")
    run("index")

    def finds_windmill() -> bool:
        return "windmill" in run("search", "windmill", "--mode", "bm25").out

    assert finds_windmill()
    assert run("rollback").code == 0
    assert not finds_windmill()
    assert run("rollback").code == 0
    assert finds_windmill()
    run("rollback")
    assert run("index").code == 0
    assert finds_windmill()
    assert run("doctor").code == 0


def test_the_doctor_repairs_a_damaged_store(run):
    run("index", "manual")
    assert run("doctor").out == "the index is whole: all stores agree\n"
    (graph,) = Path(".docindex/stores/graph").glob("*.triples.parquet")
    graph.write_bytes(b"not parquet")

    broken = run("doctor")
    assert broken.code == 1
    assert "library/manual: graph" in broken.out
    assert run("doctor", "--repair").code == 0
    assert run("doctor").code == 0


def test_the_index_keeps_itself_out_of_git(run, git, tmp_path):
    git(tmp_path, "init", "-q")
    run("index", "manual")

    assert ".docindex" not in git(tmp_path, "status", "--porcelain")


def test_a_run_says_whom_it_waits_for_and_stops_at_once_when_interrupted(run, tmp_path):
    run("index", "manual")
    command = [sys.executable, "-X", "faulthandler", "-m", "docindex_dagster.cli", "index"]
    log = tmp_path / "errors.log"
    with exclusive(Path(".docindex/locks/library%2Fmanual.lock"), owner="run 42", on_wait=pytest.fail):
        with log.open("w") as errors:
            process = subprocess.Popen(command, stderr=errors)
        while not log.read_text():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130

    assert log.read_text().splitlines() == [
        "library/manual: waiting for another run of this source (run 42)",
        "error: library/manual: interrupted; what was searchable still is, and the next run goes on from here",
    ]


def _interrupted(process: subprocess.Popen[bytes]) -> int:
    """Press Ctrl-C until a process ends, since Python drops what is raised while a finalizer runs; its exit code."""
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=20)
    process.send_signal(signal.SIGABRT)  # the fault handler says where it hangs
    return process.wait()


def test_a_run_that_was_killed_is_reported_failed_and_the_next_one_starts_at_once(run, tmp_path):
    run("index", "manual")
    command = [sys.executable, "-m", "docindex_dagster.cli", "index"]
    with exclusive(Path(".docindex/locks/library%2Fmanual.lock"), owner="run 42", on_wait=pytest.fail):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert "waiting" in process.stderr.readline()
        process.kill()
        process.wait()
        process.stderr.close()

    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    assert run("index").code == 0

    with runs.instance(load_settings(tmp_path)) as instance:
        statuses = [found.status.value for found in instance.get_runs()]
    assert sorted(statuses) == ["FAILURE", "SUCCESS", "SUCCESS"]
    assert "new.md" in run("search", "marmots").out


@pytest.fixture
def repository(run, git) -> Path:
    """A git work tree `service` with two commits, indexed."""
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
    assert run("log", "--since", "2099-01-01").out == "no commits found\n"
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


@pytest.fixture
def upstream(tmp_path, git) -> Path:
    """A repository elsewhere, whose branch `feature/x` has a file more."""
    root: Path = tmp_path / "elsewhere" / "upstream"
    root.mkdir(parents=True)
    git(root, "init", "-q")
    (root / "pump.py").write_text(CODE)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Add the pump")
    git(root, "switch", "-q", "-c", "feature/x")
    (root / "valve.md").write_text("# Valves\n\nThe valve closes when the tank is full, and opens again by itself.\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Add the valve")
    git(root, "switch", "-q", "main")
    return root


def test_a_url_is_cloned_indexed_searched_followed_and_removed(run, upstream, git):
    url = upstream.as_uri()
    assert "git/upstream: 1 file" in run("index", url).out
    assert "nothing changed" in run("index", url).out
    (upstream / "tank.md").write_text("# Tanks\n\nThe tank stands on the roof and holds a day's water.\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-q", "-m", "Add the tank")

    assert "git/upstream: 2 files" in run("index", "upstream").out

    assert json.loads(run("search", "roof", "--mode", "bm25", "--json").out)[0]["path"] == "tank.md"
    assert "can be found now" in run("why", "tank.md").out
    assert run("source", "remove", "upstream").code == 0
    assert not list(Path(".docindex/repositories").iterdir())


def test_a_branch_is_a_source_of_its_own(run, upstream):
    url = upstream.as_uri()
    run("index", url)
    assert "added git/upstream@feature/x" in run("source", "add", url, "--branch", "feature/x").out
    listed = json.loads(run("source", "list", "--json").out)
    assert [(row["source"], row["url"], row["branch"]) for row in listed] == [
        ("git/upstream", url, None),
        ("git/upstream@feature/x", url, "feature/x"),
    ]
    assert [row["state"] for row in json.loads(run("status", "--json").out)] == ["indexed", "not indexed"]
    assert "is not cloned yet" not in run("why", ".docindex/checkouts/git%2Fupstream/pump.py").err

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
    assert len(output.err.splitlines()) == 1
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
    assert "give git a credential helper or an ssh key" in outputs[2].err
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


def test_a_single_file_is_indexed_alone(run):
    run("index", "manual")
    Path("manual/guide.md").write_text("# Guide\n\nThe windmill lifts the water now.\n")
    Path("manual/pump.py").write_text("def lower_bucket() -> None:\n    print('down the well')\n")

    assert run("index", "manual/guide.md").code == 0

    assert "guide.md" in run("search", "windmill", "--mode", "bm25").out
    assert "nothing found" in run("search", "lower_bucket", "--mode", "bm25").out
    assert run("index").code == 0
    assert "pump.py" in run("search", "lower_bucket", "--mode", "bm25").out


def test_a_single_file_that_is_not_to_be_indexed_says_why(run):
    run("index", "manual")
    Path("manual/server.log").write_text("started\n")

    refused = run("index", "manual/server.log")

    assert refused.code == 1
    assert "always-skipped" in refused.err


def test_pruning_gives_back_the_rows_of_a_source_that_is_gone(run):
    run("index", "manual")
    table = Path(".docindex/tables/chunks/library%2Fmanual.parquet")
    stranger = table.with_name("library%2Fgone.parquet")
    stranger.write_bytes(table.read_bytes())

    assert "library%2Fgone.parquet" in run("prune", "--dry-run").out
    assert stranger.exists()
    assert "freed " in run("prune").out
    assert not stranger.exists()
    assert run("doctor").code == 0
    assert "guide.md" in run("search", "prime the pump").out


def test_a_file_that_is_gone_leaves_the_index_by_its_name(run):
    run("index", "manual")
    Path("manual/pump.py").unlink()

    assert run("index", "manual/pump.py").code == 0

    assert "nothing found" in run("search", "litres", "--mode", "bm25", "--path", "pump.py").out


def test_a_place_is_declared_once_and_a_branch_has_no_settings_of_its_own(run, upstream):
    url = upstream.as_uri()
    run("index", url)

    assert "git/upstream is declared already" in run("source", "add", url).err
    assert "--exclude cannot be given" in run("source", "add", url, "--branch", "feature/x", "--exclude", "*.md").err
    assert run("source", "add", url, "--branch", "feature/x").code == 0
    assert "feature/x of this repository is declared already" in run("source", "add", url, "--branch", "feature/x").err


def test_a_commit_of_several_branches_is_told_once(run, upstream):
    url = upstream.as_uri()
    run("index", url)
    run("source", "add", url, "--branch", "feature/x")
    run("index")

    for query in ((), ("pump",)):
        commits = [row["commit"] for row in json.loads(run("log", *query, "--all", "--json").out)]
        assert commits
        assert len(commits) == len(set(commits))


def test_what_a_rollback_took_away_is_counted_when_it_comes_back(run):
    run("index", "manual")
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    run("index")
    run("rollback")

    (summary,) = json.loads(run("index", "--json").out)

    assert summary["added"] == 1


def test_status_tells_which_run_failed_why_and_when_a_source_was_checked(run):
    run("index", "manual")
    (before,) = json.loads(run("status", "--json").out)
    Path("manual").rename("moved")
    reason = run("index").err.removeprefix("error: library/manual: ").strip()

    (row,) = json.loads(run("status", "--json").out)
    shown = run("status")

    assert (before["last_run"], before["failure"]) == ("succeeded", None)
    assert (row["last_run"], row["failure"]) == ("failed", reason)
    assert row["checked_at"] == before["checked_at"] >= row["changed_at"]
    assert shown.code == 0
    assert f"library/manual: the last run failed: {reason}" in shown.out.splitlines()


def test_status_tells_what_has_changed_since_it_was_indexed(run):
    run("index", "manual")
    assert json.loads(run("status", "--json", "--check").out)[0]["is_current"] is True
    Path("manual/guide.md").write_text("# Guide\n\nA new text of another size.\n")

    assert json.loads(run("status", "--json", "--check").out)[0]["is_current"] is False
    assert "indexed, changed since" in run("status").out


def test_status_says_what_it_had_no_time_to_look_at(run, monkeypatch):
    run("index", "manual")
    monkeypatch.setattr("docindex_dagster.cli.status._BUDGET_S", -1)

    assert json.loads(run("status", "--json").out)[0]["is_current"] is None
    assert "1 source not looked at for changes" in run("status").out
    assert "not looked at" not in run("status", "--check").out


def test_status_creates_nothing_where_nothing_was_run(run, tmp_path):
    run("source", "add", "manual")
    before = sorted(tmp_path.rglob("*"))

    (row,) = json.loads(run("status", "--json").out)

    assert (row["state"], row["last_run"], row["checked_at"]) == ("not indexed", None, None)
    assert sorted(tmp_path.rglob("*")) == before


def test_status_shows_the_index_even_if_the_record_of_runs_cannot_be_opened(run):
    run("index", "manual")
    Path("dagster.yaml").write_text("storage: [")

    shown = run("status")

    assert (shown.code, "library/manual  indexed" in shown.out) == (0, True)
    assert "how runs ended is not known" in shown.err


def damage_index() -> None:
    """Empty a file of the published index; hard links of the generation before keep theirs."""
    generation = json.loads(Path(".docindex/stores/CURRENT").read_text())
    for file in Path(".docindex/stores/tantivy", generation["tantivy"]).glob("*.fieldnorm"):
        file.unlink()
        file.touch()


def test_a_run_without_changes_says_that_the_stores_are_damaged(run):
    run("index", "manual")
    damage_index()

    output = run("index")

    assert output.code == 1
    assert output.err.count("run `docindex doctor --repair`") == 1


def test_a_rollback_to_a_damaged_generation_is_refused_in_a_line(run):
    run("index", "manual")
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    run("index")
    run("rollback")
    damage_index()
    assert "nothing found" not in run("rollback").out

    refused = run("rollback")

    assert refused.code == 1
    assert len(refused.err.splitlines()) == 1
    assert "cannot be gone back to" in refused.err
    assert "marmots" in run("search", "marmots", "--mode", "bm25").out


def test_a_repair_needs_no_source_that_is_gone_and_says_each_thing_once(run):
    Path("other").mkdir()
    Path("other/page.md").write_text("# Other\n\nQuite another page about valves.\n")
    run("index", "manual", "other")
    Path("manual").rename("moved")
    damage_index()

    repaired = run("doctor", "--repair")

    assert repaired.code == 0
    assert "docindex doctor --repair" not in repaired.out + repaired.err
    assert "warning: library/manual: " in repaired.err
    assert repaired.out.endswith("the index is whole: all stores agree\n")
    assert "pump.py" in run("search", "prime_pump", "--mode", "bm25").out
    assert "page.md" in run("search", "valves", "--mode", "bm25").out


def test_a_url_that_never_could_be_reached_is_not_left_declared(run):
    run("index", "manual")
    declared = Path("docindex.toml").read_text()

    output = run("index", "file:///nonexistent/nosuch")

    assert output.code == 1
    assert "took git/nosuch out of docindex.toml again" in output.err
    assert Path("docindex.toml").read_text() == declared
    assert run("index").code == 0
    assert [row["source"] for row in json.loads(run("status", "--json").out)] == ["library/manual"]


def test_a_url_that_a_user_declared_stays_declared_though_it_cannot_be_reached(run):
    run("source", "add", "file:///nonexistent/nosuch")

    assert run("index", "file:///nonexistent/nosuch").code == 1

    assert "git/nosuch" in run("source", "list").out


def test_a_declared_folder_of_folders_is_indexed_and_removed_by_its_path(run):
    for name in ("one", "two"):
        (Path("raw") / name).mkdir(parents=True)
        (Path("raw") / name / "page.md").write_text(f"# {name}\n\nWords about {name} that stand here.\n")
    run("source", "add", "raw/{library}")

    for place in ("raw", "raw/{library}"):
        indexed = json.loads(run("index", place, "--json").out)
        assert [summary["source"] for summary in indexed] == ["library/one", "library/two"]
    assert "is declared already" in run("source", "add", "raw/{library}").err
    assert "`docindex source remove 'raw/{library}'`" in run("source", "remove", "one").err

    assert run("source", "remove", "raw/{library}").out == "removed raw/{library}: library/one, library/two\n"

    assert json.loads(run("status", "--json").out) == []
    assert json.loads(run("source", "list", "--json").out) == []


def test_why_takes_a_path_below_the_one_source_that_has_it(run):
    Path("other").mkdir()
    Path("other/guide.md").write_text("# Other\n\nQuite another page about valves.\n")
    Path("guide.md").write_text("in no source\n")
    run("index", "manual", "other")
    Path("manual/pump.py").unlink()

    assert "can be found now" in run("why", "pump.py").out
    several = run("why", "guide.md")
    assert several.code == 1
    assert "guide.md is in library/manual and in library/other: say " in several.err
    assert "there is no build/output.js here or below a source" in run("why", "build/output.js").err


def test_show_names_the_last_line_that_there_is(run):
    run("index", "manual")

    refused = run("show", "pump.py:9999999")

    assert refused.code == 1
    assert "no indexed chunk of pump.py is at line 9999999; the last line that is indexed is 3" in refused.err


def test_one_is_singular_where_stages_end(run):
    Path("manual/pump.py").unlink()

    assert "chunks: 1 file\n" in run("index", "manual").err
