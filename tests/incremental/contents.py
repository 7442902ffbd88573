"""The complete contents of an index as comparable values, and full builds to compare them with."""

import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from docindex_dagster.core import tables
from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources.commits import read_history
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.previous_listing import HEAD
from docindex_dagster.stores import graph_files, link_files, packs, row_files, tantivy_index
from docindex_dagster.stores.analysis import stems, terms
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation
from docindex_dagster.stores.reader import Reader, open_reader

# A file may be rewritten with the same bytes, so its timestamp is not indexed content.
_IGNORED = {"discovered_files": ["mtime_ns"]}
_ASSETS = ("discovered_files", "commits", "chunks", "references", "embeddings", "graph_nodes", "graph_triples")
# The time of publication and file names are not published content.
_NOT_CONTENT = ("changed_at", "graph", "pack", "texts")

Contents = dict[str, Any]

_MOST_BUILT = 200
_built: dict[str | None, Contents] = {}  # keyed by a digest of the inputs


def tables_of(layout: Layout, keys: Iterable[str]) -> Contents:
    """Return the rows of every table of these sources."""
    found: Contents = {}
    for key in keys:
        for asset in _ASSETS:
            table = tables.read(layout.table(asset, key))
            if table is not None:
                kept = table.drop_columns([name for name in _IGNORED.get(asset, ()) if name in table.column_names])
                found[f"table {asset} of {key}"] = _rows(kept)
    return found


def stores_of(layout: Layout, words: Iterable[str] = ()) -> Contents:
    """Return every row of the three stores, and the chunks of each term: all terms of the rows, and `words`."""
    reader = open_reader(layout)
    stored = _stored(reader)
    found: Contents = {
        "LanceDB": _rows(reader.table.to_arrow()),
        "Tantivy rows": stored,
        "Tantivy terms": _postings(reader, stored, words),
    }
    for key, source in reader.generation.sources.items():
        found[f"published {key}"] = _published(source)
        found[f"Tantivy keys of {key}"] = _rows(tantivy_index.held(reader.searcher, reader.index.schema, [key]))
        graph = graph_files.read(reader.graphs, source.graph) if source.graph else None
        found[f"nodes of {key}"] = _rows(graph.nodes) if graph else None
        found[f"triples of {key}"] = _rows(graph.triples) if graph else None
    return found


def from_nothing(settings: Settings, sources: Sequence[Source], home: Path, words: Iterable[str] = ()) -> Contents:
    """Return the tables and stores of full builds, each source in its own temporary home.

    The build of a folder is cached by its settings and by its files and commits, discovered from scratch.
    """
    wanted = settings.model_copy(update={"home": home})
    return _together([_build(wanted, source, sorted(words)) for source in sources])


def _build(settings: Settings, source: Source, words: Sequence[str]) -> Contents:
    made_from = None if source.remote else _inputs(settings, source, words)
    if made_from in _built:
        return _built[made_from]
    layout = Layout(settings.home)
    try:
        index(settings, source, StaticEmbedder())
        contents = tables_of(layout, [source.key]) | stores_of(layout, words)
    finally:
        shutil.rmtree(layout.home, ignore_errors=True)
    if made_from is not None:
        if len(_built) == _MOST_BUILT:
            _built.clear()
        _built[made_from] = contents
    return contents


def _inputs(settings: Settings, source: Source, words: Sequence[str]) -> str:
    """Return a digest of everything that determines the build of a folder."""
    files = discover(source, None)
    head = (files.schema.metadata or {}).get(HEAD)
    commits = read_history(source, head.decode() if head else None, None, settings.history.commits).commits
    listed = files.drop_columns(_IGNORED["discovered_files"])
    return digest(repr((settings, source, words, head, listed.to_pylist(), commits.to_pylist())).encode())


def _together(parts: Sequence[Contents]) -> Contents:
    """Merge the contents of one index per source into those of a single index."""
    rows = [row for part in parts for row in part["LanceDB"]]
    stored = [row for part in parts for row in part["Tantivy rows"]]
    terms: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        for field, term, chunk_ids in part["Tantivy terms"]:
            terms.setdefault((field, term), []).extend(chunk_ids)
    of_sources = {name: value for part in parts for name, value in part.items()}
    return of_sources | {
        "LanceDB": sorted(rows, key=repr),
        "Tantivy rows": sorted(stored, key=lambda row: row["chunk_id"]),
        "Tantivy terms": [(field, term, sorted(ids)) for (field, term), ids in sorted(terms.items())],
    }


def difference(found: Contents, expected: Contents) -> str:
    """Return the first difference with its rows, or an empty string if both are equal."""
    for name in sorted({*found, *expected}):
        left, right = found.get(name), expected.get(name)
        if left == right:
            continue
        if not isinstance(left, list) or not isinstance(right, list):
            return f"{name} is\n  {left}\nbut from nothing\n  {right}"
        alone = [row for row in left if row not in right], [row for row in right if row not in left]
        return f"{name}: {_columns(*alone)}left over {_shown(alone[0])}\nmissing {_shown(alone[1])}" + (
            "" if any(alone) else f"{len(left)} rows with repeats instead of {len(right)}"
        )
    return ""


def leftovers(layout: Layout) -> list[str]:
    """Return temporary files and files that no generation needs."""
    generations = [generation for previous in (False, True) if (generation := _generation(layout, previous=previous))]
    folders = {generation.tantivy for generation in generations}
    graphs = {name for generation in generations for name in generation.loose_graph_files()}
    strangers = [path for path in layout.tantivy.glob("*") if path.name not in folders]
    strangers += [path for path in layout.graph.glob("*") if path.name not in graphs]
    packed = {pack for generation in generations for pack in packs.sources_by_pack(generation)}
    strangers += [path for path in layout.packs.glob("*") if path.name.partition(".")[0] not in packed]
    linked = {name for generation in generations for name in link_files.names(generation)}
    strangers += [path for path in layout.links.glob("*") if path.name not in linked]
    rows = {name for generation in generations for name in row_files.names(generation)}
    strangers += [path for path in layout.rows.glob("*") if path.name not in rows]
    strangers += [path for path in layout.home.rglob("*.tmp") if path.is_file()]
    return [str(path.relative_to(layout.home)) for path in strangers]


def _generation(layout: Layout, *, previous: bool) -> Generation | None:
    with suppress(StoreError):
        return read_generation(layout, previous=previous)
    return None


def problems(layout: Layout) -> list[str]:
    """Return the problems that `docindex doctor` reports."""
    return [str(asdict(finding)) for finding in examine(layout)]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows, sorted by their values."""
    return sorted(table.to_pylist(), key=repr)


def _stored(reader: Reader) -> list[dict[str, Any]]:
    import tantivy

    if not reader.searcher.num_docs:
        return []
    hits = reader.searcher.search(tantivy.Query.all_query(), limit=reader.searcher.num_docs, count=False).hits
    rows = [tantivy_index.stored_row(reader.searcher, address) for _, address in hits]
    return sorted(rows, key=lambda row: row["chunk_id"])


def _postings(reader: Reader, stored: list[dict[str, Any]], words: Iterable[str]) -> list[tuple[str, str, list[str]]]:
    import tantivy

    texts = (text for row in stored for text in (row["text"], row["path"], *(row["heading_path"] or ())))
    vocabulary = {term for text in texts for term in terms(text)} | set(words)
    vocabulary |= set(stems(sorted(vocabulary)))
    wanted = {(field, term) for field in tantivy_index.TERM_FIELDS for term in vocabulary}
    wanted |= {(name, row[name]) for row in stored for name in tantivy_index.EXACT_FIELDS if row[name] is not None}
    found = []
    for field, term in sorted(wanted):
        query = tantivy.Query.term_query(reader.index.schema, field, term)
        hits = reader.searcher.search(query, limit=max(1, reader.searcher.num_docs), count=False).hits
        ids = tantivy_index.chunk_ids(reader.searcher, [address for _, address in hits])
        if ids:
            found.append((field, term, sorted(ids)))
    return found


def _published(source: PublishedSource) -> dict[str, Any]:
    return {name: value for name, value in asdict(source).items() if name not in _NOT_CONTENT}


def _columns(left: list[Any], right: list[Any]) -> str:
    """Return the columns in which rows of a chunk differ, with the values of the first such row."""
    of_chunks = {row["chunk_id"]: row for row in right if isinstance(row, dict) and "chunk_id" in row}
    for row in left:
        other = of_chunks.get(row["chunk_id"]) if isinstance(row, dict) and "chunk_id" in row else None
        if other is not None:
            differing = {key: (row[key], other.get(key)) for key in row if row[key] != other.get(key)}
            return f"columns that differ: {json.dumps(differing, default=str)[:1000]}\n"
    return ""


def _shown(rows: list[Any]) -> str:
    return f"{len(rows)} rows" + "".join(f"\n  {json.dumps(row, default=str)[:300]}" for row in rows[:3])
