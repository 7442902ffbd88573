"""Where a file calls something: the places at which an index may say what is called."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from docindex_dagster.callgraph.facts import expression
from docindex_dagster.callgraph.ir import Call
from docindex_dagster.callgraph.offers import last_name
from docindex_dagster.code.extract import extract
from docindex_dagster.code.facts import Fact, find_facts
from docindex_dagster.code.parse import parse

_CALLS = frozenset({"call", "new", "macro"})


class Site(NamedTuple):
    """A place at which something is called.

    Line and byte are those at which the callee begins: of `a.b()` those of `a`. So the edges of the graph have them.
    """

    scope: str  # the id of the symbol that calls; "" for the file
    name: str  # the last one of the callee
    line: int
    byte: int


class Sites:
    """The call sites of one file."""

    def __init__(self, data: bytes, language: str) -> None:
        """Read a file, which is UTF-8.

        Raises:
            ParseError: there is no grammar for the language.
        """
        tree = parse(data, language)
        facts = find_facts(tree, language, extract(tree, data, language).symbols)
        self._root = tree.root_node
        self.all: Mapping[Site, None] = dict.fromkeys(site for fact in facts if (site := _site(fact)) is not None)
        self._at: dict[tuple[int, str], list[Site]] = {}
        for site in self.all:
            self._at.setdefault((site.byte, site.name), []).append(site)

    def called(self, start: int, end: int, name: str) -> Iterator[Site]:
        """The calls of which the name at some bytes is the last one of the callee."""
        node = self._root.descendant_for_byte_range(start, end)
        last = -1
        while node is not None and node.end_byte == end:
            if node.start_byte != last:
                last = node.start_byte
                yield from self._at.get((last, name), ())
            node = node.parent


def _site(fact: Fact) -> Site | None:
    if fact.kind in _CALLS:
        name = last_name(expression(fact.name))
    elif fact.kind == "decorator" and not isinstance(value := expression(fact.value), Call):
        name = last_name(value)  # `@decorate(…)` has a call beside it
    else:
        return None
    return Site(fact.scope, name, fact.line, fact.start_byte) if name else None
