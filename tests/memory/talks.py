"""Memory domains for tests: a separate project, messages with given times, and a search for traces of a text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tantivy import Query

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph import extraction
from docindex_dagster.memory import domains
from docindex_dagster.memory.concepts import plan_of, with_follows
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.message import compose
from docindex_dagster.memory.message_index import Overlay, Searcher, embed_query_or_warn
from docindex_dagster.stores.lance_table import load_library
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.tantivy_index import open_published
from tests.memory.logs import DOMAIN

_EMBEDDER = StaticEmbedder()


def project(root: Path, **memory: object) -> Settings:
    """An empty project."""
    root.mkdir(parents=True, exist_ok=True)
    lines = (f"{name} = {value!r}".replace("'", '"') for name, value in {"per_second": 10_000, **memory}.items())
    (root / "docindex.toml").write_text("\n".join(["[memory]", *lines]) + "\n")
    return load_settings(root)


def home_of(settings: Settings, domain: str = DOMAIN) -> Layout:
    return domains.home(Layout(settings.home), domain)


def log_of(settings: Settings, domain: str = DOMAIN) -> Log:
    return open_log(Layout(settings.home), domain)


def overlay_of(settings: Settings, domain: str = DOMAIN) -> Overlay:
    """Return the domain as a newly started process sees it."""
    overlay = Overlay(lambda: settings, domain, log_of(settings, domain))
    overlay.refresh()
    return overlay


def say(log: Log, text: str, at: int, session: str = "s", role: str = "user") -> str:
    """Write a message with the given time and return its id."""
    message = compose(DOMAIN, session, text, role=role)
    log.append([replace(message, at=at)])
    return message.id


@dataclass(frozen=True, slots=True)
class View:
    """A domain as one process sees it."""

    overlay: Overlay
    searcher: Searcher

    def seen(self, queries: Sequence[str]) -> dict[str, Any]:
        """Return everything visible: messages, rows and ranks."""
        ranks = {query: self.ranks(query) for query in queries}
        self.overlay.refresh()
        messages = [(each.message, each.repeats) for each in self.overlay.messages]
        return {"messages": messages, "rows": self.overlay.rows().to_pylist(), "ranks": ranks}

    def ranks(self, query: str) -> list[tuple[str, float]]:
        found, _ = self.searcher.search(embed_query_or_warn(query, _EMBEDDER, []), top_k=20)
        return [(each.chunk_id, each.score) for each, _, _ in found]


def view_of(settings: Settings, domain: str = DOMAIN) -> View:
    overlay = overlay_of(settings, domain)
    return View(overlay, Searcher(overlay, lambda: _EMBEDDER))


def edges_of(settings: Settings, domain: str = DOMAIN) -> list[tuple[str, str, str]]:
    """Return the edges of the published generation of a domain, and those of a build from scratch."""
    found = overlay_of(settings, domain)
    rows = found.rows()
    nothing = Layout(settings.root / "nothing")
    made = extraction.extract(
        nothing, domain, rows, None, plan=plan_of(settings, settings.memory.concepts), previous=None
    )
    assert made.graph is not None
    graph = with_follows(made.graph, [each.message for each in found.messages])
    return _triples(graph.triples.to_pylist())


def _triples(rows: Iterable[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((row["subject"], row["predicate"], row["object"]) for row in rows)


def published_edges(settings: Settings, domain: str = DOMAIN) -> list[tuple[str, str, str]]:
    reader = open_reader(home_of(settings, domain))
    graph = reader.generation.sources[domain].graph
    return _triples(pq.read_table(home_of(settings, domain).graph / graph.triples).to_pylist())


def traces_of(home: Layout, texts: Iterable[str]) -> list[str]:
    """Return the files that contain one of some texts: as bytes, in Parquet, in any LanceDB version, or in Tantivy."""
    wanted = [text.encode() for text in texts]
    found = [name for name, content in _contents(home) if any(text in content for text in wanted)]
    return sorted(set(found))


def _contents(home: Layout) -> Iterable[tuple[str, bytes]]:
    for path in sorted(home.home.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(home.home)), path.read_bytes()
            if path.suffix == ".parquet":
                yield f"{path.name} as a table", repr(pq.read_table(path).to_pylist()).encode()
    if home.lance.is_dir():
        database = load_library().connect(home.lance)
        for name in database.list_tables().tables:
            table = database.open_table(name)
            for version in table.list_versions():
                table.checkout(version["version"])
                yield f"{name} in version {version['version']}", repr(table.to_arrow().to_pylist()).encode()
    for folder in sorted(home.tantivy.glob("*")):
        index = open_published(folder)
        searcher = index.searcher()
        hits = searcher.search(Query.all_query(), limit=max(1, searcher.num_docs)).hits
        yield f"Tantivy {folder.name}", repr([searcher.doc(address).to_dict() for _, address in hits]).encode()
