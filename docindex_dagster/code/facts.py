"""What a file says about names: what it calls, imports, binds, inherits and returns, in the order of the file.

The knowledge graph is made of it. A query a language (`queries/facts/`) finds the places, with these captures:

- `@call` with `@arguments`: what is called; with `@call.item` that may be an item of it. `@new`: the type of which an
  object is made. `@macro`: a macro that is used.
- `@import.module` with `@import.name` and `@import.alias`, or `@import.all`: what is imported, of which module, under
  which name; with `@import.default` what it gives without a name. `@import.path` is module and name with a dot between.
  `@reexport.…` likewise, where it is exported in the same breath. `@import.hidden`: a name that is none of all.
- `@export` with `@export.value`: a name under which others find something; `@export.default` has none.
- `@bind` with `@bind.value` (an expression), `@bind.items` (a collection of which it is one) or `@bind.type`: a
  variable, attribute or field; with `@bind.tested` what it is asked whether it is. With `@bind.member` it is an
  attribute of the object.
- `@parameter` with `@parameter.type` and `@parameter.value`, in their order; with `@parameter.rest` all that follow.
  `@bind.given`: a function without a name, or its parameters, of which it is what that is given; with `@bind.other`
  it is not known what.
  With `@bind.within` it is seen in this node only. With `@bind.sent` it is put into a collection.
  With `@bind.again` it has the type of what is declared before it, with `@bind.self` it is an object of the class
  around it; `@bind.of` stands before the name, and `@bind.place` is a field that has a number for a name.
  Of a tuple or a list of results `@bind.parts` is the statement that assigns its parts; of a pattern
  `@bind.pattern` is its name.
- `@receiver`: the type to which a function is added as a member. `@generic` with `@generic.type`: a type parameter
  and what it is bound by.
- `@fill` with `@arguments`: an object of this type is written with what its fields are.
- `@return`: what a function returns. `@base` and `@base.implements`: what a class is made from; `@base.of`: which
  class; `@base.within`: a name in what has these as the members of a class without a name. `@base.companion`: a class
  in it whose members are its own. `@base.mixin`: what adds members to a class, before its bases do.
- `@bind.from` with `@bind.key`: that of which a variable is a member, under another name where the key says so.
- `@bind.filled`: a collection into which `@bind.value` is put.
- `@bind.block`: what a block is given. `@bind.attribute`: a name for an attribute of the object.
- `@import.beside`: the module is searched beside the file.
- `@hidden`: the function around it is not found by its name. `@property`: the method around it is read as an attribute.
- `@initial`: what is not a property's own but belongs to what is around it.
- `@outer`: what runs where the function around it is defined.
- `@decorator`: what is applied to the definition below it.
- `@use`: a name of a tree of imports.
- `@ignored`: where nothing is found.
- `@again`: what the grammar leaves unread, to be read as code.
- `@namespace`: the package or namespace of the file.
- `@import.path` with `@import.alias`: what is imported, written as one path. `@base.mixin`: a base whose members come
  before those of other bases.
- `@doc`: a comment that names types, and `@bind.doc`, one that names that of a variable.
- `@template` and `@instance`: the parameters of a class, and the arguments that these are given somewhere.
- `@declared`, `@signature` and `@assigned` with `@assigned.value`: declarations, heads of functions and assignments of
  C and C++; see `facts_c.py`.
"""

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from docindex_dagster.code.expressions import (
    UNKNOWN,
    Shapes,
    expression,
    part_of,
)
from docindex_dagster.code.fact_readers import MANY, READERS
from docindex_dagster.code.fact_values import LAST, Found, folded
from docindex_dagster.code.parse import grammar_of, parse
from docindex_dagster.code.selves import with_this
from docindex_dagster.code.shadows import Region, with_unique_names
from docindex_dagster.code.shapes import FACT_LANGUAGES, FactLanguage, has_facts
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Node, Query, Tree

    Parts = Mapping[str, list[Node]]

_SCOPES = frozenset(
    {
        "class",
        "enum",
        "function",
        "impl",
        "interface",
        "macro",
        "method",
        "module",
        "property",
        "struct",
        "trait",
        "type",
        "union",
    }
)
"""The kinds of symbol in which names have a meaning of their own."""
_CALLABLE = frozenset({"function", "method"})
_ABOUT_OTHERS = frozenset({"decorator", "initial", "outer"})
_OF_FUNCTIONS = frozenset({"parameter", "return"})
_OF_FILES = frozenset({"export", "namespace", "reexport"})
_VARIABLES = frozenset({"bind", "parameter"})
_NESTED_LIMIT = 4  # macros in macros
_BLANKED = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))
_DEPTH_LIMIT = 100
_BREAKS = re.compile(r"[\t\n\r]+")


class Fact(NamedTuple):
    """One of the things that a file says, in the words of its own names.

    | kind | scope | name | value |
    |---|---|---|---|
    | `call`, `new`, `macro` | where | what, an expression | the arguments, expressions |
    | `import`, `reexport` | where | the name here, `*`, or `-name` without it | the module and the name there |
    | `export` | | the name for others | an expression |
    | `bind` | where | a name, or `this.name` | an expression |
    | `bind` | where | `<Class` | a type with its arguments |
    | `bind` | where | of C and C++ `.name` or `object.name`, assigned; `:Type.field`, given first | an expression |
    | `parameter` | the function | its name; of all that follow `*name` | an expression, `:Type` where declared |
    | `fill` | where | a type | what its fields are, expressions |
    | `return` | the function | | an expression |
    | `base`, `implements`, `mixin`, `companion` | the class | the class, where it is named | an expression |
    | `property`, `hidden` | the function | | |
    | `receiver` | the function | | a type |
    | `generic` | the class or function | its name | an expression, `:Type` where it is bound |
    | `forward` | where, or the method | of a function that is declared here and has its body elsewhere | |
    | `decorator` | where | the id of what is decorated | an expression |
    | `namespace` | | its name | |
    | `link`, `ref`, `anchor`, `label` | the titles above, of documents | what a `Pointer` has | |

    The scope is the id of a symbol, "" for the file; an expression is in the notation of `expressions.py`. The parts of
    a value have `SEPARATOR` between them.
    """

    start_byte: int
    line: int
    kind: str
    scope: str
    name: str
    value: str


def as_text(facts: Sequence[Fact]) -> str | None:
    """Facts as a table keeps them: a line each, with tabs between line number, kind, scope, name and value."""
    return "\n".join([_line(fact) for fact in facts]) if facts else None


def _line(fact: Fact) -> str:
    _, line, *fields = fact
    text = "\t".join(fields)
    if text.count("\t") != len(fields) - 1 or "\n" in text or "\r" in text:
        text = "\t".join(_BREAKS.sub(" ", field) for field in fields)
    return f"{line}\t{text}"


def symbol_ids(names: Sequence[str]) -> list[str]:
    """An id for each symbol of a file: its qualified name, with `~2` and so on where one is defined again."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return found


def find_facts(tree: "Tree", language: str, symbols: Sequence[Symbol]) -> tuple[Fact, ...]:
    """The facts of a parsed file with these symbols; none of a language that has no query for them."""
    if not has_facts(language):
        return ()
    known = FACT_LANGUAGES[language].of_file()
    ids = symbol_ids([symbol.qualified_name for symbol in symbols])
    placed = [*_placed(_renamed(_in_order(_all_places(tree, language, known))), symbols, ids)]
    facts = [fact for fact, _ in placed]
    if known.has_selves:
        return tuple(with_this(facts))
    if known.blocks is None:
        return tuple(facts)
    functions = frozenset(
        identifier for symbol, identifier in zip(symbols, ids, strict=True) if symbol.kind in _CALLABLE
    )
    return tuple(with_unique_names(facts, [region for _, region in placed], functions))


def _all_places(tree: "Tree", language: str, known: FactLanguage) -> "list[_Place]":
    """What the query finds, also in what the grammar leaves unread, by the patterns of the query."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(language))
    cursor.set_max_start_depth(_DEPTH_LIMIT)
    places: list[_Place] = []
    ignored: list[Node] = []
    current: Tree | None = tree
    for _ in range(_NESTED_LIMIT):
        if current is None:
            break
        unread = []
        for _, parts in sorted(cursor.matches(current.root_node), key=itemgetter(0)):
            if "again" in parts:
                unread.append(parts["again"][0])
            ignored += parts.get("ignored", ())
            capture, place = _main_captures(tuple(parts))
            if capture in MANY:
                places += _several(capture, parts, known)
            elif capture and (found := _place(capture, parts, parts[place][0], known)) is not None:
                places.append(found)
        current = _read_again(unread, tree, language) if unread else None
    return [*_outside(places, ignored)] if ignored else places


def _outside(places: "list[_Place]", ignored: "list[Node]") -> "Iterator[_Place]":
    """The places that are in none of some nodes."""
    spans = sorted((node.start_byte, node.end_byte) for node in ignored)
    ends = [*accumulate((end for _, end in spans), max)]
    for place in places:
        at = bisect_right(spans, place.start, key=itemgetter(0))
        if at == 0 or ends[at - 1] <= place.start:
            yield place


def _in_order(places: "list[_Place]") -> "list[_Place]":
    """The places in the order of the file; first, of those in one place, what says something of the others."""
    first = [place for place in places if place.kind in _ABOUT_OTHERS]
    others = [place for place in places if place.kind not in _ABOUT_OTHERS] if first else places
    return sorted(first + others, key=itemgetter(0))


def _read_again(nodes: "Sequence[Node]", tree: "Tree", language: str) -> "Tree | None":
    """The tree of what the grammar leaves unread, such as the arguments of macros, at the same places."""
    nodes = [node for node in nodes if node.text and node.text[:1] in b"(["]
    if not nodes:
        return None
    source = tree.root_node.text or b""
    first = tree.root_node.start_byte
    text = bytearray(source.translate(_BLANKED))
    for node in nodes:
        start, end = node.start_byte - first, node.end_byte - first
        text[start:end] = source[start:end]
        text[end : end + 1] = b";"
    return parse(b" " * first + bytes(text), language)


class _Place(NamedTuple):
    """A fact that does not know its scope yet."""

    start: int
    end: int
    line: int
    kind: str
    name: str
    value: str
    until: int = 0  # of what a function without a name is given: where this function ends
    region: Region | None = None  # where a declaration is seen


def _several(capture: str, parts: "Parts", known: FactLanguage) -> "Iterator[_Place]":
    for node, *mentioned in MANY[capture](parts[capture][0], known.shapes):
        if fact := _in_named_function(node, (mentioned[0], mentioned[1], mentioned[2]), known):
            yield _Place(node.start_byte, node.end_byte, node.start_point[0] + 1, *fact)


def _place(capture: str, parts: "Parts", node: "Node", known: FactLanguage) -> "_Place | None":
    fact = READERS[capture](parts, known.shapes)
    if fact is None:
        return None
    start, end, line, kind = node.start_byte, node.end_byte, node.start_point[0] + 1, fact[0]
    if kind in _OF_FUNCTIONS:
        fact = _in_named_function(node, fact, known)
        if fact is None:
            return None
        start -= fact[0] == "return" and node.type in known.anonymous  # what it is returned by stands around it
    if kind not in _VARIABLES:
        return _Place(start, end, line, *fact)
    return _Place(start, end, line, *fact, _end_of_function(parts, known.shapes), _region(parts, fact[0], known))


@lru_cache(maxsize=1_000)
def _main_captures(captures: tuple[str, ...]) -> tuple[str, str]:
    """Of the captures of a place the one that says what sort of fact it is, and that of where the fact is."""
    capture = next((capture for capture in (*MANY, *READERS) if capture in captures), "")
    return capture, f"{capture}.within" if f"{capture}.within" in captures else capture


def _region(parts: "Parts", kind: str, known: FactLanguage) -> Region | None:
    if known.blocks is None or kind not in _VARIABLES:
        return None
    name = parts["bind" if "bind" in parts else "parameter"][0]
    return known.blocks.region(name, parts["bind.within"][0] if "bind.within" in parts else None)


def _end_of_function(parts: "Parts", shapes: Shapes) -> int:
    """Where the function without a name ends that what is bound is given to; 0 of what is not."""
    if "bind.given" not in parts or shapes.given is None:
        return 0
    node: Node | None = parts["bind.given"][0]
    while node is not None and node.type not in shapes.given.functions:
        node = node.parent
    return node.end_byte if node is not None else 0


def _renamed(places: "list[_Place]") -> "Iterable[_Place]":
    """The places; of names that several functions without a name are given, each has another one."""
    given = Counter(place.name for place in places if place.until)
    return _numbered(places, given) if len(given) < given.total() else places


def _numbered(places: "list[_Place]", given: Counter[str]) -> "Iterator[_Place]":
    around: list[tuple[int, re.Pattern[str], str]] = []
    seen: Counter[str] = Counter()
    for place in places:
        around = [renamed for renamed in around if renamed[0] > place.start]
        if place.until and given[place.name] > 1:
            seen[place.name] += 1
            pattern = re.compile(rf"(?<![\w.#:]){re.escape(place.name)}(?![\w(])")
            around.append((place.until, pattern, f"{place.name}~{seen[place.name]}"))
            yield place._replace(name=around[-1][2])
            continue
        for _, pattern, name in reversed(around):
            place = place._replace(name=pattern.sub(name, place.name), value=pattern.sub(name, place.value))  # noqa: PLW2901
        yield place


def _in_named_function(node: "Node", found: "tuple[str, str, str]", known: FactLanguage) -> "Found":
    """Parameters of an anonymous function are names of the function around it; what it returns belongs to no symbol."""
    kind, name, value = found
    if kind not in _OF_FUNCTIONS or not known.functions:
        return found
    within, around = node, node.parent
    while around is not None and around.type not in known.functions:
        within, around = around, around.parent
    if around is None or around.type not in known.anonymous:
        return found
    outer = around.parent
    while outer is not None and outer.type in known.shapes.through:
        outer = outer.parent
    if outer is not None and outer.type in known.naming:
        return found
    if kind == "return" or around.type in known.types:
        return None
    return "bind", name.lstrip("*"), value if value != UNKNOWN else _given(within, node, around, known.shapes)


def _given(within: "Node", node: "Node", function: "Node", shapes: Shapes) -> str:
    """What a function without a name is given by the one whose argument it is."""
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    if call is None or arguments is None or call.type not in shapes.calls:
        return UNKNOWN
    while node.parent is not None and within.id not in {node.parent.id, node.id}:
        node = node.parent
    listed = [child.id for child in within.named_children if not child.is_extra]
    position = listed.index(node.id) if node.id in listed else 0
    at = [child.id for child in arguments.named_children if not child.is_extra].index(function.id)
    called = expression(part_of(call, shapes.calls[call.type]), shapes)
    if (start := folded(call, called, position, shapes)) != UNKNOWN:
        return start
    return UNKNOWN if called == UNKNOWN or position > LAST or at > LAST else f"{called}^{at}{position}"


def _placed(  # noqa: C901, PLR0912 one a kind
    places: "Iterable[_Place]", symbols: Sequence[Symbol], ids: Sequence[str]
) -> Iterator[tuple[Fact, Region | None]]:
    """The facts, each in the innermost symbol around it, and where they are seen."""
    around = _Around(_scopes(symbols, ids))
    variables: set[tuple[str, str]] = set()
    decorated = initial = outside = 0  # where the last decorator and the last value of a property end
    for place in places:
        start, end, line, kind, name, value, _, region = place
        if start >= around.until:
            around.go_to(start)
        scope, outer, symbol = around.scope, around.outer, around.symbol
        if kind == "initial":
            initial = end
            continue
        if symbol is not None and symbol.kind == "property" and _is_outside(place, symbol, initial):
            scope = outer
        if kind == "outer":
            outside = end
            continue
        if kind == "call":
            scope = outer if start < outside else scope
            if name.endswith("'"):  # a name alone is a call where it is no variable
                name = name.removesuffix("'")
                if (scope, name) in variables:
                    continue
        elif kind in _VARIABLES:
            variables.add((scope, name.lstrip("*&")))
        if kind == "decorator":
            decorated = end
            yield Fact(start, line, kind, outer, scope, value), None
            continue
        # Whether what is bound is the function that is just defined.
        is_function = kind == "bind" and value == UNKNOWN and symbol is not None and _names(name, symbol)
        if start < decorated or (is_function and name.startswith("this.")):
            yield Fact(start, line, kind, outer, name, value), region
        elif kind in _OF_FILES:
            yield Fact(start, line, kind, "", name, value), None
        elif not is_function:
            yield Fact(start, line, kind, scope, name, value), region


def _scopes(symbols: Sequence[Symbol], ids: Sequence[str]) -> list[tuple[Symbol, str]]:
    """The symbols in which names have a meaning of their own, with their ids, the outer ones first."""
    named = [symbol for symbol in symbols if symbol.kind != "type"]  # which a `typedef` may name
    names = {symbol.qualified_name for symbol in named}
    spans = {(symbol.start_byte, symbol.end_byte) for symbol in named}

    def is_other_name(symbol: Symbol) -> bool:
        is_same = symbol.qualified_name in names or (symbol.start_byte, symbol.end_byte) in spans
        return symbol.kind == "type" and is_same

    scopes = [
        (symbol, identifier)
        for symbol, identifier in zip(symbols, ids, strict=True)
        if symbol.kind in _SCOPES and not is_other_name(symbol)
    ]
    return sorted(scopes, key=lambda item: (item[0].start_byte, -item[0].end_byte))


class _Around:
    """The symbols around a place that moves through a file."""

    def __init__(self, scopes: list[tuple[Symbol, str]]) -> None:
        self._upcoming = scopes[::-1]
        self._open: list[tuple[Symbol, str]] = []
        self.until = 0  # where these are others
        self.scope = self.outer = ""  # the ids of the innermost one, and of the one around that
        self.symbol: Symbol | None = None

    def go_to(self, start: int) -> None:
        upcoming, around = self._upcoming, self._open
        while upcoming and upcoming[-1][0].start_byte <= start:
            successor = upcoming.pop()
            self._close(successor[0].start_byte)
            around.append(successor)
        self._close(start)
        self.symbol, self.scope = around[-1] if around else (None, "")
        self.outer = around[-2][1] if len(around) > 1 else ""
        ends = [around[-1][0].end_byte] if around else []
        starts = [upcoming[-1][0].start_byte] if upcoming else []
        self.until = min(ends + starts, default=sys.maxsize)

    def _close(self, start: int) -> None:
        while self._open and self._open[-1][0].end_byte <= start:
            self._open.pop()


def _names(name: str, symbol: Symbol) -> bool:
    """Whether a name is that of the function that is assigned to it."""
    return symbol.kind in _CALLABLE and f".{symbol.qualified_name}".endswith(f".{name}")


def _is_outside(place: _Place, symbol: Symbol, initial: int) -> bool:
    """Whether a place in a property is not in one of its functions."""
    return place.start < initial or (place.kind == "bind" and place.name == symbol.name)


@cache
def _query(language: str) -> "Query":
    import tree_sitter

    folder = files("docindex_dagster.code") / "queries" / "facts"
    patterns = "\n".join((folder / f"{name}.scm").read_text("utf-8") for name in FACT_LANGUAGES[language].queries)
    return tree_sitter.Query(grammar_of(language), patterns)
