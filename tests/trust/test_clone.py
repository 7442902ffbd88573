"""Folders that claim to be a clone of a repository that one of the user's projects follows."""

import shlex

import pytest

from docindex_dagster import open_index
from docindex_dagster.core.errors import SourceError
from tests.trust.conftest import PRIVATE

CONFIG = '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = {url}\n'


@pytest.fixture
def team(hostile, git):
    """Index a private repository in a project of the user. Any folder can claim to be its clone."""
    upstream, team = hostile.user / "upstream", hostile.user / "team"
    upstream.mkdir()
    team.mkdir()
    (upstream / "safe.md").write_text(f"# Safe\n\n{PRIVATE}\n")
    git(upstream, "init")
    git(upstream, "add", ".")
    git(upstream, "commit", "-m", "one")
    done = hostile.run("index", upstream.as_uri(), cwd=team)
    assert done.returncode == 0, done.stderr
    for name in ("docindex.toml", "dagster.yaml"):
        (hostile.root / name).unlink()
    (hostile.root / ".git").mkdir()
    (hostile.root / ".git/config").write_text(CONFIG.format(url=upstream.as_uri()))
    return team


def test_it_chooses_no_project_until_its_user_does(hostile, team, monkeypatch):
    with (hostile.root / ".git/config").open("a") as config:
        config.writelines(f'[branch "{number}"]\n\tremote = origin\n' for number in range(3000))
    for words in (("search", "combination"), ("log",), ("mcp",)):
        done = hostile.start(*words)
        assert done.stdout == ""
        assert f"`docindex trust {hostile.root}`" in " ".join(done.stderr.split())
    assert str(team) not in hostile.run("status").stdout
    assert hostile.run("agents", "add", "claude").returncode == 1
    monkeypatch.delenv("DOCINDEX_TRUST")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, hostile.environment[name])
    with pytest.raises(SourceError, match="`docindex --project"):
        open_index(hostile.root)

    shown = hostile.run("trust", "--yes").stdout
    assert f"answers from {team}, which follows {hostile.user / 'upstream'}" in " ".join(shown.split())

    assert "safe.md" in hostile.run("search", "combination").stdout
    assert open_index(hostile.root).search("combination")
    assert hostile.run("trust", "--revoke").returncode == 0
    assert "no project" in hostile.run("search", "combination").stderr


def test_what_it_answers_from_is_trusted_alone(hostile, team, git):
    hostile.run("trust", "--yes")
    other = hostile.user / "other"
    other.mkdir()
    git(hostile.user, "clone", "-q", "upstream", "fork")
    hostile.run("index", (hostile.user / "fork").as_uri(), cwd=other)
    (hostile.root / ".git/config").write_text(CONFIG.format(url=(hostile.user / "fork").as_uri()))

    assert f"--project {shlex.quote(str(other))}" in " ".join(hostile.run("search", "combination").stderr.split())


@pytest.mark.parametrize("how", ["file", "link"])
def test_a_git_folder_elsewhere_says_nothing(hostile, team, how):
    (hostile.root / ".git").rename(hostile.user / "elsewhere")
    if how == "file":
        (hostile.root / ".git").write_text("gitdir: ../user/elsewhere\n")
    else:
        (hostile.root / ".git").symlink_to("../user/elsewhere")

    assert str(team) not in hostile.run("search", "combination").stderr
