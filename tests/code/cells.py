"""Table of docs/reference/languages.md: counts of symbols, imports, exports and calls per language."""

from collections.abc import Callable, Collection
from pathlib import Path

from docindex_dagster.code.extraction import Outline
from docindex_dagster.code.symbols import Symbol
from tests.code.outlines import LANGUAGES, outline_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "languages.md"

TYPES = frozenset({"class", "enum", "impl", "interface", "struct", "trait", "type", "union"})

CELLS: dict[str, Callable[[Outline], int]] = {
    "functions": lambda outline: _of_kinds(outline, {"function"}),
    "methods": lambda outline: _of_kinds(outline, {"method"}),
    "types": lambda outline: _of_kinds(outline, TYPES),
    "docstrings": lambda outline: _having(outline, lambda symbol: symbol.docstring),
    "parameters": lambda outline: _having(outline, lambda symbol: symbol.parameters),
    "return types": lambda outline: _having(outline, lambda symbol: symbol.return_type),
    "decorators": lambda outline: _having(outline, lambda symbol: symbol.decorators),
    "imports": lambda outline: len(outline.imports or ()),
    "exports": lambda outline: len(outline.exports or ()),
    "calls": lambda outline: len(outline.calls),
}

NO_NOTION = {
    "bash": {"types", "parameters", "return types", "decorators"},
    "c": {"methods", "exports"},
    "cpp": {"exports"},
    "csharp": {"exports"},
    "elixir": {"exports"},
    "go": {"decorators"},
    "java": {"exports"},
    "javascript": {"return types"},
    "kotlin": {"exports"},
    "lua": {"types", "return types", "decorators", "exports"},
    "php": {"exports"},
    "ruby": {"return types", "decorators", "exports"},
    "sql": {"methods", "decorators", "exports"},
    "swift": {"exports"},
    "zig": {"decorators"},
}
"""Cells that do not apply to a language. Languages with access modifiers on each definition have no exports."""

DASH = "\N{EN DASH}"
"""Marks cells that do not apply to a language."""

_START, _END = "<!-- cells -->\n", "<!-- /cells -->\n"


def count(file: str, cell: str) -> int:
    """Count the symbols, imports, exports or calls of a fixture for a cell."""
    return CELLS[cell](outline_of(file))


def with_table(page: str) -> str:
    """Return the page with the current table."""
    before, rest = page.split(_START)
    return f"{before}{_START}{_table()}{_END}{rest.split(_END)[1]}"


def _table() -> str:
    rows = [["language", *CELLS, "other symbols"], ["---", *("--:" for _ in CELLS), "---"]]
    rows += [_row(file, language) for file, language in LANGUAGES.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(file: str, language: str) -> list[str]:
    kinds = {symbol.kind for symbol in outline_of(file).symbols} - TYPES - {"function", "method"}
    empty = NO_NOTION.get(language, set())
    counts = [DASH if cell in empty else str(count(file, cell)) for cell in CELLS]
    return [f"[{language}](../../tests/fixtures/code/{file})", *counts, ", ".join(sorted(kinds)) or DASH]


def _of_kinds(outline: Outline, kinds: Collection[str]) -> int:
    return sum(symbol.kind in kinds for symbol in outline.symbols)


def _having(outline: Outline, detail: Callable[[Symbol], object]) -> int:
    return sum(bool(detail(symbol)) for symbol in outline.symbols)
