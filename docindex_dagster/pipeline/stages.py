"""All stages in order: the single list behind runs, assets and jobs.

Plugins may add stages; see docs/how-to/write-a-plug-in.md.
"""

from functools import cache

from docindex_dagster.core import plugins
from docindex_dagster.core.errors import PluginError
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.pipeline.chunking import CHUNKS, REFERENCES_OF_FILES
from docindex_dagster.pipeline.discovery import COMMITS, DISCOVERED_FILES
from docindex_dagster.pipeline.embedding import EMBEDDINGS
from docindex_dagster.pipeline.graph import KNOWLEDGE_GRAPH
from docindex_dagster.pipeline.publication import STORES
from docindex_dagster.pipeline.stage import Stage

# Each stage comes after the stages whose values it reads.
OURS = (DISCOVERED_FILES, COMMITS, CHUNKS, REFERENCES_OF_FILES, EMBEDDINGS, KNOWLEDGE_GRAPH, STORES)
_PLUGINS: Plugins[Stage] = Plugins("stage", plugins.STAGES, {}, PluginError)


@cache
def stages() -> tuple[Stage, ...]:
    """Return all stages in execution order: built-in ones, then plugins, which cannot block a publication.

    Raises:
        PluginError: A plugin cannot be loaded, is not a stage, uses an existing name, or reads a value that no stage
            makes.
    """
    found = list(OURS)
    waiting = {name: _checked(name, _PLUGINS.load(name)) for name in _PLUGINS.names()}
    while waiting:
        readable = {stage.name for stage in found if stage.storage is not None}
        ready = {name: stage for name, stage in waiting.items() if readable.issuperset(stage.inputs)}
        if not ready:
            name, stage = next(iter(waiting.items()))
            missing = ", ".join(sorted(set(stage.inputs) - readable))
            raise PluginError(
                f"stage {name!r} reads {missing}, which no stage stores; available: {', '.join(sorted(readable))}"
            )
        for name, stage in ready.items():
            _check_names(name, stage, found)
            found.append(waiting.pop(name))
    return tuple(found)


def by_name() -> dict[str, Stage]:
    """Return all stages by name.

    Raises:
        PluginError: A plugin is invalid; see `stages`.
    """
    return {stage.name: stage for stage in stages()}


def _checked(name: str, stage: object) -> Stage:
    if not isinstance(stage, Stage):
        raise PluginError(f"invalid stage {name!r}: expected a docindex_dagster Stage, got {type(stage).__name__}")
    return stage


def _check_names(name: str, stage: Stage, others: list[Stage]) -> None:
    existing = {other.name for other in others} | {product.name for other in others for product in other.products}
    duplicates = existing & {stage.name, *(product.name for product in stage.products)}
    if duplicates:
        raise PluginError(f"stage {name!r} makes {', '.join(sorted(duplicates))}, which another stage already makes")
