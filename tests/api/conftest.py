"""A small project that is indexed once: a documentation library and a git work tree with code."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry

GUIDE = "# Guide\n\n## Pumps\n\nThe pump moves water from the well to the tank. Prime it before the first use.\n"
PUMP = '''def prime_pump(litres: int) -> None:
    """Fill the pump with water."""
    open_valve(litres)


def open_valve(litres: int) -> None:
    print(litres)
'''
STATION = '''from pump import prime_pump


def start_station() -> None:
    """Make the whole station ready."""
    prime_pump(3)
'''
DECLARED = '[[source]]\nkind = "library"\npath = "manual"\n\n[[source]]\nkind = "git"\npath = "station"\n'


def index_all(root: Path) -> None:
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("api") / "project"
    (root / "manual").mkdir(parents=True)
    (root / "station" / "src").mkdir(parents=True)
    (root / "manual" / "guide.md").write_text(GUIDE)
    (root / "station" / "src" / "pump.py").write_text(PUMP)
    (root / "station" / "src" / "station.py").write_text(STATION)
    (root / "docindex.toml").write_text(DECLARED)
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    moment = "2026-01-02T03:04:05Z"
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Add the pump")):
        subprocess.run(
            ["git", *identity, *command],
            cwd=root / "station",
            env={**os.environ, **own, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment},
            check=True,
        )
    index_all(root)
    return root


@pytest.fixture
def root(indexed_once, tmp_path, monkeypatch) -> Path:
    """Return a copy of the project, in an environment without overrides."""
    for name in ("DOCINDEX_HOME", "DOCINDEX_ROOT"):
        monkeypatch.delenv(name, raising=False)
    copy: Path = tmp_path / "project"
    shutil.copytree(indexed_once, copy, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return copy
