"""The stages in their order: the one list that runs, assets and jobs are made of.

Packages may add some; see docs/plugins.md.
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

# A stage stands after those whose values it reads.
OURS = (DISCOVERED_FILES, COMMITS, CHUNKS, REFERENCES_OF_FILES, EMBEDDINGS, KNOWLEDGE_GRAPH, STORES)
_OF_PACKAGES: Plugins[Stage] = Plugins("stage", plugins.STAGES, {}, PluginError)


@cache
def stages() -> tuple[Stage, ...]:
    """All stages, in an order in which they can be run: ours, then those of packages, which stop no publication.

    Raises:
        PluginError: one of a package cannot be loaded, is no stage, takes a name that is taken, or reads what no stage
            makes.
    """
    found = list(OURS)
    waiting = {name: _checked(name, _OF_PACKAGES.load(name)) for name in _OF_PACKAGES.names()}
    while waiting:
        readable = {stage.name for stage in found if stage.storage is not None}
        ready = {name: stage for name, stage in waiting.items() if readable.issuperset(stage.inputs)}
        if not ready:
            name, stage = next(iter(waiting.items()))
            missing = ", ".join(sorted(set(stage.inputs) - readable))
            raise PluginError(f"the stage {name!r} reads {missing}, which no stage keeps; there are {sorted(readable)}")
        for name, stage in ready.items():
            _check_names(name, stage, found)
            found.append(waiting.pop(name))
    return tuple(found)


def by_name() -> dict[str, Stage]:
    """The stages by their names.

    Raises:
        PluginError: as `stages`.
    """
    return {stage.name: stage for stage in stages()}


def _checked(name: str, stage: object) -> Stage:
    if not isinstance(stage, Stage):
        raise PluginError(f"the stage {name!r} is a {type(stage).__name__}; it must be a docindex_dagster Stage")
    return stage


def _check_names(name: str, stage: Stage, others: list[Stage]) -> None:
    taken = {other.name for other in others} | {product.name for other in others for product in other.products}
    twice = taken & {stage.name, *(product.name for product in stage.products)}
    if twice:
        raise PluginError(f"the stage {name!r} makes {', '.join(sorted(twice))}, which another stage makes")
