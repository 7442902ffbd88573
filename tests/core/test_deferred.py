"""Imports deferred until first use."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docindex_dagster.stores.lance_table import defer

PACKAGE = "slow_package"
IN_USE = """
import sys
from docindex_dagster.stores.lance_table import load_library
load_library()
client = "lance_namespace_urllib3_client"
print(f"{client}.models" in sys.modules, f"{client}.api" in sys.modules)
print(sys.modules[client].ApiClient.__name__, f"{client}.api" in sys.modules)
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the log to which a test package writes when it is imported."""
    log = tmp_path / "runs"
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text(f"with open({str(log)!r}, 'a') as log:\n    log.write('run\\n')\nVALUE = 7\n")
    (folder / "part.py").write_text("PART = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield log
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


def test_a_module_of_a_deferred_package_is_imported_without_it(runs):
    defer(PACKAGE)

    assert importlib.import_module(f"{PACKAGE}.part").PART == 1
    assert not runs.exists()


def test_it_runs_once_when_something_of_it_is_asked_for(runs):
    defer(PACKAGE)
    module = importlib.import_module(PACKAGE)

    assert (module.VALUE, module.VALUE, runs.read_text()) == (7, 7, "run\n")
    with pytest.raises(AttributeError):
        _ = module.nothing


def test_a_package_that_is_imported_already_or_missing_is_left_alone(runs):
    module = importlib.import_module(PACKAGE)
    defer(PACKAGE)
    defer("no_such_package")

    assert sys.modules[PACKAGE] is module
    assert "no_such_package" not in sys.modules


def test_lancedb_is_imported_without_its_client_which_still_works():
    output = subprocess.run([sys.executable, "-c", IN_USE], check=True, capture_output=True, text=True).stdout

    assert output.split() == ["True", "False", "ApiClient", "True"]
