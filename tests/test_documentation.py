"""The pages are true: about the rooms of the package, and about what they tell to install."""

import re
import tomllib
from pathlib import Path
from typing import Any

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.rollback import roll_back
from tests.conftest import chunks_of, publish_rows, vectors_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_rooms_are_listed_in_the_order_of_the_import_contract():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^      (\w+)(?:/|\.py) ", page, flags=re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [re.split(r" [:|] ", layer) for layer in reversed(contracts[0]["layers"])]
    place = {room: number for number, layer in enumerate(layers) for room in layer}

    assert [place[room] for room in listed] == sorted(place[room] for room in listed)
    assert {room for layer in layers[1:] for room in layer} <= set(listed)


def test_all_modules_are_in_rooms_but_the_entry_points():
    package = ROOT / "docindex_dagster"
    rooms = [init.parent for init in package.rglob("*/__init__.py")]

    assert {path.stem for path in package.glob("*.py")} == {"__init__", "api", "definitions"}
    assert len(rooms) <= 25  # with the rooms in rooms


def test_nothing_tells_to_install_a_package_of_the_index_under_our_name():
    sources = (ROOT / "docindex_dagster").rglob("*.py")
    misleading = {
        file.relative_to(ROOT): found
        for file in (*PAGES, *sources)
        if (found := re.findall(r"pip install [\"']?docindex\b(?!-).*", file.read_text(encoding="utf-8")))
    }

    assert misleading == {}


def test_the_published_rows_are_read_as_documented_after_a_rollback(tmp_path, monkeypatch):
    layout = Layout(tmp_path / ".docindex")
    for text in ("alpha", "regretted"):
        chunks = chunks_of({"a.py": [text]})
        publish_rows(layout, "library/sample", chunks, vectors_of(chunks))
    roll_back(layout)
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    code = page.partition("## Reading the stores")[2].partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)

    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/operations.md", "exec"), namespace)

    assert namespace["table"].to_arrow()["text"].to_pylist() == ["alpha"]
    assert open_reader(layout).table.to_arrow()["text"].to_pylist() == ["alpha"]
