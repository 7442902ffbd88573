"""The same chunks give the same graph in every process."""

import os
import subprocess
import sys

import pytest

_BUILD = """
import sys
from pathlib import Path
from docindex_dagster.core.hashing import digest
from tests.graph.built import build_graph
from tests.graph.calls import chunks_of
for folder in sys.argv[1:]:
    graph = build_graph(chunks_of(Path(folder)))
    print(folder, digest(repr((graph.nodes.to_pylist(), graph.triples.to_pylist())).encode()))
"""


def built(folders: list[str], seed: int) -> str:
    """Build graphs in a separate process with the given hash seed and return their digests."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", _BUILD, *folders]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """A callable class with similarly named methods, namespaces, and aliases."""
    folder = tmp_path_factory.mktemp("repeatable")
    (folder / "command.py").write_text(
        "class Command:\n"
        "    def __call__(self): return self.invoke()\n"
        "    def invoke(self): return 1\n"
        "    def call(self): return 2\n\n\n"
        "def run(command: Command):\n    return command()\n"
    )
    (folder / "names.cs").write_text(
        "namespace A { class X { public static void Go() { Y.Go(); } } }\n"
        "namespace B { class Y { public static void Go() { } } }\n"
        "namespace C { class Y { public static void Go() { } } }\n"
    )
    (folder / "other.py").write_text("from command import run as start, Command as Task\n\nstart(Task())\n")
    return str(folder)


def test_a_graph_does_not_depend_on_how_a_process_hashes(folder):
    assert len({built([folder], seed) for seed in (1, 2, 3)}) == 1
