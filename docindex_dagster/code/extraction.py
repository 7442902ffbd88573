"""Symbol and import extraction from parsed files.

One extractor serves all languages; the differences between them are in the queries.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from docindex_dagster.code.captures import Captures, Definition, Leads, find_leads, run_query
from docindex_dagster.code.languages import has_symbols
from docindex_dagster.code.symbols import Symbol, comment_text, docstring_text, one_line

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

TYPE_KINDS = frozenset({"class", "enum", "impl", "interface", "struct", "trait", "union"})
"""The kinds of symbol whose functions are methods."""

_PATH_PIECE = re.compile(r"::|[\\.<>]|[^:\\.<>]+|:")
_PATH_SEPARATORS = frozenset({"::", "\\", "."})
_OPERATOR = re.compile(r"\W+")
_PLAIN_PATH = re.compile(r"[$#\w.:\\~<>, *&]+")
_SIGNATURE_END = re.compile(r" ?(?:=>|->|[{:=;,])$")
_SIGNATURE_ENDS = ("=>", "->", "{", ":", "=", ";", ",")
_SYMBOLS = re.compile(rb"[^\w\s]+")
_CALLED_PATH = re.compile(r"[@$\w]+[?!']*(?:(?:\??\.|::|->|\\)~?[$\w]+[?!']*)*")
_LAST_NAME = re.compile(r"[$\w]+[?!']*$")
_TYPE_ARGUMENTS = re.compile(r"(?:::)?<[^<>]*(?<!-)>")
_HEADER = re.compile(r"<(.*\w.*)>")
_QUOTED = re.compile(r"([\"'`])(.*)\1|\((\w+)\)")
# C++: the name of a conversion operator includes the text after its type.
_OPERATOR_NAME = re.compile(r"(?:(?P<scope>[\w:<>, ]+)::)?(?P<name>operator(?:\W+|\s+\w.*?))(?: ?\(\)[\w &]*)?")
_DEPTH_LIMIT = 100  # deeper symbols are omitted, since qualified names grow with the depth
_TOKEN_HEAP = 5000  # tokens
_BLANKS_LIMIT = 1000  # bytes
_HEAD_LIMIT = 4000  # bytes of a definition head used for the signature
_CALLEE_LIMIT = 300  # bytes of a callee
_SHORT = 100  # bytes; shorter text often repeats, so results for it are cached
_CACHE_SIZE = 10_000


class Call(NamedTuple):
    """A called name, as a dotted path if written as one, and its offset."""

    start_byte: int
    name: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The symbols, imports, exports and calls of a file."""

    symbols: tuple[Symbol, ...] = ()  # names may repeat: overloads, a property's setter, each `impl` of a type
    imports: tuple[str, ...] | None = None  # None: the language has no query
    exports: tuple[str, ...] | None = None  # None: no explicit exports
    calls: tuple[Call, ...] = ()  # in file order


@dataclass(frozen=True, slots=True)
class _Span:
    """A definition with its comments and decorators."""

    definition: Definition
    leads: "list[Node]"
    start: int
    end: int


def extract(tree: "Tree", source: bytes, language: str) -> Outline:
    """Extract symbols and imports in one pass over the tree. Text that is not code in this language has none."""
    if not has_symbols(language):
        return Outline()
    if is_token_heap(tree.root_node):
        return Outline(imports=())
    captures = run_query(tree, language)
    return Outline(
        _symbols(captures, source),
        _names(captures.imports, source),
        _names(captures.exports, source) or None,
        tuple(_calls(captures, source)),
    )


def is_token_heap(root: "Node") -> bool:
    """Return whether the parser produced a flat heap of tokens, on which a query would take quadratic time."""
    return any(node.is_error and node.child_count > _TOKEN_HEAP for node in (root, *root.children))


def _names(spans: Sequence[tuple[int, int]], source: bytes) -> tuple[str, ...]:
    written = (_module_name(one_line(source[start:end])) for start, end in spans)
    return tuple(dict.fromkeys(name for name in written if name))


def _module_name(written: str) -> str:
    """Strip the quotes or, for a C header, the angle brackets from a name."""
    header = _HEADER.fullmatch(written)
    return header[1] if header else _unquoted(written)


def _calls(captures: Captures, source: bytes) -> Iterator[Call]:
    for node, receiver in captures.calls:
        path = _callee(source, node)
        before = _callee(source, receiver) if receiver is not None else None
        if path is None:
            continue
        # The receiver is recorded only if it is a path itself, not the value of an expression.
        is_path = before is not None and _CALLED_PATH.fullmatch(before)
        yield Call(node.start_byte, f"{before}.{path}" if is_path else path)


def _callee(source: bytes, node: "Node") -> str | None:
    """Return the path in a node or its last name, or None if it has neither. Long text does not count as a path."""
    end = node.end_byte
    start = max(node.start_byte, end - _CALLEE_LIMIT)
    return _path(source[start:end], is_complete=start == node.start_byte)


@lru_cache(maxsize=_CACHE_SIZE)
def _path(written: bytes, *, is_complete: bool) -> str | None:
    """Return the text if it is a complete path, or else its last name."""
    text = _without_type_arguments(one_line(written))
    if is_complete and _CALLED_PATH.fullmatch(text):
        return text
    last = _LAST_NAME.search(text)
    return last[0] if last else None


def _without_type_arguments(path: str) -> str:
    shorter = _TYPE_ARGUMENTS.sub("", path) if "<" in path else path
    while shorter != path:
        path, shorter = shorter, _TYPE_ARGUMENTS.sub("", shorter)
    return path


def _symbols(captures: Captures, source: bytes) -> tuple[Symbol, ...]:
    leads = find_leads(captures, source)
    spans = [_span(definition, leads, source) for definition in captures.definitions]
    spans.sort(key=lambda span: (span.start, -span.end, span.definition.name.start_byte))
    reader = _Reader(
        source,
        _InOrder.of(captures.comments),
        _InOrder.of(captures.decorators),
        _InOrder.of(captures.docstrings),
        captures.doc_comments,
        _newlines(source),
    )
    open_symbols: list[Symbol] = []
    found: list[Symbol] = []
    for span in spans:
        closed_at = 0
        while open_symbols and not _encloses(open_symbols[-1], span):
            closed_at = open_symbols.pop().end_byte
        if len(open_symbols) >= _DEPTH_LIMIT:
            continue
        symbol = reader.symbol(_after(closed_at, span), open_symbols[-1] if open_symbols else None)
        open_symbols.append(symbol)
        found.append(symbol)
    return tuple(found)


def _span(definition: Definition, leads: Leads, source: bytes) -> _Span:
    before = leads.before(definition.start)
    start = before[0].start_byte if before else definition.start
    return _Span(definition, before, start, leads.end_of_line(source, _without_blanks(definition, source)))


def _without_blanks(definition: Definition, source: bytes) -> int:
    """Return the end of a definition without the trailing blank lines that some grammars include in indented blocks."""
    tail = source[max(definition.start, definition.end - _BLANKS_LIMIT) : definition.end]
    return definition.end - len(tail) + len(tail.rstrip())


def _after(end: int, span: _Span) -> _Span:
    """Drop the leading comments of a span if they are inside a definition that ends within the span."""
    overlaps = span.start < end < span.end
    return _Span(span.definition, [], span.definition.start, span.end) if overlaps else span


def _encloses(outer: Symbol, inner: _Span) -> bool:
    """Return whether a symbol encloses a span; two with the same span (a tag and its typedef) are siblings."""
    return outer.end_byte >= inner.end and (outer.start_byte, outer.end_byte) != (inner.start, inner.end)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Builder of symbols from definitions."""

    source: bytes
    comments: "_InOrder"
    decorators: "_InOrder"
    docstrings: "_InOrder"
    doc_comments: frozenset[int]
    newlines: list[int]

    def symbol(self, span: _Span, outer: Symbol | None) -> Symbol:
        definition = span.definition
        *path, name = self._name_path(definition)
        parent = ".".join([outer.qualified_name, *path] if outer else path) or None
        in_type = outer is not None and outer.kind in TYPE_KINDS
        is_method = definition.kind == "function" and not definition.scope and (path or in_type)
        parameters = [text for node in definition.parameters for text in self._parameters(node)]
        return Symbol(
            name=name,
            kind="method" if is_method else definition.kind,
            qualified_name=f"{parent}.{name}" if parent else name,
            parent=parent,
            signature=self._signature(definition) or None,
            start_line=bisect_left(self.newlines, span.start) + 1,
            end_line=bisect_left(self.newlines, span.end - 1) + 1,
            start_byte=span.start,
            end_byte=span.end,
            parameters=tuple(parameters) if definition.parameters else None,
            return_type=self._return_type(definition.returns) or None,
            decorators=tuple(self._line(node) for node in self._decorators(span)) or None,
            docstring=self._docstring(span),
        )

    def _name_path(self, definition: Definition) -> list[str]:
        """Return the name, preceded by the scopes it is qualified with."""
        path = _name_path(self._name(definition.name))
        outer = [definition.owner] if definition.owner else definition.scope
        return [*(_unquoted(self._name(node)) for node in outer), *path]

    def _name(self, node: "Node") -> str:
        """Return the text of a name, with T-SQL brackets replaced with quotes."""
        written = self._line(node)
        is_bracketed = node.type == "identifier" and written.startswith("[")
        return f'"{written[1:-1]}"' if is_bracketed else written

    def _signature(self, definition: Definition) -> str:
        """Return the head of a definition: everything before the body except decorators and comments."""
        body = definition.end if definition.body is None else definition.body
        body = min(body, definition.start + _HEAD_LIMIT)
        name = definition.name
        holes = [
            *self.comments.between(definition.start, body),
            *self.decorators.between(definition.start, definition.head_end),
        ]
        parts, at = [], definition.start
        for hole in sorted(holes, key=attrgetter("start_byte")):
            parts.append(self.source[at : max(at, hole.start_byte)])
            at = max(at, hole.end_byte)
        parts.append(self.source[at:body])
        if name.start_byte >= body:  # typedef struct {…} name
            parts.append(self.source[name.start_byte : name.end_byte])
        head = b" ".join(part for part in parts if part)
        line = one_line(head)
        return _SIGNATURE_END.sub("", line) if line.endswith(_SIGNATURE_ENDS) else line

    def _parameters(self, node: "Node") -> tuple[str, ...]:
        bracket = node.children[0] if node.children else node
        if bracket.type == "(":
            return tuple(one_line(self.source[start:end]) for start, end in _list_items(bracket))
        if bracket is node:  # x => …
            return (self._line(node),)
        return tuple(self._line(child) for child in node.named_children if not child.is_extra)

    def _return_type(self, nodes: "list[Node]") -> str:
        """Join the parts of the return type; prefix symbols such as `!*` in `!*Node` are not separated by spaces."""
        text, end = "", -1
        for node in nodes:
            text += self._line(node) if node.start_byte == end else f" {self._line(node)}"
            end = node.end_byte if _SYMBOLS.fullmatch(self.source, node.start_byte, node.end_byte) else -1
        return text.strip()

    def _decorators(self, span: _Span) -> "list[Node]":
        return self.decorators.between(span.start, span.definition.head_end)

    def _docstring(self, span: _Span) -> str | None:
        above = self.docstrings.between(span.start, span.definition.start)
        literal = span.definition.docstring or next(iter(above), None)
        if literal is not None:
            return docstring_text(self.source[literal.start_byte : literal.end_byte])
        comments = [node for node in span.leads if node.start_byte in self.doc_comments]
        return comment_text([self.source[node.start_byte : node.end_byte] for node in comments])

    def _line(self, node: "Node") -> str:
        written = self.source[node.start_byte : node.end_byte]
        return _short_line(written) if len(written) <= _SHORT else one_line(written)


_short_line = lru_cache(maxsize=_CACHE_SIZE)(one_line)


@lru_cache(maxsize=_CACHE_SIZE)
def _name_path(written: str) -> Sequence[str]:
    """Split a qualified name: `A::B<T>::f` is A, B, f."""
    operator = _OPERATOR_NAME.fullmatch(written)
    if operator:
        scope = operator["scope"]
        return [*(_name_path(f"{scope}::x")[:-1] if scope else ()), operator["name"]]
    name = _unquoted(written)
    if name != written or not _PLAIN_PATH.fullmatch(name) or _OPERATOR.fullmatch(name):
        return [name]
    parts, depth = [""], 0
    for piece in _PATH_PIECE.findall(name):
        depth += (piece == "<") - (piece == ">")
        if depth == 0 and piece in _PATH_SEPARATORS:
            parts.append("")
        else:
            parts[-1] += piece
    scopes = [part.partition("<")[0] for part in parts[:-1]]
    return [part for part in [*scopes, parts[-1]] if part] or [name]


def _unquoted(name: str) -> str:
    quoted = _QUOTED.fullmatch(name)
    return (quoted[2] or quoted[3] or name) if quoted else name


def _list_items(bracket: "Node") -> Iterator[tuple[int, int]]:
    """Yield the comma-separated spans from an opening parenthesis to the closing one."""
    span: tuple[int, int] | None = None
    siblings = bracket.parent.children if bracket.parent else []
    for node in siblings[siblings.index(bracket) + 1 :]:
        if node.type in (",", ")"):
            if span:
                yield span
            span = None
            if node.type == ")":
                return
        elif not node.is_extra:
            span = (span[0] if span else node.start_byte, node.end_byte)


class _InOrder(NamedTuple):
    """Nodes in file order, with their start bytes."""

    nodes: "list[Node]"
    starts: list[int]

    @classmethod
    def of(cls, nodes: "list[Node]") -> "_InOrder":
        return cls(nodes, [node.start_byte for node in nodes])

    def between(self, start: int, end: int) -> "list[Node]":
        """Return the nodes that start in a span."""
        return self.nodes[bisect_left(self.starts, start) : bisect_left(self.starts, end)]


def _newlines(source: bytes) -> list[int]:
    """Return the offsets of the newlines."""
    import numpy as np

    ends: list[int] = np.flatnonzero(np.frombuffer(source, dtype=np.uint8) == ord("\n")).tolist()
    return ends
