"""The same sources in an embedded index of one machine, to compare a deployment with."""

import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Mode
from docindex_dagster.stores.reader import open_reader
from tests.scale.processes import CHECKOUT, without_ours
from tests.scale.repositories import Repository, project

ALL_MODES = (Mode.HYBRID, Mode.BM25, Mode.VECTOR)
_WORD = re.compile(r"[A-Za-z]{4,}")


@dataclass(frozen=True, slots=True)
class Embedded:
    """A project with nothing set, in a folder; `indexed` are the revisions that it has."""

    folder: Path
    indexed: dict[str, int] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return Layout(self.folder / ".docindex")

    def index(self, declared: Sequence[Repository]) -> None:
        """Index those of these sources that are new or edited, and take out what is none of them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = {one.key: one.revision for one in declared}
        for key in self.indexed.keys() - wanted.keys():
            self._run("source", "remove", key)
        (self.folder / "docindex.toml").write_text(project(declared))
        if edited := [key for key, revision in wanted.items() if self.indexed.get(key) != revision]:
            self._run("index", *edited)
        self.indexed.clear()
        self.indexed.update(wanted)

    def _run(self, *arguments: str) -> None:
        environment = without_ours(os.environ) | {"PYTHONPATH": str(CHECKOUT), "HOME": str(self.folder)}
        command: list[str | Path] = [Path(sys.executable).with_name("docindex"), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]


def rows(layout: Layout) -> dict[str, str]:
    """The chunks of the stores, each with the hash of all its columns."""
    table = open_reader(layout).table.to_arrow()
    return dict(zip(table["chunk_id"].to_pylist(), table["row_hash"].to_pylist(), strict=True))


def sources(layout: Layout) -> dict[str, tuple[str, int, int]]:
    """What is published of each source: its version, and the nodes and edges of its graph."""
    published = open_reader(layout).generation.sources
    return {key: (source.version, source.nodes, source.edges) for key, source in published.items()}


def queries(declared: Sequence[Repository], count: int, seed: int) -> list[str]:
    """Words of the files, two to five that stand together."""
    chance = random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        files = [path for path in sorted(chance.choice(declared).folder.iterdir()) if path.is_file()]
        if not files:
            continue
        words = _WORD.findall(chance.choice(files).read_text(errors="replace"))
        if len(words) > 20:
            at = chance.randrange(len(words) - 5)
            found.append(" ".join(words[at : at + chance.randint(2, 5)]))
    return found


def ranks(
    layout: Layout, asked: Sequence[str], modes: Sequence[Mode] = ALL_MODES, top_k: int = 10
) -> dict[tuple[str, str], list[str]]:
    """The best chunks of each query in each mode, in their order."""
    reader = open_reader(layout)
    return {
        (query, mode.value): [hit.chunk_id for hit in search(reader, query, StaticEmbedder, mode=mode, top_k=top_k)]
        for query in asked
        for mode in modes
    }
