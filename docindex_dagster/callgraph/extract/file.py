"""A parsed file, read into the intermediate representation.

How a statement is made of what a query has captured is in `statements.py`, what an expression is in
`expression_rules.py`, and what a language calls its nodes in `languages/`.
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


_SELVES = frozenset({"self", "cls"})


def with_this(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements with `this` where the object itself, or its class, is meant."""
    first, others = _named(statements)
    classes = {scope.rpartition(".")[0] for scope, name in first.items() if name in _SELVES}

    def is_this(scope: str, name: str) -> bool:
        for around in with_parents(scope):
            if (around, name) in others:
                return around in classes and others[around, name] is UNKNOWN  # of a function without a name in it
            if first.get(around) == name:
                return True
        return False

    names_in = NamesIn(_SELVES)
    renamings: dict[tuple[str, ...], Renaming] = {}  # by the names that are `this`
    meant: dict[str, Renaming] = {}  # by scope
    for one in statements:
        scope = scope_of(one)
        if scope not in meant:
            selves = tuple(name for name in _SELVES if is_this(scope, name))
            meant[scope] = renamings.setdefault(selves, Renaming(dict.fromkeys(map(Name, selves), THIS)))
        has_this = meant[scope] and any(map(names_in.__getitem__, expressions_of(one)))
        yield renamed(one, meant[scope]) if has_this else one


def _named(statements: Iterable[Statement]) -> tuple[dict[str, str], dict[tuple[str, str], Expression]]:
    """The first parameters of functions, and what else has a name in them that such a parameter may have."""
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
    """The symbols of chunks: what there is of a file of which only another package's chunker knows some."""
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
