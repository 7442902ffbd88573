"""An embedded index of the same sources on one machine, as the reference for a deployment."""

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
    """A project with default settings; `indexed` holds the revisions in its index."""

    folder: Path
    indexed: dict[str, int] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return Layout(self.folder / ".docindex")

    def index(self, declared: Sequence[Repository]) -> None:
        """Index the new and edited sources, and remove sources that are no longer declared."""
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
    """Return the chunks of the stores, each with a hash of all its columns."""
    table = open_reader(layout).table.to_arrow()
    return dict(zip(table["chunk_id"].to_pylist(), table["row_hash"].to_pylist(), strict=True))


def sources(layout: Layout) -> dict[str, tuple[str, int, int]]:
    """Return the published version of each source, and the numbers of nodes and edges in its graph."""
    published = open_reader(layout).generation.sources
    return {key: (source.version, source.nodes, source.edges) for key, source in published.items()}


def queries(declared: Sequence[Repository], count: int, seed: int) -> list[str]:
    """Return queries of two to five consecutive words from the files."""
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
    """Return the top chunks of each query in each mode, in rank order."""
    reader = open_reader(layout)
    return {
        (query, mode.value): [hit.chunk_id for hit in search(reader, query, StaticEmbedder, mode=mode, top_k=top_k)]
        for query in asked
        for mode in modes
    }
