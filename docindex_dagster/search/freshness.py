"""Whether the files of results are still those that were indexed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.search.model import Hit
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, read_beneath


def marked(hits: Sequence[Hit], sources: Mapping[str, Source]) -> list[Hit]:
    """The same hits, each saying whether its file on disk differs from what was indexed.

    None for a commit, and where there is nothing to compare with: the source is no longer declared, or its folder is
    not there.
    """
    known: dict[tuple[str, str, str], bool] = {}
    found = []
    for hit in hits:
        source = sources.get(hit.source)
        if hit.source_type == COMMIT or source is None or not source.path.is_dir():
            found.append(hit)
            continue
        file = (hit.source, hit.path, hit.content_hash)
        if file not in known:
            known[file] = _differs(source, hit.path, hit.content_hash)
        found.append(replace(hit, stale=known[file]))
    return found


def _differs(source: Source, name: str, content_hash: str) -> bool:
    try:
        data = read_beneath(os.fsencode(source.path), name_to_path(name), source.max_file_bytes + 1)
    except OSError:  # gone, or not to be read any more
        return True
    return digest(data) != content_hash
