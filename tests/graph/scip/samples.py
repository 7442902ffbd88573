"""Copies of the small programs in `tests/fixtures/scip`, with indexes from the real indexers."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.layout import Layout
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import Extraction, GraphPlan
from docindex_dagster.graph.scip import table
from docindex_dagster.graph.scip.format import index_message, read_index
from docindex_dagster.graph.scip.importing import ImportResult, import_calls
from docindex_dagster.graph.source_graph import Graph
from tests.graph.built import references_of
from tests.graph.calls import chunks_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scip"
KEY = "library/program"
Edge = tuple[str, str]


@dataclass(frozen=True)
class Shop:
    """A program in its own folder, the index next to it, and the home of its tables."""

    root: Path
    language: str

    @classmethod
    def copy(cls, root: Path, language: str) -> "Shop":
        shutil.copytree(FIXTURES / language, root / "program")
        shutil.copy(FIXTURES / f"{language}.scip", root / "index.scip")
        return cls(root, language)

    @property
    def folder(self) -> Path:
        return self.root / "program"

    @property
    def scip(self) -> Path:
        return self.root / "index.scip"

    @property
    def layout(self) -> Layout:
        return Layout(self.root / "home")

    def chunks(self) -> pa.Table:
        return chunks_of(self.folder)

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        file = self.folder / path
        file.write_text(change(file.read_text("utf-8")), "utf-8")

    def change_index(self, change: Callable[[Any], None]) -> None:
        """Rewrite the index after editing its message."""
        message = index_message().FromString(self.scip.read_bytes())
        change(message)
        self.scip.write_bytes(message.SerializeToString())

    def imported(self) -> ImportResult:
        return import_calls(read_index(self.scip), self.folder, self.chunks())

    def keep(self) -> ImportResult:
        """Import the index, as the command does."""
        found = self.imported()
        table.add(self.layout, KEY, found.table)
        return found

    def extract(self, previous: Extraction | None = None) -> Extraction:
        """Run the graph stage and return its result."""
        plan = GraphPlan().of(self.layout, KEY)
        chunks = self.chunks()
        return extraction.extract(self.layout, KEY, chunks, references_of(chunks), plan=plan, previous=previous)


def graph_of(extracted: Extraction) -> Graph:
    assert extracted.graph is not None
    assert extracted.problem == ""
    return extracted.graph


def calls(graph: Graph) -> dict[Edge, dict[str, Any]]:
    rows = graph.triples.filter(pc.equal(graph.triples["predicate"], "calls")).to_pylist()
    return {(row["subject"], row["object"]): row for row in rows}


def precise(graph: Graph) -> set[Edge]:
    return {edge for edge, row in calls(graph).items() if row["resolution"].startswith("precise, ")}
