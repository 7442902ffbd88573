"""Shared fixtures and helpers."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from alembic.script import ScriptDirectory
from hypothesis import settings

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.extract.file import definitions_of_chunks
from docindex_dagster.callgraph.table import Extracted, as_table, reference_rows, referring
from docindex_dagster.chunking.chunker import Draft, FileDrafts
from docindex_dagster.chunking.rows import CutFile, FileIdentity, rows
from docindex_dagster.cli import selected_project
from docindex_dagster.code.symbols import Symbol
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.embedding.build import build_embeddings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import EVERYTHING, Extraction, GraphPlan
from docindex_dagster.stores.publish import Publication, publish
from docindex_dagster.stores.rows import SourceRows
from docindex_dagster.stores.staging import Model

# The command line sets the same threshold, which saves a tenth of its tests' time. Collection runs without the garbage
# collector.
gc.set_threshold(50_000)
gc.disable()
# A shell makes its background jobs ignore SIGINT, and the commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Without bytecode, each of the hundreds of processes that tests start would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The duration of an example depends on how busy the machine is.
settings.register_profile("docindex", deadline=None)
settings.load_profile("docindex")

_LONGEST = "incremental"  # each of its tests takes about a minute

# The loader finds no text in this page, so docindex chunks its source as plain text.
PAGE_WITHOUT_TEXT = "<html><body><script>start({pages: 12, title: 'marmots'})</script></body></html>\n"
Git = Callable[..., str]

MODEL = Model(StaticEmbedder.name, StaticEmbedder.dimension)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that no worker idles at the end."""
    items.sort(key=lambda item: item.path.parent.name != _LONGEST)


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests from garbage collection: a million objects, one second per pass."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_folder_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the project list and the caches of tests out of the user's folders, except for the compiled secret rules.

    Compiling them takes seven seconds, which every process with an empty cache would spend.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KF_RULE_CACHE_DIR", str(caches / "kingfisher" / "rule-cache"))
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        for name in ("DOCINDEX_ROOT", "DOCINDEX_PROJECT"):
            patch.delenv(name, raising=False)
        patch.setenv("DOCINDEX_TRUST", "1")  # tests write their own projects; the tests of trust unset it
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_project_around_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide any `docindex.toml` above the test folders from tests and their child processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCINDEX_CEILING_DIRECTORIES", str(tmp_path_factory.getbasetemp()))
        yield


@pytest.fixture(scope="session", autouse=True)
def _migrations_are_read_once() -> Iterator[None]:
    """Cache Dagster's migration scripts: reading them for each new database takes a sixth of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", cache(ScriptDirectory.from_config))
        yield


@pytest.fixture(autouse=True)
def _no_project_of_an_earlier_command() -> None:
    """Clear the project selected by the previous command; some tests call functions without selecting one."""
    selected_project.begin(None)


def chunks_of(files: Mapping[str, Sequence[str]], source: str = "library/sample", language: str = "python") -> pa.Table:
    """Return a `chunks` table in which each text is a chunk that defines a function named after its first word."""
    cut = []
    for path, texts in sorted(files.items()):
        drafts = []
        for index, text in enumerate(texts):
            symbol = Symbol(
                text.split()[0], "function", text.split()[0], None, None, index + 1, index + 1, 0, len(text)
            )
            drafts.append(Draft(text, "function", index + 1, index + 1, None, None, symbol, (symbol,)))
        content_hash = digest("\n".join(texts).encode())
        file = FileIdentity(source, "library", path, content_hash, "code", language, None, is_uncommitted=False)
        cut.append(CutFile(file, FileDrafts(tuple(drafts), imports=("os",))))
    return rows(cut, count_tokens)


def references_of(chunks: pa.Table) -> pa.Table:
    """Return the references of such chunks: each defines its function and imports `os`."""
    rows = []
    for path, hashed, language in (row.values() for row in referring(chunks).to_pylist()):
        of_file = chunks.filter(pc.equal(chunks["path"], path)).to_pylist()
        imported = ir.Import("name", "", "", "os", "", is_passed_on=False, line=1, byte=0)
        defined = tuple(definitions_of_chunks(of_file))
        rows.append(Extracted(path, hashed, language, ir.FileIR(defined, imports=(imported,))))
    return as_table(reference_rows(rows), "")


def vectors_of(chunks: pa.Table) -> pa.Table:
    return build_embeddings(chunks, None, StaticEmbedder(), "library/sample").table


def extracted(layout: Layout, key: str, chunks: pa.Table, plan: GraphPlan = EVERYTHING) -> Extraction:
    """Extract and store the graph of a source, as its stage does."""
    before = extraction.read(layout, key)
    made = extraction.extract(layout, key, chunks, references_of(chunks), plan=plan, previous=before)
    extraction.write(layout, key, made)
    return made


def publish_rows(
    layout: Layout, key: str, chunks: pa.Table, vectors: pa.Table, model: Model = MODEL, **options: Any
) -> Publication:
    """Publish the rows of a source with the graph of its chunks."""
    made = extracted(layout, key, chunks, options.get("plan", EVERYTHING))
    return publish(layout, SourceRows(key, chunks, vectors, made), model, **options)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "home")


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Git:
    """Return a function that runs git in a folder without the user's configuration."""
    return git_alone(monkeypatch)


def git_alone(patch: pytest.MonkeyPatch) -> Git:
    """Return the same function for fixtures that outlive a test."""
    patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    patch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")

    def run(folder: Path, *arguments: str) -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout

    return run
