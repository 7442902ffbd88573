"""Permissions of the index: private to its user, or readable by a group if the settings say so."""

import os
from pathlib import Path

import pytest

from docindex_dagster.core.access import writable_home
from docindex_dagster.core.settings import Settings, load_settings

_OF_A_GROUP, _OF_OTHERS = 0o070, 0o007


@pytest.fixture
def settings(tmp_path) -> Settings:
    (tmp_path / "docindex.toml").write_text("")
    return load_settings(tmp_path)


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_home_is_for_its_user_alone(settings):
    with writable_home(settings) as layout:
        layout.stores.mkdir()
        layout.catalog.write_text("[]")
    elsewhere = settings.root / "elsewhere"
    elsewhere.write_text("")

    assert [_mode(path) for path in (layout.home, layout.stores, layout.catalog)] == [0o700, 0o700, 0o600]
    assert _mode(elsewhere) == 0o644


def test_the_home_of_an_older_version_is_closed_with_all_that_is_in_it(settings):
    program, text = (settings.home / "tables" / name for name in ("program", "text"))
    linked = settings.home / "checkouts/git%2Ftool/linked"  # a home contains symlinks nowhere else
    for file in (text, linked):
        file.parent.mkdir(parents=True)
    outside = settings.root / "outside"
    for file in (program, text, outside):
        file.write_text("")
    program.chmod(0o755)
    linked.symlink_to(outside)

    with writable_home(settings):
        pass

    assert [_mode(path) for path in (settings.home, text.parent, program, text)] == [0o700, 0o700, 0o700, 0o600]
    assert _mode(outside) == 0o644


def test_a_group_may_read_if_the_settings_say_so(settings, monkeypatch):
    with writable_home(settings) as layout:
        layout.catalog.write_text("[]")
    layout.home.chmod(0o2700)  # new files inherit the group of the folder
    monkeypatch.setenv("DOCINDEX_ACCESS__GROUP", "true")
    with writable_home(load_settings(settings.root)):
        layout.stores.mkdir()
        layout.current.write_text("{}")

    assert layout.home.stat().st_mode & 0o7777 == 0o2750
    assert _mode(layout.stores) == 0o750
    assert [_mode(path) for path in (layout.catalog, layout.current)] == [0o640, 0o640]
