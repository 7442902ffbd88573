"""Small programs with call graphs labeled by hand, before any resolver ran: `tests/fixtures/calls`.

A program is a folder `LANGUAGE/NAME` with its sources and `calls.txt`, whose lines are `CALLER -> CALLEE`. Both sides
are `PATH:QUALIFIED.NAME`, with `@LINE` if a name is defined more than once. `PATH:<module>` is the top level of a file,
and `external:NAME` is outside the program. An edge on a line that starts with `~` is neither required nor wrong.
Creating an object calls its class; a call through an interface calls the method of the declared type.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.extract.file import symbol_ids
from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.rows import ChunkedFiles, FileJob
from docindex_dagster.chunking.worker import chunk_files
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.graph.source_graph import Graph
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from tests.graph.built import build_graph

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "calls"
_LABELS = "calls.txt"
_OUTSIDE = ("external", "unresolved")
# Languages whose labels omit namespaces.
_NAMESPACES = (".cpp", ".hpp", ".cc", ".hh", ".cxx", ".hxx", ".h", ".cs", ".php", ".java")
# Languages whose labels omit the receiver types of extension functions and the names of companion objects.
_LEFT_OUT = (".kt", ".kts")
_LIKE_ITS_CLASS = re.compile(r"(^|[.])(\w+)[.]\2$")
_SIZES = ChunkingSettings()
_OPTIONS = ChunkOptions(
    Sizes(_SIZES.target_tokens, _SIZES.overlap_tokens, _SIZES.max_tokens, _SIZES.min_tokens), _SIZES.code_chars
)


class Place(NamedTuple):
    """A symbol: its path, its name in every form that labels use, and its lines (0 for a file)."""

    names: frozenset[str]
    first: int
    last: int


class Call(NamedTuple):
    """A resolved edge."""

    caller: Place
    callee: Place
    line: int
    resolution: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Calls found, calls that are wrong, and calls missed."""

    found: int
    wrong: tuple[Call, ...]
    missed: tuple[tuple[str, str], ...]

    @property
    def needed(self) -> int:
        """The number of calls inside the program."""
        return self.found + len(self.missed)


def programs(root: Path = PROGRAMS) -> list[Path]:
    """Return the folders of all programs in languages whose calls are resolved."""
    return sorted(file.parent for file in root.glob(f"*/*/{_LABELS}"))


@cache
def judge(program: Path) -> Judgement:
    """Compare the graph of a program with its labels."""
    needed, allowed = _labels(program)
    found: set[tuple[str, str]] = set()
    wrong = []
    for call in resolved_calls(program):
        hits = {label for label in needed if _is(call.caller, label[0]) and _is(call.callee, label[1])}
        found |= hits
        if not hits and not any(_is(call.caller, a) and _is(call.callee, b) for a, b in allowed):
            wrong.append(call)
    return Judgement(len(found), tuple(wrong), tuple(sorted(needed - found)))


def resolved_calls(program: Path) -> Iterator[Call]:
    """Return the calls resolved to a symbol inside a program."""
    chunks, graph = built(program)
    nodes = graph.nodes.filter(pc.equal(graph.nodes["type"], "module"))["node"].to_pylist()
    modules = {node.partition("::")[2] for node in nodes}
    spans = _spans(chunks)
    calls = graph.triples.filter(pc.equal(graph.triples["predicate"], "calls"))
    for row in calls.to_pylist():
        if row["object_type"] not in _OUTSIDE:
            caller, callee = (_place(row[end], modules, spans) for end in ("subject", "object"))
            yield Call(caller, callee, row["line"], row["resolution"])


@cache
def built(program: Path) -> tuple[pa.Table, Graph]:
    """Return the chunks of a program, or of all programs in a language, and their graph."""
    chunks = chunks_of(program)
    return chunks, build_graph(chunks)


def chunks_of(folder: Path) -> pa.Table:
    """Chunk a folder in this process."""
    return cut(folder).rows.sort_by([("path", "ascending"), ("chunk_index", "ascending")])


def cut(folder: Path, *, wants_references: bool = False) -> ChunkedFiles:
    """Return a worker's result for the files of a folder."""
    source = Source("library/program", "library", "program", folder)
    files = discover(source)
    jobs = [
        FileJob(
            source.key,
            source.kind,
            row["path"],
            row["content_hash"],
            row["source_type"],
            row["language"],
            commit=None,
            is_uncommitted=False,
            root=folder,
            chunker=row["loader"],
            size=0,
            wants_references=wants_references,
        )
        for row in files.filter(pc.is_null(files["skipped_reason"])).to_pylist()
    ]
    return chunk_files(jobs, _OPTIONS)


def _spans(chunks: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the lines of each symbol by its node."""
    symbols: dict[str, list[dict[str, int]]] = {}
    for row in chunks.select(["path", "symbols"]).to_pylist():
        symbols.setdefault(row["path"], []).extend(row["symbols"] or ())
    return {
        f"{path}::{identifier}": (symbol["start_line"], symbol["end_line"])
        for path, listed in symbols.items()
        for identifier, symbol in zip(symbol_ids([str(one["qualified_name"]) for one in listed]), listed, strict=True)
    }


def _place(node: str, modules: set[str], spans: dict[str, tuple[int, int]]) -> Place:
    path, mark, identifier = node.partition("::")
    if not mark:
        return Place(frozenset({f"{path}:<module>"}), 0, 0)
    qualified = identifier.partition("~")[0]
    if path.endswith(_NAMESPACES):
        around = [module for module in modules if f"{qualified}.".startswith(f"{module}.")]
        inner = max(around, key=len, default="")
        qualified = qualified.removeprefix(f"{inner}.") if inner != qualified else qualified
    names = {"<module>" if path.endswith(_NAMESPACES) and inner == qualified else qualified}
    if path.endswith(_LEFT_OUT):
        *parts, last = qualified.split(".")
        names |= {".".join([*parts[:at], *parts[at + 1 :], last]) for at in range(len(parts))}
    return Place(frozenset(_plain(f"{path}:{name}") for name in names), *spans[node])


def _is(place: Place, label: str) -> bool:
    name, at, line = label.rpartition("@")
    if not at or not line.isdecimal():
        return _plain(label) in place.names
    return _plain(name) in place.names and place.first <= int(line) <= place.last


def _plain(label: str) -> str:
    """Normalize a name as labels write it: a constructor is its class, and JavaScript's indirections are omitted."""
    path, _, name = label.rpartition(":")
    name = name.removeprefix("module.").removeprefix("exports.").replace(".prototype", "").replace(".Companion", "")
    name = re.sub(r"\.(?:constructor|__init__|__construct|initialize)$", "", name)
    name = name.removesuffix(".init") if path.endswith(".swift") else name
    name = re.sub(r"\.operator(?=\W)", ".", name) if path.endswith(".cs") else name
    name = _LIKE_ITS_CLASS.sub(r"\1\2", name)
    return f"{path}:{name}"


def _labels(program: Path) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return the required calls, and those that are neither required nor wrong."""
    needed: set[tuple[str, str]] = set()
    allowed: set[tuple[str, str]] = set()
    for line in (program / _LABELS).read_text("utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        caller, _, callee = text.removeprefix("~").strip().partition(" -> ")
        if not callee.startswith("external:"):
            (allowed if text.startswith("~") else needed).add((caller.strip(), callee.strip()))
    return needed, allowed
