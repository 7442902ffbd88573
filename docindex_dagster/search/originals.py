"""The text of files as they are on disk, for those whose chunks hold another form of it, as of HTML."""

from collections.abc import Callable, Mapping
from functools import cache

from docindex_dagster.core import tables
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.sources.classify import classify_name, is_converted
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.secrets import Secret, mask, secrets_of
from docindex_dagster.sources.text import read_document

# The text of a file of a source, by its path and the hash of its content; None where the file is not that one any more.
Originals = Callable[[str, str, str], str | None]


def originals(layout: Layout, sources: Mapping[str, Source]) -> Originals:
    """Gives the texts of files that are still those that were indexed, with their secrets masked."""
    masked = cache(lambda key: _masked(layout, key))

    def text(key: str, path: str, content_hash: str) -> str | None:
        source, secrets = sources.get(key), masked(key).get((path, content_hash))
        if source is None or secrets is None or is_converted(classify_name(name_to_path(path))):
            return None
        try:
            decoded, found_hash = read_document(source.folder(), path, source.max_file_bytes)
        except (OSError, SourceError):
            return None
        return mask(decoded.text, secrets) if found_hash == content_hash else None

    return text


def _masked(layout: Layout, key: str) -> dict[tuple[str, str], tuple[Secret, ...]]:
    """The secrets of each indexed file, by its path and the hash of its content."""
    files = tables.read(layout.table("discovered_files", key))
    if files is None:
        return {}
    columns = (files[name].to_pylist() for name in ("path", "content_hash", "masked"))
    return {(path, content): secrets_of(rows) or () for path, content, rows in zip(*columns, strict=True) if content}
