"""A parsed file, read into the intermediate representation.

How a statement is made of what a query has captured is in `statements.py`, what an expression is in
`expression_rules.py`, and what a language calls its nodes in `languages/`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from docindex_dagster.callgraph.extract.expression_rules import reader_of
from docindex_dagster.callgraph.extract.places import Language, find_places
from docindex_dagster.callgraph.extract.scopes import CALLABLE, Scoping
from docindex_dagster.callgraph.extract.selves import with_this
from docindex_dagster.callgraph.extract.shadows import with_unique_names
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import (
    Assignment,
    Base,
    CallSite,
    Decorator,
    Definition,
    Export,
    FileIR,
    Fill,
    Forward,
    Generic,
    Import,
    Name,
    Parameter,
    Receiver,
    Return,
    Statement,
)
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree

_FIELDS = {
    "calls": CallSite,
    "imports": Import,
    "exports": Export,
    "assignments": Assignment,
    "parameters": Parameter,
    "returns": Return,
    "bases": Base,
    "decorators": Decorator,
    "fills": Fill,
    "generics": Generic,
    "receivers": Receiver,
    "forwards": Forward,
}


def symbol_ids(names: Sequence[str]) -> list[str]:
    """An id for each symbol of a file: its qualified name, with `~2` and so on where one is defined again."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return found


def read_file(tree: "Tree", language: Language, symbols: Sequence[Symbol]) -> FileIR:
    """What a parsed file with these symbols, in file order, says."""
    syntax, definitions = language.syntax, definitions_of(symbols)
    ids = [definition.id for definition in definitions]
    scoping = Scoping(symbols, ids)
    placed = scoping.statements(find_places(tree, language, reader_of(syntax.expressions)))
    statements: Iterable[Statement]
    if syntax.blocks is not None:
        functions = (identifier for symbol, identifier in zip(symbols, ids, strict=True) if symbol.kind in CALLABLE)
        statements = with_unique_names([*placed], frozenset(functions))
    else:
        statements = [one for one, _, _ in placed]
    if syntax.has_selves:
        statements = with_this([*statements])
    by_type: dict[type, list[Any]] = defaultdict(list)
    for one in map(_stored, statements) if syntax.stores_paths else statements:
        by_type[type(one)].append(one)
    namespaces = scoping.namespaces if syntax.nests_namespaces else scoping.namespaces[:1]
    lists: dict[str, Any] = {name: tuple(by_type[kind]) for name, kind in _FIELDS.items()}
    return FileIR(
        definitions=definitions,
        properties=tuple(scoping.properties),
        hidden=tuple(scoping.hidden),
        namespace=".".join(namespaces),
        **lists,
    )


def definitions_of(symbols: Sequence[Symbol]) -> tuple[Definition, ...]:
    """What a file with these symbols, in file order, defines."""
    ids = symbol_ids([symbol.qualified_name for symbol in symbols])
    return tuple(map(_definition, symbols, ids))


def _definition(symbol: Symbol, identifier: str) -> Definition:
    return Definition(
        id=identifier,
        name=symbol.name,
        kind=symbol.kind,
        qualified=symbol.qualified_name,
        parent=symbol.parent or "",
        returns=declared_type(symbol.return_type) if symbol.return_type else None,
        is_local=bool(symbol.signature and symbol.signature.startswith("static ")),
        line=symbol.start_line,
        byte=symbol.start_byte,
    )


def _stored(statement: Statement) -> Statement:
    """The statement; an assignment to what has a path is to something that is declared elsewhere."""
    if isinstance(statement, Assignment) and statement.role == "bind" and not isinstance(statement.target, Name):
        return statement._replace(role="store")
    return statement
