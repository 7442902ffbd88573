"""Measure a rebuild of the stores from the tables of many sources.

    python -m benchmarks.rebuild [--sources 2000]

Small sources are read, chunked and embedded. Then `CURRENT` is damaged, and indexing one source rebuilds the stores of
all. The output has seconds, sources per second, and the peak resident memory.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from docindex_dagster.callgraph.table import as_table
from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.cache import embed
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources.commits import read_history
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source

_PYTHON = '''"""Part {number} of the service."""

import logging


class Handler{number}:
    """Answers requests for part {number}."""

    def open(self, name: str) -> str:
        """Open what has a name."""
        logging.info("open %s", name)
        return self.close(name)

    def close(self, name: str) -> str:
        return name * {number}
'''
_MARKDOWN = "# Service {number}\n\nHow to install part {number}.\n\n## Use\n\nCall `Handler{number}.open`.\n"


def write_tables(settings: Settings, source: Source, embedder: StaticEmbedder) -> None:
    """Create the tables of sources, as runs do before publication."""
    layout = Layout(settings.home)
    files = discover(source, None)
    commits = read_history(source, None, None, 1).commits
    found = build_chunks(
        source, gather(files, settings.chunking, commits), None, settings.chunking, wants_references=True
    )
    chunks, references = found.table, as_table(found.references, "")
    embeddings = embed(layout, source.key, chunks, None, embedder).table
    made = {"discovered_files": files, "commits": commits, "chunks": chunks, "references": references}
    made["embeddings"] = embeddings
    for asset, table in made.items():
        tables.write(layout.table(asset, source.key), table)


def main() -> None:
    """Create the tables, rebuild the stores, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=2000, metavar="N")
    number = parser.parse_args().sources
    with tempfile.TemporaryDirectory(prefix="docindex-rebuild-") as folder:
        root, embedder = Path(folder), StaticEmbedder()
        settings = Settings(root=root)
        sources = [_source(root / f"service{each}", each) for each in range(number)]
        for source in sources:
            write_tables(settings, source, embedder)
        layout = Layout(settings.home)
        layout.stores.mkdir(parents=True, exist_ok=True)
        layout.current.write_text("damaged")
        before, started = _peak_mib(), time.perf_counter()
        publication = index(settings, sources[0], embedder)
        seconds = time.perf_counter() - started
        chunks = sum(each.chunks for each in publication.generation.sources.values())
        print(f"{len(publication.generation.sources)} sources, {chunks} chunks: {seconds:.1f} s, ", end="")
        print(f"{number / seconds:.0f} sources/s, peak {before:.0f} -> {_peak_mib():.0f} MiB")


def _source(folder: Path, number: int) -> Source:
    folder.mkdir()
    (folder / "README.md").write_text(_MARKDOWN.format(number=number))
    for part in range(2):
        (folder / f"part{part}.py").write_text(_PYTHON.format(number=number * 10 + part))
    return Source(f"library/{folder.name}", "library", folder.name, folder)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
