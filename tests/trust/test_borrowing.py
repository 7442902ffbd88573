"""Repositories that begin to borrow from others while docindex runs: an archive is unpacked over a checkout."""

import pytest

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner import run
from docindex_dagster.runner.watching.loop import Watch
from docindex_dagster.sources import registry
from docindex_dagster.sources.changes import fingerprint
from tests.trust.conftest import PRIVATE


@pytest.fixture
def repository(own, git, monkeypatch):
    """A git source that is indexed, a private repository of the user, and the settings of a process that runs."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, own.environment[name])
    monkeypatch.delenv("DOCINDEX_TRUST")
    for folder, subject in ((own.root, "Describe pumps"), (own.user / "secret", PRIVATE)):
        folder.mkdir(exist_ok=True)
        git(folder, "init", "--initial-branch", "main")
        git(folder, "commit", "--allow-empty", "--message", subject)
    (own.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "."\nname = "own"\n')
    return own


def unpack(own) -> None:
    secret, mine = own.user / "secret/.git", own.root / ".git"
    (mine / "objects/info/alternates").write_text(f"{secret}/objects\n")
    (mine / "refs/heads/main").unlink()
    (mine / "refs/heads/main").symlink_to(secret / "refs/heads/main")


def indexed(own) -> bytes:
    return b"".join(file.read_bytes() for file in own.root.rglob("*") if file.is_file() and not file.is_symlink())


def test_a_run_does_not_read_what_its_repository_borrows_since_the_settings_were_read(repository):
    settings = load_settings(repository.root)
    [source] = registry.sources(settings).values()
    fingerprint(source)

    unpack(repository)

    with pytest.raises(SourceError, match="needs trust"):
        fingerprint(source)
    with pytest.raises(SourceError, match="needs trust"):
        run.index(settings, registry.sources(settings)["git/own"], StaticEmbedder())
    assert PRIVATE.encode() not in indexed(repository)


def test_a_watcher_does_not_index_what_a_repository_begins_to_borrow(repository):
    settings = load_settings(repository.root)
    said: list[str] = []

    def index(current, key):
        run.index(current, registry.sources(current)[key], StaticEmbedder())
        return True

    watch = Watch(settings, (), index, said.append, poll=True)
    unpack(repository)
    try:
        while not watch.is_idle:
            watch.step()
    finally:
        watch.close()

    assert "needs trust" in " ".join(said)
    assert PRIVATE.encode() not in indexed(repository)
