"""What several test modules share."""

import gc
import signal
import subprocess
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

# As the command line does: a tenth of the time of its tests. While tests are collected, nothing is looked for.
gc.set_threshold(50_000)
gc.disable()
# A shell lets what it starts in the background ignore SIGINT, and the commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is.
settings.register_profile("docindex", deadline=None)
settings.load_profile("docindex")

_LONGEST = "incremental"  # the folder of tests that each take a minute

# Its loader finds no text in it, so that it is cut as text.
PAGE_WITHOUT_TEXT = "<html><body><script>start({pages: 12, title: 'marmots'})</script></body></html>\n"
Git = Callable[..., str]

MODEL = Model(StaticEmbedder.name, StaticEmbedder.dimension)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: at the end, the other processes would wait for them."""
    items.sort(key=lambda item: item.path.parent.name != _LONGEST)


def pytest_collection_finish() -> None:
    """Never look through what the modules and the tests themselves hold: a million objects, a second each time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_folder_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Projects that tests list, and indexes that they keep, are none of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        for name in ("DOCINDEX_ROOT", "DOCINDEX_PROJECT"):
            patch.delenv(name, raising=False)
        patch.setenv("DOCINDEX_TRUST", "1")  # tests write their own projects; those of trust take it away
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_project_around_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A `docindex.toml` above the tests' folders is none of theirs, nor of the processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCINDEX_CEILING_DIRECTORIES", str(tmp_path_factory.getbasetemp()))
        yield


@pytest.fixture(scope="session", autouse=True)
def _migrations_are_read_once() -> Iterator[None]:
    """Dagster reads the scripts of all its migrations for each new database: a sixth of the time of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", cache(ScriptDirectory.from_config))
        yield


@pytest.fixture(autouse=True)
def _no_project_of_an_earlier_command() -> None:
    """A command keeps the project that it chose until the next one begins; tests call some functions without one."""
    selected_project.begin(None)


def chunks_of(files: Mapping[str, Sequence[str]], source: str = "library/sample", language: str = "python") -> pa.Table:
    """A `chunks` table in which each text is a chunk that defines a function named after its first word."""
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
    """The references of such files: each defines its functions, and imports `os`."""
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
    """The graph of a source, as its stage makes and keeps it."""
    before = extraction.read(layout, key)
    made = extraction.extract(layout, key, chunks, references_of(chunks), plan=plan, previous=before)
    extraction.write(layout, key, made)
    return made


def publish_rows(
    layout: Layout, key: str, chunks: pa.Table, vectors: pa.Table, model: Model = MODEL, **options: Any
) -> Publication:
    """Publish the rows of a source, with the graph of its chunks."""
    made = extracted(layout, key, chunks, options.get("plan", EVERYTHING))
    return publish(layout, SourceRows(key, chunks, vectors, made), model, **options)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "home")


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Git:
    """Run git in a folder, with no configuration but its own."""
    return git_alone(monkeypatch)


def git_alone(patch: pytest.MonkeyPatch) -> Git:
    """The same for what lives longer than a test."""
    patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    patch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")

    def run(folder: Path, *arguments: str) -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout

    return run
