"""Text outlines of the parsed fixtures: `inventory.py.outline` belongs to `inventory.py`.

`python -m tests.code` regenerates them all. Then review each change against the fixture: outlines define the expected
result.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from docindex_dagster.code.extraction import Call, Outline, extract
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol

FIXTURES = Path(__file__).parent.parent / "fixtures" / "code"

LANGUAGES = {
    "inventory.py": "python",
    "session.ts": "typescript",
    "Panel.tsx": "tsx",
    "queue.js": "javascript",
    "Ledger.java": "java",
    "server.go": "go",
    "cache.rs": "rust",
    "buffer.c": "c",
    "matrix.cpp": "cpp",
    "Orders.cs": "csharp",
    "parser.rb": "ruby",
    "Mailer.php": "php",
    "Catalog.kt": "kotlin",
    "Library.swift": "swift",
    "Bank.scala": "scala",
    "deploy.sh": "bash",
    "account.lua": "lua",
    "queue.ex": "elixir",
    "Ledger.hs": "haskell",
    "pool.zig": "zig",
    "shop.sql": "sql",
}
"""The language of each fixture, in the order of docs/reference/languages.md."""

_INDENT = 13


def read_fixture(file: str) -> bytes:
    """Return the source text of a fixture."""
    return (FIXTURES / file).read_bytes()


def outline_of(file: str) -> Outline:
    """Parse a fixture and return the result."""
    source = read_fixture(file)
    return extract(parse(source, LANGUAGES[file]), source, LANGUAGES[file])


def outline_path(file: str) -> Path:
    """Return the path of a fixture's outline."""
    return FIXTURES / f"{file}.outline"


def rendered(outline: Outline) -> str:
    """Format an outline as text: the file's items, then its symbols, each with the calls outside its inner symbols."""
    calls = _calls_by_symbol(outline)
    file = _of_file(outline, calls.get(None, []))
    symbols = (_of_symbol(symbol, calls.get(symbol, [])) for symbol in outline.symbols)
    return "\n\n".join("\n".join(lines) for lines in (file, *symbols)) + "\n"


def _of_file(outline: Outline, calls: list[str]) -> Iterator[str]:
    yield from _listed("imports", outline.imports)
    yield from _listed("exports", outline.exports)
    yield from _listed("calls", [" ".join(calls)] if calls else None)


def _of_symbol(symbol: Symbol, calls: list[str]) -> Iterator[str]:
    yield f"{symbol.start_line}-{symbol.end_line} {symbol.kind} {symbol.qualified_name}"
    yield from _listed("  signature", [symbol.signature] if symbol.signature else None)
    yield from _listed("  parameters", ["()"] if symbol.parameters == () else symbol.parameters)
    yield from _listed("  returns", [symbol.return_type] if symbol.return_type else None)
    yield from _listed("  decorators", symbol.decorators)
    yield from _listed("  docstring", symbol.docstring.splitlines() if symbol.docstring else None)
    yield from _listed("  calls", [" ".join(calls)] if calls else None)


def _listed(title: str, lines: Iterable[str] | None) -> Iterator[str]:
    """Return lines one below the other, after their title."""
    for line in lines or ():
        yield f"{title:{_INDENT}} {line}".rstrip()
        title = ""


def _calls_by_symbol(outline: Outline) -> dict[Symbol | None, list[str]]:
    found: dict[Symbol | None, list[str]] = {}
    for call in outline.calls:
        found.setdefault(_innermost(outline.symbols, call), []).append(call.name)
    return found


def _innermost(symbols: Iterable[Symbol], call: Call) -> Symbol | None:
    around = [symbol for symbol in symbols if symbol.start_byte <= call.start_byte < symbol.end_byte]
    return around[-1] if around else None
