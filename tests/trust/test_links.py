"""Symlinks and files of a checkout in places where the user names a file to write or a folder to search."""

import os
import shutil
import threading
from types import SimpleNamespace
from typing import cast

import pyarrow.parquet as pq
import pytest
from dagster import DagsterInstance

from docindex_dagster.cli import dagster_runs
from docindex_dagster.cli.serve import _pinned
from docindex_dagster.core import events, git_folders
from docindex_dagster.core.errors import LinkError, SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.evaluation.collected_questions import collect
from docindex_dagster.evaluation.questions import Target
from docindex_dagster.memory.memory import Memory
from docindex_dagster.runner import runs
from docindex_dagster.runner.watching.folders import folders_of
from docindex_dagster.serving.http.served_project import ServedProject
from docindex_dagster.serving.jobs.model import JobRequest
from docindex_dagster.serving.jobs.queue import Jobs
from docindex_dagster.serving.web import ask
from docindex_dagster.sources import registry
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.discovery import list_entries
from docindex_dagster.sources.explanation import why
from tests.trust.conftest import PRIVATE, RC

SIZE_OF_NO_OTHER = 5432
SENT = ask.SentFeedback(verdict="good", question="How is it primed?", answer="With water.")


@pytest.mark.parametrize("link", ["graph.mmd", "out/graph.mmd"])
@pytest.mark.parametrize("place", ["outside", "hooks"])
def test_output_is_not_written_through_a_link_of_the_checkout(own, git, link, place):
    git(own.root, "init")
    elsewhere = own.user if place == "outside" else own.root / ".git/hooks"
    target = elsewhere / "graph.mmd"
    target.write_text(RC)
    linked = own.root / link.partition("/")[0]
    linked.symlink_to(os.path.relpath(elsewhere if "/" in link else target, own.root))
    assert own.run("memory", "ingest", "-s", "1", "Pumps are primed.").returncode == 0

    for words, cwd in (
        (("graph", "export", "-f", "mermaid", link), own.root),
        (("graph", "export", "-f", "graphml", "-o", f"../{own.root.name}/{link}"), own.root),
        (("graph", "export", "-f", "scip", link), own.root),
        (("support", "--quick", "-o", link), own.root),
        (("--project", str(own.root), "support", "--quick", "-o", str(own.root / link)), own.user),
        (("memory", "export", "-o", link), own.root),
    ):
        done = own.run(*words, cwd=cwd)
        assert done.returncode == 1, done.stderr
        assert f"a symlink in {own.root} redirects it" in " ".join(done.stderr.split())
    assert target.read_text() == RC


def test_output_is_written_where_it_is_named_and_to_devices(own):
    (own.root / "out").mkdir()
    (own.user / "link").symlink_to(own.root)

    for place in ("../user/link/out/graph.mmd", "/dev/stdout", str(own.user / "graph.mmd")):
        done = own.run("graph", "export", "-f", "mermaid", place)
        assert done.returncode == 0, done.stderr
    assert "prime" in done.stdout or "prime" in (own.user / "graph.mmd").read_text()
    assert (own.root / "out/graph.mmd").is_file()


@pytest.mark.parametrize("words", [("index",), ("source", "add")])
def test_a_project_elsewhere_declares_no_folder_that_a_link_in_a_checkout_leads_to(own, git, words):
    git(own.root, "init")
    (own.root / "docs").symlink_to(own.private.parent)
    (project := own.user / "project").mkdir()

    for place in (own.root / "docs", own.root / "docs/{library}"):
        done = own.run(*words, str(place), cwd=project)

        assert done.returncode == 1
        assert f"redirects it to {own.private.parent}; pass that path" in " ".join(done.stderr.split())
    assert not (project / "docindex.toml").exists()


@pytest.mark.parametrize("link", ["docs", "README.md"])
def test_a_search_follows_no_link_out_of_the_checkout(own, git, link):
    (own.root / "docindex.toml").unlink()
    git(own.root, "init")
    (own.root / link).symlink_to(own.private if "." in link else own.private.parent)

    for words, cwd in (
        (("search", "combination", f"./{link}"), own.root),
        (("ask", "which combination?", f"./{link}"), own.root),
        (("search", "combination", str(own.root / link)), own.user),
    ):
        done = own.run(*words, cwd=cwd)
        assert done.returncode == 1
        assert done.stdout == ""
        assert f"redirects it to {(own.root / link).resolve()}; pass that path" in " ".join(done.stderr.split())


def test_a_search_of_a_folder_named_like_a_placeholder_reads_no_other_folder(own, git):
    """Next to the folder are a preferred work tree and a symlink to a common parent folder."""
    git(own.root, "init", "--initial-branch", "main", "tree")
    git(own.root / "tree", "commit", "--allow-empty", "--message", "one")
    git(own.root / "tree", "worktree", "add", "../{library}")
    (own.root / "{library}/page.md").write_text("# Valves\n")
    (own.root / "link").symlink_to(own.user.parent)
    (own.root / "docindex.toml").unlink()

    done = own.run("search", "valves", "./{library}")

    own.check()
    assert done.returncode == 1
    assert "is a placeholder in source paths" in " ".join(done.stderr.split())


def test_a_folder_that_has_become_a_link_is_not_read_when_an_index_of_several_is_made_anew(own, git):
    git(own.root, "init")
    for folder in (docs := own.root / "docs", mine := own.user / "mine"):
        folder.mkdir()
        (folder / "page.md").write_text("# Valves\n")
    assert own.run("search", "valves", str(docs), str(mine), cwd=own.user).returncode == 0
    shutil.rmtree(docs)
    docs.symlink_to(own.private.parent)
    [stores] = own.user.glob("cache/docindex/folders/*/.docindex/stores")
    shutil.rmtree(stores / "tantivy")

    done = own.run("search", "valves", str(mine), cwd=own.user)

    assert "page.md" in done.stdout
    own.check()


@pytest.mark.parametrize("stage", ["discovered_files", "chunks", "embeddings"])
@pytest.mark.parametrize("place", ["docs", "link", "{library}"])
def test_a_source_that_becomes_a_link_during_a_run_is_not_read_through_it(own, stage, place):
    docs = own.root / "docs"
    docs.mkdir()
    for number in range(30):
        (docs / f"part-{number}.md").write_text(f"# Part {number}\n\nHow pump {number} is primed.\n")
    (docs / own.private.name).write_text("# Nothing yet\n")
    (own.root / "link").symlink_to("docs")
    (own.root / "docindex.toml").write_text(f'[[source]]\nkind = "library"\npath = "{place}"\n')

    def pull(event: events.Event) -> None:
        if isinstance(event, events.Progress) and event.stage == stage and not docs.is_symlink():
            shutil.rmtree(docs)
            docs.symlink_to(own.private.parent)

    with events.listening(pull):
        done = own.run("index")

    assert docs.is_symlink()
    assert "is not the folder that docindex was configured to read" in " ".join(done.stderr.split())
    assert done.returncode == 1
    texts = [pq.read_table(table)["text"].to_pylist() for table in own.home.rglob("chunks/*.parquet")]
    assert PRIVATE not in str(texts)


@pytest.mark.parametrize("stage", ["discovered_files", "chunks", "embeddings"])
@pytest.mark.parametrize("swapped", ["docs", "docs/inner"])
@pytest.mark.parametrize("words", [("search", "combination of the safe"), ("index",)])
def test_a_folder_that_its_user_names_and_a_pull_makes_a_link_is_not_read_through_it(own, git, stage, swapped, words):
    (own.root / "docindex.toml").unlink()
    git(own.root, "init")
    docs = own.root / "docs/inner"
    docs.mkdir(parents=True)
    for number in range(30):
        (docs / f"part-{number}.md").write_text(f"# Part {number}\n\nHow pump {number} is primed.\n")
    (docs / own.private.name).write_text("# Nothing yet\n")
    (elsewhere := own.user / "elsewhere").mkdir()
    (elsewhere / "inner").symlink_to(own.private.parent)
    (project := own.user / "project").mkdir()

    def pull(event: events.Event) -> None:
        folder = own.root / swapped
        if isinstance(event, events.Progress) and event.stage == stage and not folder.is_symlink():
            shutil.rmtree(folder)
            folder.symlink_to(elsewhere if swapped == "docs" else own.private.parent)

    with events.listening(pull):
        done = own.run(*words, str(docs), "--yes", cwd=project)

    assert (own.root / swapped).is_symlink()
    assert PRIVATE not in done.stdout
    assert "is not the folder that docindex was configured to read" in " ".join(done.stderr.split())
    texts = [pq.read_table(table)["text"].to_pylist() for table in own.user.rglob("chunks/*.parquet")]
    assert PRIVATE not in str(texts)


def test_no_message_is_written_where_a_pull_has_made_a_folder_around_the_home_a_link(own, monkeypatch):
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, own.environment[variable])
    monkeypatch.delenv("DOCINDEX_TRUST")
    monkeypatch.setenv("DOCINDEX_HOME", str(own.root / "data/index"))
    memory = Memory(load_settings(own.root), "memory/default")
    memory.ingest("The pump is primed.", session="s")
    (elsewhere := own.user / "elsewhere").mkdir()

    (own.root / "data").rename(own.root / "before")
    (own.root / "data").symlink_to(elsewhere)

    with pytest.raises(LinkError, match="is a symbolic link to"):
        memory.ingest("The valve is open.", session="s")
    assert not any(elsewhere.iterdir())


@pytest.mark.parametrize("home", [".docindex", "data/index"])
def test_no_running_server_writes_where_a_pull_has_made_a_folder_around_the_home_a_link(own, monkeypatch, home):
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, own.environment[variable])
    monkeypatch.delenv("DOCINDEX_TRUST")
    monkeypatch.setenv("DOCINDEX_HOME", str(own.root / home))
    settings = load_settings(own.root)
    assert runs.index(settings, "library/own").succeeded
    jobs = Jobs(settings, dagster_runs.RecordedRuns(settings), ())
    monkeypatch.setattr(jobs, "_worker", threading.current_thread())  # a live worker thread

    (top := own.root / home.partition("/")[0]).rename(elsewhere := own.user / "copy")
    top.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))

    for write in (
        lambda: jobs.submit(JobRequest("index", "library/own")),
        lambda: collect(settings, "how to prime", Target("library/own", "guide.md"), "page"),
        lambda: ask.note(cast("ServedProject", SimpleNamespace(settings=settings)), SENT),
    ):
        with pytest.raises(LinkError, match="link"):
            write()
    assert sorted(elsewhere.rglob("*")) == before


def test_no_command_writes_where_a_folder_around_the_home_is_a_link(own):
    (elsewhere := own.user / "elsewhere").mkdir()
    (own.root / "data").symlink_to(elsewhere)

    for words in (("source", "use", "own"), ("graph", "import", "--remove", "own"), ("index",)):
        done = own.run(*words, DOCINDEX_HOME=str(own.root / "data/index"))
        assert done.returncode == 1
        assert "is a symbolic link to" in " ".join(done.stderr.split())
    assert not any(elsewhere.iterdir())


def test_names_of_files_elsewhere_are_not_kept_of_a_source_of_which_none_is_read(own, git):
    (own.root / "docs").mkdir()
    (own.root / "docs/guide.txt").write_text("How a pump is primed.\n")
    settings = '[[source]]\nkind = "library"\npath = "docs"\nname = "docs"\ninclude = ["*.none"]\n'
    (own.root / "docindex.toml").write_text(settings)

    def pull(event: events.Event) -> None:
        if isinstance(event, events.StageBegan) and event.stage == "discovered_files":
            shutil.rmtree(own.root / "docs")
            (own.root / "docs").symlink_to(own.private.parent)

    with events.listening(pull):
        assert own.run("index", "docs").returncode == 1

    names = [pq.read_table(table)["path"].to_pylist() for table in own.home.rglob("discovered_files/*docs.parquet")]
    assert own.private.name not in str(names)


@pytest.mark.parametrize("link", ["docindex-submodules", "index"])
def test_a_link_in_the_git_folder_of_a_submodule_is_not_followed(own, git, link):
    """docindex records failed submodule fetches there, and the index of another repository lists its files."""
    (sub := own.root / "sub").mkdir()
    (elsewhere := own.user / "merger").mkdir()
    for repository in (own.root, sub, elsewhere):
        git(repository, "init")
        git(repository, "commit", "--allow-empty", "--message", "one")
    commit = git(sub, "rev-parse", "HEAD").strip()
    git(sub, "update-index", "--add", "--cacheinfo", f"160000,{commit},inner")
    git(own.root, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    (own.user / "docindex-submodules").write_bytes(b"inner\0plan of a merger\0")
    (sub / ".docindexignore").write_text("plan*\n")
    (elsewhere / "plan of a merger").mkdir()
    (elsewhere / "plan of a merger/page.md").touch()
    git(elsewhere, "add", ".")
    (own.user / "index").symlink_to(elsewhere / ".git/index")
    (sub / ".git" / link).unlink(missing_ok=True)
    (sub / ".git" / link).symlink_to(own.user / link)

    assert own.run("source", "add", ".", "--submodules", "--name", "with-submodules").returncode == 0
    assert own.run("index", "git/with-submodules").returncode == 0

    [table] = own.home.rglob("discovered_files/*with-submodules.parquet")
    rows = {row["path"]: row["skipped_reason"] for row in pq.read_table(table).to_pylist()}
    assert "plan of a merger" not in str(rows)
    assert rows["sub/"] == "submodule: its .git contains symlinks, which may point outside the source"


def test_a_bare_repository_that_borrows_is_not_followed_by_its_url(own, git):
    (project := own.user / "project").mkdir()
    bare = own.root / "lib.git"
    git(own.root, "init", "--bare", "-b", "main", str(bare))
    (bare / "commondir").write_text(f"{own.user}/private.git\n")

    done = own.run("source", "add", f"file://{bare}", cwd=project)

    assert done.returncode == 1
    assert "is not trusted" in " ".join(done.stderr.split())


def test_a_bare_repository_that_a_pull_makes_borrow_is_asked_for_again(own, git):
    (project := own.user / "project").mkdir()
    bare = own.root / "lib.git"
    git(own.root, "init", "--bare", "-b", "main", str(bare))
    assert own.run("source", "add", f"file://{bare}", cwd=project).returncode == 0
    assert "git/lib" in own.run("source", "list", cwd=project).stdout

    (bare / "commondir").write_text(f"{own.user}/private.git\n")
    git_folders._scans.clear()

    assert "git/lib" not in own.run("source", "list", cwd=project).stdout


def test_a_link_of_a_checkout_is_not_followed_by_its_url(own, git):
    (project := own.user / "project").mkdir()
    git(own.root, "init")
    git(own.user, "init", "-q", "private")
    (own.root / "lib").symlink_to(own.user / "private")

    done = own.run("source", "add", f"file://{own.root}/lib", cwd=project)

    assert done.returncode == 1
    assert f"redirects it to {own.user / 'private'}; pass that path" in " ".join(done.stderr.split())


@pytest.mark.parametrize("name", [".docindex", "index"])
def test_nothing_is_written_where_a_pull_has_made_the_home_a_link(own, monkeypatch, name):
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, own.environment[variable])
    monkeypatch.delenv("DOCINDEX_TRUST")
    monkeypatch.setenv("DOCINDEX_HOME", str(own.root / name))
    settings = load_settings(own.root)
    assert runs.index(settings, "library/own").succeeded
    (elsewhere := own.user / "elsewhere").mkdir()

    shutil.rmtree(own.root / name)
    (own.root / name).symlink_to(elsewhere)
    (own.root / "guide.md").write_text("# Valves\n")

    with pytest.raises(LinkError, match="is a symbolic link to"):
        runs.index(settings, "library/own")
    monkeypatch.setenv("DOCINDEX_HOME", str(settings.home))  # as set by the environment of a job
    with pytest.raises(LinkError, match="is a symbolic link to"):
        load_settings(own.root)
    with pytest.raises(LinkError, match="is a symbolic link"):
        Layout(settings.home)
    assert not any(elsewhere.iterdir())


def test_no_folder_of_another_repository_is_named_by_an_init(own, git):
    (own.root / "docindex.toml").unlink()
    git(own.root, "init")
    git(own.user, "init")
    (own.user / "plans-of-a-merger").mkdir()
    (own.user / "plans-of-a-merger/plan.md").touch()
    git(own.user, "add", ".")
    (own.root / ".git/index").symlink_to(own.user / ".git/index")
    git_folders._scans.clear()

    done = own.run("init", "--dry-run")

    assert done.returncode == 1
    assert "merger" not in done.stdout + done.stderr


def test_rules_of_the_repository_of_another_folder_are_not_shown(own, git):
    repository = own.user / "repository"
    repository.mkdir()
    git(repository, "init")
    (repository / ".git/info/exclude").write_text("marmot-*\n")
    (own.root / ".git").write_text(f"gitdir: {repository}/.git\n")
    (own.root / "marmot-1").touch()

    assert "exclude" not in own.run("why", "marmot-1").stdout


@pytest.mark.parametrize("target", [".git/config", ".git/hooks/post-commit", ".GIT/config", ".docindex/.gitignore"])
def test_no_file_of_an_agent_is_one_that_git_or_docindex_obeys(own, git, target):
    git(own.root, "init")
    before = (own.root / target).read_text() if (own.root / target).exists() else None
    for name in ("CLAUDE.md", "AGENTS.md", ".mcp.json"):
        (own.root / name).symlink_to(target)

    for agent in ("claude", "codex"):
        assert own.run("agents", "add", agent).returncode == 1
    assert ((own.root / target).read_text() if (own.root / target).exists() else None) == before


@pytest.mark.parametrize(
    "declared", ['kind = "library"\npath = "docs"', 'kind = "git"\npath = "docs"\nbranch = "main"', "url"]
)
def test_a_trusted_link_that_a_pull_leads_elsewhere_during_a_run_is_not_followed(hostile, git, monkeypatch, declared):
    """Other sources are indexed between reading the settings and this source."""
    if declared == "url":
        declared = f'kind = "git"\nurl = "file://{hostile.root}/docs"'
    (shared := hostile.user / "shared").mkdir()
    for folder in (shared, hostile.private.parent):
        (folder / "page.md").write_text("# Valves\n")
        git(folder, "init", "-b", "main")
        git(folder, "add", ".")
        git(folder, "commit", "-m", "one")
    (link := hostile.root / "docs").symlink_to(shared)
    (hostile.root / "docindex.toml").write_text(f'[[source]]\n{declared}\nname = "docs"\n')
    (hostile.root / "dagster.yaml").unlink()
    assert hostile.run("trust", "--yes").returncode == 0
    monkeypatch.delenv("DOCINDEX_TRUST")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, hostile.environment[name])
    settings = load_settings(hostile.root)
    [key] = registry.sources(settings)
    assert runs.index(settings, key).succeeded

    link.unlink()
    link.symlink_to(hostile.private.parent)
    outcome = runs.index(settings, key)

    assert f"docs now points to {hostile.private.parent}" in outcome.failures[0]
    assert PRIVATE not in hostile.run("search", "combination", "--mode", "bm25").stdout


@pytest.mark.parametrize("place", [".docindex", "home", "links/{library}", ".git", "repository"])
def test_neither_a_home_nor_git_is_a_source(own, git, place):
    """Homes contain queries, git configs contain passwords, and the name of a home gives access to the index."""
    git(own.root, "init")
    git(own.root, "config", "remote.origin.url", f"https://ada:{PRIVATE.replace(' ', '-')}@git.example/x")
    (own.home / "questions.jsonl").write_text(f'{{"query": "{PRIVATE}"}}\n')
    (own.root / ".docindex" / ".docindexignore").write_text("!*\n!*/\n")
    (own.root / "links").mkdir()
    for link, target in (("home", ".docindex"), ("links/one", ".docindex"), ("repository", ".git")):
        (own.root / link).symlink_to(own.root / target)
    for settings in ("", 'serve = { hosts = ["evil.example"] }\n'):  # these settings move the home to the cache
        (own.root / "docindex.toml").write_text(
            f'{settings}[[source]]\nkind = "library"\npath = "{place}"\ninclude = ["**"]\n'
        )

        done = own.run("index")

        assert ": 0 files" in done.stdout, done.stderr
        assert "marmot" not in own.run("search", "marmot", "--mode", "literal").stdout


@pytest.fixture(params=["library", "git"])
def swapped(own, git, request):
    """Index a source in which a pull then replaces a folder with a symlink to private files."""
    git(own.root, "init")
    (inner := own.root / "docs/inner").mkdir(parents=True)
    for name in ("page.md", "absent.md"):
        (inner / name).write_text("# Valves\n")
    (own.root / ".gitignore").write_text("/docs/inner\n")
    git(own.root, "add", "--force", ".gitignore", "docs")
    git(own.root, "commit", "--message", "one")
    (own.root / "docindex.toml").write_text(f'[[source]]\nkind = "{request.param}"\npath = "."\nname = "swapped"\n')
    if request.param == "library":
        (own.root / ".gitignore").unlink()
    assert own.run("index", f"{request.param}/swapped").returncode == 0
    (own.private.parent / "page.md").write_text("marmots\n" * SIZE_OF_NO_OTHER)
    shutil.rmtree(inner)
    inner.symlink_to(own.private.parent)
    return own


def test_no_name_of_a_file_behind_a_link_is_a_change(swapped):
    for words in (("search", "valves"), ("status",)):
        done = swapped.run(*words)
        assert done.returncode == 0
        said = " ".join((done.stdout + done.stderr).split())
        assert swapped.private.name not in said
        assert "changed: docs" not in said
    assert "gone: docs/inner/absent.md, docs/inner/page.md" in " ".join(swapped.run("search", "valves").stderr.split())


def test_no_size_of_a_file_behind_a_link_is_kept(swapped):
    assert swapped.run("index").returncode == 0

    [table] = swapped.home.rglob("discovered_files/*swapped.parquet")
    rows = {row["path"]: row["size"] for row in pq.read_table(table).to_pylist()}
    assert not {name for name in rows if name.startswith("docs/inner/")}
    assert 8 * SIZE_OF_NO_OTHER not in rows.values()


def test_no_explanation_tells_which_files_are_behind_a_link(swapped):
    name, absent = f"docs/inner/{swapped.private.name}", "docs/inner/marmot.md"

    there, not_there = (swapped.run("why", name).stdout for name in (name, absent))

    assert there.replace(name, absent) == not_there


@pytest.mark.parametrize("kind", ["library", "git"])
def test_a_source_that_a_pull_makes_a_link_is_not_listed_by_a_process_that_runs(own, git, monkeypatch, kind):
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, own.environment[variable])
    monkeypatch.delenv("DOCINDEX_TRUST")
    for folder in (docs := own.root / "docs", own.private.parent):
        folder.mkdir(exist_ok=True)
        git(folder, "init")
    (own.root / "docindex.toml").write_text(f'[[source]]\nkind = "{kind}"\npath = "docs"\n')
    settings = load_settings(own.root)
    [source] = registry.sources(settings).values()
    assert folders_of(source, settings.home)

    shutil.rmtree(docs)
    docs.symlink_to(own.private.parent)

    for look in (fingerprint, list_entries, lambda source: why(source, docs / own.private.name)):
        with pytest.raises(SourceError, match="is not the folder that docindex was configured to read"):
            look(source)
    assert not folders_of(source, settings.home)


def test_dagster_writes_nothing_where_a_pull_makes_the_home_a_link_while_the_ui_runs(own, monkeypatch):
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, own.environment[variable])
    monkeypatch.delenv("DOCINDEX_TRUST")
    settings = load_settings(own.root)
    home = dagster_runs.dagster_home(settings)
    with DagsterInstance.from_config(_pinned(settings, home)) as instance:
        instance.add_dynamic_partitions("sources", ["library/one"])

        shutil.copytree(own.root / ".docindex", elsewhere := own.user / "elsewhere")
        shutil.rmtree(own.root / ".docindex")
        (own.root / ".docindex").symlink_to(elsewhere)
        before = {file: file.read_bytes() for file in elsewhere.rglob("*") if file.is_file()}

        with pytest.raises(Exception, match="unable to open database file"):
            instance.add_dynamic_partitions("sources", ["library/two"])
        with pytest.raises(LinkError):
            _pinned(settings, home)
    assert {file: file.read_bytes() for file in elsewhere.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("words", [("index",), ("search", "pumps"), ("status",), ("agents", "add", "claude")])
def test_a_cycle_of_links_in_the_place_of_git_ends_no_command(own, words):
    (own.root / "cycle").symlink_to("cycle")
    (own.root / ".git").write_text("gitdir: cycle/x\n")

    done = own.run(*words)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("link", ["docs", "docindex.toml", ".docindex"])
def test_a_cycle_of_links_of_one_project_ends_no_command_of_another(own, link):
    (own.root / "docs").mkdir()
    (own.root / "docs/page.md").write_text("# Valves\n")
    assert own.run("index", "docs").returncode == 0
    (elsewhere := own.user / "elsewhere").mkdir()
    (own.root / link).rename(own.root / "before")
    (own.root / link).symlink_to(link)

    assert "no project found" in own.run("search", "valves", cwd=elsewhere).stderr
    assert own.run("project", "list", cwd=elsewhere).returncode == 0
    assert "Traceback" not in own.run("status").stderr
