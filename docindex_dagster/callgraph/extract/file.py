"""A parsed file, read into the intermediate representation.

How a statement is made of what a query has captured is in `statements.py`, what an expression is in
`expression_rules.py`, and what a language calls its nodes in `languages/`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from docindex_dagster.callgraph.extract.expression_rules import reader_of
from docindex_dagster.callgraph.extract.places import Language, find_places
from docindex_dagster.callgraph.extract.scopes import CALLABLE, Marked, with_scopes
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
    marked = Marked()
    places = find_places(tree, language, reader_of(syntax.expressions))
    placed = [*with_scopes(places, symbols, ids, marked)]
    if syntax.blocks is not None:
        functions = (identifier for symbol, identifier in zip(symbols, ids, strict=True) if symbol.kind in CALLABLE)
        placed = [*with_unique_names(placed, frozenset(functions))]
    plain = [one.statement for one in placed]
    statements = with_this(plain) if syntax.has_selves else plain
    by_type: dict[type, list[Statement]] = {}
    for one in map(_stored, statements) if syntax.stores_paths else statements:
        by_type.setdefault(type(one), []).append(one)
    return FileIR(
        definitions=definitions,
        calls=_of(by_type, CallSite),
        imports=_of(by_type, Import),
        exports=_of(by_type, Export),
        assignments=_of(by_type, Assignment),
        parameters=_of(by_type, Parameter),
        returns=_of(by_type, Return),
        bases=_of(by_type, Base),
        decorators=_of(by_type, Decorator),
        fills=_of(by_type, Fill),
        generics=_of(by_type, Generic),
        receivers=_of(by_type, Receiver),
        forwards=_of(by_type, Forward),
        properties=tuple(marked.properties),
        hidden=tuple(marked.hidden),
        namespace=".".join(marked.namespaces if syntax.nests_namespaces else marked.namespaces[:1]),
    )


_Kind = TypeVar("_Kind")


def _of(by_type: Mapping[type, list[Statement]], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(one for one in by_type.get(kind, ()) if isinstance(one, kind))


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
