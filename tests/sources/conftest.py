"""Real folders and git repositories for discovery."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source

LONG_AGO_NS = 1_600_000_000_000_000_000


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@dataclass(frozen=True, slots=True)
class Tree:
    """A source folder on disk."""

    root: Path
    kind: Literal["library", "git"] = "library"

    def write(self, path: str | bytes, text: str | bytes = "text\n", *, mtime_ns: int = LONG_AGO_NS) -> Path:
        """Write a file and its parent folders, with an old timestamp so that it counts as settled."""
        place = self.root / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(place, ns=(mtime_ns, mtime_ns))
        return place

    def write_all(self, *paths: str) -> None:
        for path in paths:
            self.write(path)

    def source(self, **settings: Any) -> Source:
        return Source(key=f"{self.kind}/demo", kind=self.kind, name="demo", path=self.root, **settings)

    def discover(self, previous: pa.Table | None = None, **settings: Any) -> dict[str, dict[str, Any]]:
        """Return the discovered rows by path."""
        return rows(discover(self.source(**settings), previous))

    def reasons(self, **settings: Any) -> dict[str, str | None]:
        """Return the skip reason of each skipped path."""
        return {path: row["skipped_reason"] for path, row in self.discover(**settings).items()}

    def indexed(self, **settings: Any) -> set[str]:
        return {path for path, reason in self.reasons(**settings).items() if reason is None}

    def git(self, *arguments: str | bytes) -> str:
        """Run git in the folder."""
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
        command = ["git", "-C", self.root, *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout.strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything and return the commit id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def rows(table: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by path."""
    return {row["path"]: row for row in table.to_pylist()}


@pytest.fixture
def library(tmp_path: Path) -> Tree:
    """An empty library."""
    root = tmp_path / "library"
    root.mkdir()
    return Tree(root)


@pytest.fixture
def repository(tmp_path: Path) -> Tree:
    """A git repository without commits."""
    return new_repository(tmp_path / "repository")


def new_repository(root: Path) -> Tree:
    root.mkdir()
    tree = Tree(root, "git")
    tree.git("init", "--quiet", "--initial-branch=main")
    return tree
