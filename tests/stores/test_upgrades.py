"""An index from an earlier docindex version is searchable, and the next run rebuilds it into a consistent index.

The indexes live in tests/fixtures/upgrades, whose page explains how to create one.
"""

import sys
import tarfile
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.sources import registry
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.publish import Publication
from docindex_dagster.stores.reader import open_reader

UPGRADES = Path(__file__).parent.parent / "fixtures" / "upgrades"
FILES = {
    "docindex.toml": '[[source]]\nkind = "library"\nname = "notes"\npath = "notes"\n\n'
    '[[source]]\nkind = "library"\nname = "code"\npath = "code"\n',
    "notes/pumps.md": "# Pumps\n\nOpen the valve slowly, see `open_valve`.\n",
    "code/valve.py": "from tank import fill\n\n\ndef open_valve(turns):\n"
    '    """Open the valve."""\n    return fill(turns)\n',
    "code/tank.py": "def fill(litres):\n    return litres\n",
}


def write_sources(folder: Path) -> Settings:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return load_settings(folder)


def run(settings: Settings, key: str) -> Publication:
    return index(settings, registry.find(settings, key), StaticEmbedder())


@pytest.fixture(params=sorted(UPGRADES.glob("*.tar.xz")), ids=lambda path: path.name.partition(".")[0])
def upgraded(request, tmp_path) -> Settings:
    settings = write_sources(tmp_path)
    with tarfile.open(request.param) as archive:
        archive.extractall(settings.home, filter="data")
    return settings


def places(settings: Settings) -> list[str]:
    hits = search(open_reader(Layout(settings.home)), "open the valve", StaticEmbedder)
    return sorted(hit.path for hit in hits)


def test_an_index_of_an_earlier_version_answers_and_is_rebuilt(upgraded):
    layout = Layout(upgraded.home)
    assert {"pumps.md", "valve.py"} <= {*places(upgraded)}  # text only: vectors may be of an earlier model
    assert "another version of docindex built it" in {finding.problem for finding in examine(layout)}
    assert not is_current(upgraded, registry.find(upgraded, "library/code"))

    reported = [*run(upgraded, "library/code").warnings, *run(upgraded, "library/notes").warnings]

    assert any("searches now use" in text for text in reported)
    assert places(upgraded) == ["pumps.md", "tank.py", "valve.py"]
    assert list(read_generation(layout).sources) == ["library/code", "library/notes"]
    assert list(examine(layout)) == []
    assert is_current(upgraded, registry.find(upgraded, "library/code"))


if __name__ == "__main__":
    written = write_sources(Path(sys.argv[1]))
    for source in registry.sources(written):
        run(written, source)
