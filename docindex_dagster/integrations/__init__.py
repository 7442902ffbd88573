"""Retrievers for LLM frameworks. docs/how-to/use-langchain-llamaindex-or-dspy.md shows how to use them.

Each module needs the framework it is named after, which the extra of the same name installs. Nothing else imports
these modules. This file holds what they share: the search options and the metadata of a hit.
"""

from docindex_dagster.api import Where
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.model import Granularity, GranularityName, Hit, Intent, IntentName, Mode, ModeName

Metadata = dict[str, str | int | float | bool]


class Options(Where, total=False):
    """The options of `Index.search`, which documents each of them."""

    top_k: int | None
    mode: Mode | ModeName
    granularity: Granularity | GranularityName
    intent: Intent | IntentName | None
    rerank: str | None


def metadata_of(hit: Hit) -> Metadata:
    """Return the fields of a hit except its text, as plain values under the names that `Hit` uses.

    The frameworks' vector stores and tracers reject None, so empty fields are left out. `symbol` is the definition at
    the best match, or else the one that holds the text. `commit` is the id of the commit that the text describes.
    """
    commit = hit.path.removeprefix(COMMIT_PATH) if hit.path.startswith(COMMIT_PATH) else None
    found = {
        "chunk_id": hit.chunk_id,
        "source": hit.source,
        "path": hit.path,
        "file": hit.file,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "title": hit.title or None,
        "symbol": hit.symbol or hit.qualified_name,
        "commit": commit,
        "page": hit.page,
        "language": hit.language,
        "source_type": hit.source_type,
        "score": hit.score,
        "stale": hit.stale,
        "is_weak": hit.is_weak,
    }
    return {name: value for name, value in found.items() if value is not None}
