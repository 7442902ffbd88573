"""The stages in their order: the one list that runs, assets and jobs are made of."""

from docindex_dagster.pipeline.chunking import CHUNKS
from docindex_dagster.pipeline.discovery import DISCOVERED_FILES
from docindex_dagster.pipeline.embedding import EMBEDDINGS
from docindex_dagster.pipeline.graph import KNOWLEDGE_GRAPH
from docindex_dagster.pipeline.history import COMMITS
from docindex_dagster.pipeline.publication import STORES
from docindex_dagster.pipeline.stage import Stage

# A stage stands after those whose values it reads.
STAGES = (DISCOVERED_FILES, COMMITS, CHUNKS, EMBEDDINGS, KNOWLEDGE_GRAPH, STORES)


def stages() -> tuple[Stage, ...]:
    """All stages, in an order in which they can be run."""
    return STAGES


def by_name() -> dict[str, Stage]:
    """The stages by their names."""
    return {stage.name: stage for stage in stages()}
