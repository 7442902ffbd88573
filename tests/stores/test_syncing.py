"""A power cut after a publication loses nothing: everything that `CURRENT` names is synced to disk first."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import lance_table, maintenance
from docindex_dagster.stores.doctor import roll_back
from docindex_dagster.stores.prune import prune
from docindex_dagster.stores.publish import withdraw
from tests.stores.test_publish import FILES, KEY, publish_files


def maintain_with_news(layout: Layout) -> None:
    """Maintain the stores while a source is published."""
    compact = lance_table.drop_other_versions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "_MAX_VERSIONS", 1)
        patch.setattr(maintenance, "_MAX_LOOSE", 0)

        def publish_and_compact(*rest: Any) -> None:
            publish_files(layout, {"c.py": ["epsilon is new"]}, "git/new")
            compact(*rest)

        patch.setattr(lance_table, "drop_other_versions", publish_and_compact)
        [done] = maintenance.maintain(layout)
    assert done.rows
    assert done.packed


COMMANDS: dict[str, Callable[[Layout], object]] = {
    "index": lambda layout: publish_files(layout, {**FILES, "c.py": ["delta is new"]}),
    "source remove": lambda layout: withdraw(layout, "git/other"),
    "prune": lambda layout: prune(layout, [KEY, "git/other"]),
    "prune --erase": lambda layout: prune(layout, [KEY, "git/other"], erase=True),
    "rollback": roll_back,
    "maintenance": maintain_with_news,
}


def _names(layout: Layout) -> dict[str, int]:
    """Return every file and folder of the stores with its inode; file contents must not change."""
    return {str(path): path.stat().st_ino for path in [layout.stores, *layout.stores.rglob("*")]}


@pytest.fixture
def unsynced(layout, monkeypatch) -> list[set[str]]:
    """For each replacement of `CURRENT`, the files and folders new since `before` that were not synced first."""
    synced: set[int] = set()
    found: list[set[str]] = []
    fsync, rename = os.fsync, os.replace

    def record(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def check(self: Path, target: Path) -> None:
        if target == layout.current:
            present = {name: inode for name, inode in _names(layout).items() if ".tmp" not in name}
            new = {name for name, inode in present.items() if before.get(name) != inode}
            changed = {*new, *(str(Path(name).parent) for name in new)}
            found.append({name for name in changed if present[name] not in synced and not name.endswith(".lock")})
        rename(self, target)

    publish_files(layout, FILES)
    publish_files(layout, {"a.py": ["other text"]}, "git/other")
    with monkeypatch.context() as patch:
        patch.setattr(maintenance, "_MAX_LOOSE", 2)
        assert maintenance.bring_up_to_date(layout)
    before = _names(layout)
    monkeypatch.setattr(os, "fsync", record)
    monkeypatch.setattr(Path, "replace", check)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_all_that_is_new_is_synced_before_it_is_named(layout, unsynced, command):
    COMMANDS[command](layout)

    assert unsynced != []
    assert set().union(*unsynced) == set()
