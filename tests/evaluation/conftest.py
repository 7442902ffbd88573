"""A project with a repository whose commits describe changes and a library that no commit mentions, indexed once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import Git, git_alone

DECLARED = """\
[[source]]
kind = "git"
path = "station"

[[source]]
kind = "library"
path = "manual"
"""
FILES = {
    "src/pump.py": 'def prime_pump(litres: int) -> None:\n    """Fill the pump with water from the well."""\n',
    "src/valve.py": 'def close_valve() -> None:\n    """Stop the flow when the tank is full."""\n',
    "src/sensor.py": 'def read_temperature() -> float:\n    """Ask the sensor on the roof how warm it is."""\n',
    "docs/alarm.md": "# Alarms\n\nA siren howls when the boiler is too hot, until an engineer acknowledges it.\n",
    "tests/test_pump.py": "def test_the_pump_is_primed(): ...\n",
    "CHANGELOG.md": "# Changes\n\n- Fill the pump with water before it starts\n- Howl until an engineer hears\n",
}


def new_repository(folder: Path, git: Git) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def commit(folder: Path, git: Git, subject: str, files: dict[str, str], *options: str) -> str:
    """Commit files and return the commit ID."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject, *options)
    return git(folder, "rev-parse", "HEAD").strip()


def write_project(root: Path, git: Git) -> Path:
    station = new_repository(root / "station", git)
    commit(station, git, "Initial commit", FILES)
    for subject, path in {
        "Fill the pump with water before it starts": "src/pump.py",
        "Stop the flow when the tank is full": "src/valve.py",
        "Ask the sensor how warm the roof is": "src/sensor.py",
        "Howl until an engineer hears": "docs/alarm.md",
    }.items():
        commit(station, git, subject, {path: FILES[path] + "\n"})
    (root / "manual").mkdir()
    (root / "manual" / "guide.md").write_text("# Guide\n\n## Pumps\n\nThe pump moves water from well to tank.\n")
    (root / "docindex.toml").write_text(DECLARED)
    return root


def index_all(root: Path) -> Settings:
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return settings


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Index a project that tests only read."""
    with pytest.MonkeyPatch.context() as patch:
        root = write_project(tmp_path_factory.mktemp("evaluation") / "project", git_alone(patch))
        yield index_all(root)


@pytest.fixture
def reader(project: Settings) -> Reader:
    return open_reader(Layout(project.home))


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def warn(warnings: list[str]) -> Callable[[str], None]:
    return warnings.append
