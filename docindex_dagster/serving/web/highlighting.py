"""Colours of syntax, by classes alone: each token of a text in a span that says what it is."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from docindex_dagster.core.printable import visible

_PREFIX = "k-"
# A lexer's expressions may need time that grows faster than a text, which somebody else wrote.
_MOST_CHARACTERS, _LONGEST_LINE = 200_000, 5_000
_OTHER_NAMES = {"astro": "html", "svelte": "html", "commonlisp": "common-lisp", "apex": "java", "jupyter": "markdown"}
_PLAIN = frozenset({"", "n", "p", "w", "x"})  # they have no colour

Span = tuple[int, int]


def lines_of(text: str, language: str | None, marks: Sequence[Span] = ()) -> list[Markup]:
    """The lines of a text as HTML; some parts of it, [start, end) in characters, are marked."""
    plain = text.replace("\r\n", " \n")  # as long as it was, so that the marks fit
    html: list[list[Markup]] = [[]]
    at = 0
    for name, value in _tokens(plain, language):
        for piece, is_marked in _cut(value, at, marks):
            for number, part in enumerate(piece.split("\n")):
                if number:
                    html.append([])
                if part:
                    html[-1].append(_span(part, name, is_marked=is_marked))
        at += len(value)
    return [Markup().join(parts) for parts in html]


def _span(text: str, name: str, *, is_marked: bool) -> Markup:
    html = escape(visible(text))
    if name not in _PLAIN:
        html = Markup('<span class="{}">{}</span>').format(_PREFIX + name, html)
    return Markup("<mark>{}</mark>").format(html) if is_marked else html


def _cut(value: str, at: int, marks: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """The parts of a token, which begins at a place of the text, and whether each is marked."""
    done = 0
    for start, end in marks:
        first, last = max(start - at, done), min(end - at, len(value))
        if first < last:
            if first > done:
                yield value[done:first], False
            yield value[first:last], True
            done = last
    if done < len(value):
        yield value[done:], False


def _tokens(text: str, language: str | None) -> Iterable[tuple[str, str]]:
    """The tokens of a text, each with the short name of its type; one without a name where no lexer fits."""
    lexer = _lexer(language) if language and len(text) <= _MOST_CHARACTERS else None
    if lexer is None or any(len(line) > _LONGEST_LINE for line in text.split("\n")):
        return [("", text)]
    found = [(_name(kind), value) for _, kind, value in lexer.get_tokens_unprocessed(text)]
    return found if "".join(value for _, value in found) == text else [("", text)]


def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(_OTHER_NAMES.get(language, language))
    except ClassNotFound:
        return None


@cache
def _name(kind: Any) -> str:
    """The short name of a type of tokens, or of the nearest one that it is a part of."""
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    name: str = STANDARD_TYPES.get(kind, "")
    return name
