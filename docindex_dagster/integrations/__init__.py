"""Retrievers for frameworks that build programs around language models; docs/integrations.md shows them.

Each module needs the framework that it is named after, which an extra of the same name installs; nothing else imports
them. What they share is here: the options of a search, and what they say of a hit.
"""

from docindex_dagster.api import Where
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.search.model import Granularity, GranularityName, Hit, Mode, ModeName

Metadata = dict[str, str | int | float | bool]


class Options(Where, total=False):
    """The options of `Index.search`, which tells what each means."""

    top_k: int | None
    mode: Mode | ModeName
    granularity: Granularity | GranularityName
    rerank: str | None


def metadata_of(hit: Hit) -> Metadata:
    """What is known of a hit beside its text, as plain values under the names that `Hit` has for them.

    Vector stores and tracers of the frameworks take no None, so what a hit does not have is left out. `symbol` is the
    definition at the best match, else that of the whole text; `commit` is the id of the commit that the text describes.
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
