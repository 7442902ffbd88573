"""Files outside a checkout: docindex does not tell whether they exist, even if a link or git's config names them."""

import os

import pytest

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.runner.watching.folders import folders_of
from docindex_dagster.serving.jobs.model import JobRequest, check
from docindex_dagster.sources import registry
from tests.serving.http.conftest import serving

NAMES = ("private.md", "missing.md")


@pytest.fixture(params=["library", "git"])
def linked(hostile, git, request, monkeypatch):
    """Index a source with links to a folder of the user, and to two files in it, of which only the first exists."""
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, hostile.environment[variable])
    monkeypatch.delenv("DOCINDEX_TRUST")
    git(hostile.root, "init")
    (hostile.root / "dagster.yaml").unlink()
    (hostile.root / "docindex.toml").write_text(f'[[source]]\nkind = "{request.param}"\npath = "."\nname = "own"\n')
    (hostile.root / "notes").symlink_to(hostile.private.parent)
    for name in NAMES:
        (hostile.root / name).symlink_to(hostile.private.with_name(name))
    for name, folder in zip(NAMES, ("notes", "missing"), strict=True):
        (hostile.root / f"back-{name}").symlink_to(hostile.user / folder / "../../checkout/guide.md")
    assert hostile.run("index").returncode == 0
    return hostile


@pytest.mark.parametrize("form", ["{}", "notes/{}", "back-{}"])
def test_no_command_tells_whether_the_target_of_a_link_exists(linked, form):
    project = ("--project", str(linked.root))
    for words in (("why",), ("index",), ("index", "--full"), ("search", "pump", "--path")):
        for place in (linked.root, linked.root.parent):
            ended = [linked.run(*project, *words, form.format(name), cwd=place) for name in NAMES]
            there, not_there = ((done.returncode, done.stdout + done.stderr) for done in ended)
            assert (there[0], there[1].replace(*NAMES)) == not_there, words


@pytest.mark.parametrize("form", ["{}", "notes/{}", "notes/{}:1"])
def test_no_server_tells_whether_the_target_of_a_link_exists(linked, form):
    settings = load_settings(linked.root)
    [key] = registry.sources(settings)
    paths = [form.format(name) for name in NAMES]

    with serving(linked.root) as client:
        explained = [client.get("/api/v1/why", params={"source": key, "path": path}) for path in paths]
    refused = []
    for path in paths:
        with pytest.raises(SourceError) as caught:
            check(settings, JobRequest("index", key, paths=(path,)))
        refused.append(str(caught.value))

    assert explained[0].status_code == 200
    for there, not_there in (explained[0].text, explained[1].text), refused:
        assert there.replace(*NAMES) == not_there


@pytest.mark.parametrize("words", [("graph", "import"), ("evaluate",), ("evaluate", "--compare")])
def test_a_file_to_read_is_neither_a_fifo_nor_behind_a_link_out_of_the_checkout(own, words):
    suffix = {"import": ".scip", "evaluate": ".csv", "--compare": ".toml"}[words[-1]]
    os.mkfifo(own.root / f"fifo{suffix}")
    (own.root / f"link{suffix}").symlink_to(own.private)
    (own.root / f"broken{suffix}").symlink_to(own.private.with_name("missing.md"))

    waited = own.start(*words, f"fifo{suffix}")
    followed = [own.run(*words, f"{name}{suffix}") for name in ("link", "broken")]

    assert waited.returncode == 1
    for done in followed:
        assert done.returncode == 1
        assert "redirects it" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "config",
    [
        "[include]\n\tpath = {}\n",
        '[core]\n\tbare = false\n[INCLUDEif "gitdir:/"]path={}\n',
        "[include]\n\tpath = ../settings\n",
    ],
)
def test_no_config_elsewhere_is_read_for_a_repository(own, git, config):
    git(own.root, "init")
    (own.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "."\nname = "own"\n')
    (own.root / "settings").write_text(f"[include]\n\tpath = ~/notes/{own.private.name}\n")
    with (own.root / ".git/config").open("a") as opened:
        opened.write(config.format(own.private))
    git_folders._scans.clear()

    done = own.run("why", "guide.md")

    said = " ".join(done.stderr.split())
    assert f"ignores: source . (reads {own.private})" in said
    assert "bad config" not in said


def test_a_config_in_the_checkout_may_be_included(own, git):
    git(own.root, "init")
    (own.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "."\nname = "own"\n')
    (own.root / "settings").write_text("[alias]\n\tst = status\n")
    git(own.root, "config", "include.path", "../settings")
    git_folders._scans.clear()

    assert "guide.md will be indexed" in own.run("why", "guide.md").stdout


def test_no_repository_of_another_folder_is_watched_or_told_about(own, git):
    git(own.user, "init", "private")
    (own.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "."\nname = "own"\n')
    said = []
    for name in ("private", "missing"):
        (own.root / ".git").write_text(f"gitdir: {own.user / name}/.git\n")
        [source] = registry.sources(load_settings(own.root)).values()
        watched = folders_of(source, own.home)
        assert not any(folder.startswith(str(own.user)) for folder in watched)
        said.append(own.run("index").stderr.replace(str(own.user / name), "FOLDER"))

    assert said[0] == said[1]


def test_no_history_of_another_repository_is_asked_about(own, git):
    """Between a run and the evaluation, an archive is unpacked over the checkout."""
    (own.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "."\nname = "own"\nversion = "1"\n')
    for folder, subject in ((own.root, "Describe how pumps are primed"), (own.user, "Tell about marmot and basalt")):
        git(folder, "init", "--initial-branch", "main")
        (folder / "pump.py").write_text(f"# {subject}\ndef prime():\n    return 1\n")
        git(folder, "add", "pump.py")
        git(folder, "commit", "--message", subject)
    assert own.run("index", "git/own").returncode == 0
    asked = own.run("evaluate", "--json", "--source", "git/own").stdout
    (own.root / ".git/commondir").write_text(f"{own.user}/.git\n")

    done = own.run("evaluate", "--json", "--source", "git/own")

    assert "pumps are primed" in asked
    assert "marmot" not in done.stdout
    assert "not the repository of this folder" in " ".join(done.stderr.split())
