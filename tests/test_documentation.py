"""Tests that the documentation is accurate: package layout, install commands and examples."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores.doctor import roll_back
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "docindex_dagster"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
MEASURED = ROOT / "benchmarks" / "README.md"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))
}


def test_the_rooms_are_listed_in_the_order_of_the_import_contract():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^### (\w+)(?:/|\.py)$", page, flags=re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [re.split(r" [:|] ", layer) for layer in reversed(contracts[0]["layers"])]
    place = {room: number for number, layer in enumerate(layers) for room in layer}

    assert [place[room] for room in listed] == sorted(place[room] for room in listed)
    assert {room for layer in layers[1:] for room in layer} <= set(listed)


def test_all_modules_are_in_rooms_but_the_entry_points():
    rooms = [init.parent for init in PACKAGE.rglob("*/__init__.py")]

    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "api", "definitions"}
    assert len(rooms) <= 38  # including nested rooms


@pytest.mark.parametrize("page", [*PAGES, MEASURED], ids=lambda page: page.name)
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    files = [name for name in re.findall(r"`((?:\w+/)+\w+\.(?:py|csv|npz|txt))`", text) if "NAME" not in name]
    modules = re.findall(r"`python -m ((?:benchmarks|tests|training)[.\w]*)", text)
    targets = re.findall(r"`make ([\w-]+)", text)

    assert [
        name for name in files if not any((folder / name).exists() for folder in (ROOT, PACKAGE, page.parent))
    ] == []
    assert [name for name in modules if find_spec(name) is None] == []
    assert [name for name in targets if f"\n{name}:" not in MAKEFILE] == []
    assert [name for name in re.findall(r"`(test_\w+)`", text) if name not in TESTS] == []


def test_nothing_tells_to_install_a_package_of_the_index_under_our_name():
    sources = PACKAGE.rglob("*.py")
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
    page = (ROOT / "docs" / "how-to" / "read-the-stores.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.setattr("sys.argv", ["read.py", str(layout.stores)])

    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/read-the-stores.md", "exec"), namespace)

    assert namespace["table"].to_arrow()["text"].to_pylist() == ["alpha"]
    assert open_reader(layout).table.to_arrow()["text"].to_pylist() == ["alpha"]
