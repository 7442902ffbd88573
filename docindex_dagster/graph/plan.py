"""What goes into the graph of a source, as the settings say."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.tabling import Limits
from docindex_dagster.chunking.versions import extraction_fingerprint
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import GraphSettings, LLMSettings
from docindex_dagster.graph.concepts.extractor import Extractor
from docindex_dagster.graph.concepts.findings import Findings
from docindex_dagster.graph.concepts.providers import load_extractor
from docindex_dagster.graph.scip import table
from docindex_dagster.graph.version import GRAPH_VERSION

if TYPE_CHECKING:
    from docindex_dagster.graph.build import Content


@dataclass(frozen=True)
class GraphPlan:
    """Whether there is a graph, and what is in it."""

    settings: GraphSettings = field(default_factory=GraphSettings)
    llm: LLMSettings = field(default_factory=LLMSettings)
    precise: str = ""  # the version of the precise index of the source; "" for none

    def of(self, layout: Layout, key: str) -> "GraphPlan":
        """The same for another source, which may have a precise index of its own."""
        precise = table.version(layout, key)
        return self if precise == self.precise else replace(self, precise=precise)

    @property
    def is_wanted(self) -> bool:
        """Whether there is a graph at all."""
        return self.settings.enabled

    @cached_property
    def extractor(self) -> Extractor | None:
        """Who finds concepts."""
        return load_extractor(self.settings, self.llm) if self.settings.enabled else None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that decides the graph of given chunks, and of their files."""
        if not self.settings.enabled:
            return digest_parts(GRAPH_VERSION, "none")
        found_by = self.extractor.name if self.extractor else "none"
        most = self.settings.max_triples_per_chunk
        read = extraction_fingerprint() if self.settings.code else "none"
        return digest_parts(GRAPH_VERSION, read, found_by, str(most), *filter(None, [self.precise]))

    def content(self, concepts: Findings) -> "Content":
        """What goes into the graph, with these concepts."""
        from docindex_dagster.graph.build import Content  # it loads what resolves calls

        found_by = self.settings.concepts if self.extractor else "none"
        limits = Limits(file_s=self.settings.file_timeout_s, source_s=self.settings.timeout_s)
        return Content(self.settings.code, concepts, self.settings.max_triples_per_chunk, found_by, limits)


EVERYTHING = GraphPlan()
"""What the defaults say."""
