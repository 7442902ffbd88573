"""Extraction of the intermediate representation of a parsed file.

`statements.py` converts query captures into statements, `expression_rules.py` nodes into expressions, and `languages/`
defines the node types of each language.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docindex_dagster.callgraph.extract.captured_statements import Language, find_places
from docindex_dagster.callgraph.extract.expression_rules import reader_of
from docindex_dagster.callgraph.extract.renaming import NamesIn, Renaming, expressions_of, renamed, with_unique_names
from docindex_dagster.callgraph.extract.scopes import CALLABLE, Scoping
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Assignment,
    Base,
    CallSite,
    Decorator,
    Definition,
    Export,
    Expression,
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
    scope_of,
)
from docindex_dagster.callgraph.nesting import with_parents
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
    """Return an id for each symbol of a file: its qualified name, with `~2` and so on for redefinitions."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return found


def read_file(tree: "Tree", language: Language, symbols: Sequence[Symbol]) -> FileIR:
    """Return the IR of a parsed file with these symbols, in file order."""
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
    """Return the definitions for the symbols of a file, in file order."""
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
    """Turn an assignment to a path into a store, since the target is declared elsewhere."""
    if isinstance(statement, Assignment) and statement.role == "bind" and not isinstance(statement.target, Name):
        return statement._replace(role="store")
    return statement


_SELVES = frozenset({"self", "cls"})


def with_this(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Replace names of the receiver, such as `self` or `cls`, with `this`."""
    first, others = _named(statements)
    classes = {scope.rpartition(".")[0] for scope, name in first.items() if name in _SELVES}

    def is_this(scope: str, name: str) -> bool:
        for around in with_parents(scope):
            if (around, name) in others:
                return around in classes and others[around, name] is UNKNOWN  # parameter of an anonymous function
            if first.get(around) == name:
                return True
        return False

    names_in = NamesIn(_SELVES)
    renamings: dict[tuple[str, ...], Renaming] = {}  # by the names that refer to `this`
    by_scope: dict[str, Renaming] = {}
    for one in statements:
        scope = scope_of(one)
        if scope not in by_scope:
            selves = tuple(name for name in _SELVES if is_this(scope, name))
            by_scope[scope] = renamings.setdefault(selves, Renaming(dict.fromkeys(map(Name, selves), THIS)))
        has_this = by_scope[scope] and any(map(names_in.__getitem__, expressions_of(one)))
        yield renamed(one, by_scope[scope]) if has_this else one


def _named(statements: Iterable[Statement]) -> tuple[dict[str, str], dict[tuple[str, str], Expression]]:
    """Return the first parameters of functions, and other bindings named like a receiver."""
    first: dict[str, str] = {}
    others: dict[tuple[str, str], Expression] = {}
    for one in statements:
        match one:
            case Parameter() if one.scope not in first:
                first[one.scope] = one.name
            case Parameter():
                others[one.scope, one.name] = one.value
            case Assignment(_, scope, Name(name), value) if name in _SELVES:
                others[scope, name] = value
    return first, others


def definitions_of_chunks(rows: Iterable[Mapping[str, Any]]) -> Iterator[Definition]:
    """Yield the definitions of the symbols in chunks, for files parsed only by a third-party chunker."""
    symbols = [(row["start_byte"] or 0, symbol) for row in rows for symbol in row["symbols"] or ()]
    ids = symbol_ids([symbol["qualified_name"] for _, symbol in symbols])
    for identifier, (byte, symbol) in zip(ids, symbols, strict=True):
        yield Definition(
            id=identifier,
            name=symbol["name"],
            kind=symbol["kind"],
            qualified=symbol["qualified_name"],
            parent=symbol["parent"] or "",
            returns=declared_type(symbol["returns"]) if symbol["returns"] else None,
            is_local=bool(symbol["is_local"]),
            line=symbol["start_line"],
            byte=byte,
        )
