"""Commit history of the indexed repositories: the latest commits, or those that match a query."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.schemas import COMMIT, COMMIT_PATH, COMMITS
from docindex_dagster.core.settings import Settings
from docindex_dagster.core.traces import spanned
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters, glob_to_regex
from docindex_dagster.search.model import Hit
from docindex_dagster.search.reranking.protocol import ignore_warning
from docindex_dagster.stores.published_tables import read_commits
from docindex_dagster.stores.reader import Reader


@dataclass(frozen=True, slots=True)
class CommitFilters:
    """Filters for commits; a commit must match every filter that is set."""

    sources: tuple[str, ...] = ()
    author: str | None = None  # substring of the name or e-mail address, case-insensitive
    since: datetime | None = None
    path_glob: str | None = None  # at least one file must match


@spanned("log")
def log(
    reader: Reader,
    query: str,
    embedder: Callable[[], Embedder],
    *,
    top_k: int = 10,
    filters: CommitFilters | None = None,
    pool: int = 50,
    warn: Callable[[str], None] = ignore_warning,
) -> list[dict[str, Any]]:
    """Return commits as rows of the schema `COMMITS`: the best matches for a query, or the latest without a query.

    Args:
        reader: an open generation.
        query: any text; if it is empty, commits are listed from newest to oldest.
        embedder: returns the model; called only if there is a query.
        top_k: maximum number of commits.
        filters: conditions for every commit.
        pool: minimum number of candidates per retriever.
        warn: called with the reason if commits are found by words only.

    Raises:
        QueryError: a filter is too complex.
        DamagedStoreError: a store cannot be read.
    """
    if not query.strip():
        return newest(reader, top_k=top_k, filters=filters)
    filters = filters or CommitFilters()
    commits = _select(reader, filters)
    if not commits.num_rows:
        return []
    is_narrowed = bool(filters.author or filters.since or filters.path_glob)
    paths = tuple(COMMIT_PATH + commit for commit in commits["commit"].to_pylist()) if is_narrowed else ()
    chunk_filters = Filters(sources=filters.sources, source_types=(COMMIT,), paths=paths)
    return _rows(search(reader, query, embedder, top_k=top_k, filters=chunk_filters, pool=pool, warn=warn), commits)


def newest(reader: Reader, *, top_k: int, filters: CommitFilters | None = None) -> list[dict[str, Any]]:
    """Return the latest commits as rows of the schema `COMMITS`, from newest to oldest.

    Raises:
        QueryError: a filter is too complex.
        DamagedStoreError: a store cannot be read.
    """
    commits = _select(reader, filters or CommitFilters()).sort_by([("committed_at", "descending")])
    rows: list[dict[str, Any]] = commits.slice(0, top_k).to_pylist()
    return rows


def _select(reader: Reader, filters: CommitFilters) -> pa.Table:
    Filters(path_glob=filters.path_glob).check(reader.index.schema)
    return _filter(_commits(reader, filters.sources), filters)


def commits_of(
    settings: Settings,
    reader: Reader,
    query: str,
    *,
    top_k: int,
    filters: CommitFilters,
    warn: Callable[[str], None] = ignore_warning,
) -> list[dict[str, Any]]:
    """Call `log` with the model and pool size from a project's settings.

    Raises:
        QueryError: see `log`.
        DamagedStoreError: see `log`.
    """
    pool = settings.search.candidates
    return log(
        reader, query, lambda: load_embedder(settings.embedding), top_k=top_k, filters=filters, pool=pool, warn=warn
    )


def _commits(reader: Reader, sources: tuple[str, ...]) -> pa.Table:
    """Return the commits of the published sources."""
    keys = [key for key in reader.generation.sources if not sources or key in sources]
    commits = pa.concat_tables([COMMITS.empty_table(), *(read_commits(reader.layout, key) for key in keys)])
    return commits.take(pc.index_in(pc.unique(commits["commit"]), commits["commit"]))  # branches share commits


def _filter(commits: pa.Table, filters: CommitFilters) -> pa.Table:
    if filters.author is not None:
        people = pc.binary_join_element_wise(commits["author"], commits["author_email"], " ")
        commits = commits.filter(pc.match_substring(people, filters.author, ignore_case=True))
    if filters.since is not None:
        since = pa.scalar(filters.since, COMMITS.field("committed_at").type)
        commits = commits.filter(pc.fill_null(pc.greater_equal(commits["committed_at"], since), fill_value=False))
    if filters.path_glob is not None:
        commits = commits.take(_touching(commits["files"].combine_chunks(), filters.path_glob))
    return commits


def _touching(files: pa.ListArray, glob: str) -> pa.Array:
    """Return the positions of the commits with a matching file."""
    pattern = f"^(?:{glob_to_regex(glob)})$"
    each = files.flatten()
    names = (each.field("path"), pc.fill_null(each.field("renamed_from"), ""))
    matches = pc.or_(*(pc.match_substring_regex(name, pattern) for name in names))
    return pc.unique(pc.list_parent_indices(files).filter(matches))


def _rows(hits: list[Hit], commits: pa.Table) -> list[dict[str, Any]]:
    """Return the commits of hits; skips commits missing from the table because another run is about to publish it."""
    hashes = pa.array([hit.path.removeprefix(COMMIT_PATH) for hit in hits], pa.string())
    positions = pc.index_in(pc.unique(hashes), commits["commit"].combine_chunks()).drop_null()
    rows: list[dict[str, Any]] = commits.take(positions).to_pylist()
    return rows
