"""Without older versions, the upgrade tests say so and all other tests are still collected."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from tests.upgrade.history import NoHistoryError, number, older


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with six commits."""
    for arguments in (("init", "--quiet"), *[("commit", "--quiet", "--allow-empty", "--message", "more")] * 6):
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_without_a_clone_it_is_said_that_there_is_no_history(tmp_path):
    with pytest.raises(NoHistoryError, match="is no clone"):
        older(tmp_path, {})


def test_of_a_shallow_clone_it_is_said_how_to_get_the_rest(clone, tmp_path_factory):
    shallow = tmp_path_factory.mktemp("shallow")
    subprocess.run(["git", "clone", "--quiet", "--depth=1", clone.as_uri(), shallow], check=True)
    with pytest.raises(NoHistoryError, match="git fetch --unshallow"):
        older(shallow, {})


def test_a_history_that_is_too_short_is_named(clone):
    with pytest.raises(NoHistoryError, match="has 0 older versions"):
        older(clone, {})


def test_the_last_tags_come_first(clone):
    for back, tag in ((5, "v0.9.0"), (4, "v0.10.0"), (3, "v0.11.0"), (2, "v1.0.0"), (0, "v1.1.0")):
        subprocess.run(["git", "tag", tag, f"HEAD~{back}"], cwd=clone, check=True)
    assert older(clone, {}) == ["v1.0.0", "v0.11.0", "v0.10.0"]


def test_commits_that_are_named_are_taken():
    environment = {"DOCINDEX_TEST_COMMITS": "one two"}
    assert older(Path("/nowhere"), environment) == ["one", "two"]
    assert (number(environment), number({})) == (2, 3)


def test_the_tests_of_upgrades_are_collected_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    spec = importlib.util.spec_from_file_location("collected", Path(__file__).with_name("test_upgrade.py"))
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
