"""Colours of syntax, by classes alone: each token of a text in a span that says what it is."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

from docindex_dagster.core.printable import visible

_PREFIX = "k-"
# A lexer's expressions may need time that grows faster than a text that an attacker wrote.
_MOST_CHARACTERS, _LONGEST_LINE = 200_000, 5_000
_OTHER_NAMES = {"astro": "html", "svelte": "html", "commonlisp": "common-lisp", "apex": "java", "jupyter": "markdown"}
_PLAIN = frozenset({"", "n", "p", "w", "x"})  # they have no colour
_CONTEXT = 40  # lines before those that are wanted, for what goes over several, such as comments

Span = tuple[int, int]


def lines_of(text: str, language: str | None, marks: Sequence[Span] = ()) -> list[Markup]:
    """The lines of a text as HTML; some parts of it, [start, end) in characters, are marked."""
    plain = text.replace("\r\n", " \n")  # as long as it was, so that the marks fit
    return _html(_tokens(plain, language), marks, 0, plain.count("\n") + 1)


def window_of(text: str, language: str | None, marks: Sequence[Span], first: int, count: int) -> list[Markup]:
    """Some lines of a text, coloured by what stands before them.

    Args:
        text: the whole text.
        language: its language.
        marks: as of `lines_of`, counted from the first of these lines.
        first: how many lines stand before them.
        count: how many they are.
    """
    begin = max(0, first - _CONTEXT)
    lines = text.replace("\r\n", " \n").split("\n")[begin:]
    before = sum(len(line) + 1 for line in lines[: first - begin])
    moved = [(start + before, end + before) for start, end in marks]
    return _html(_tokens("\n".join(lines), language), moved, first - begin, count)


def _html(tokens: Iterator[tuple[str, str]], marks: Sequence[Span], first: int, count: int) -> list[Markup]:
    """The lines of a text from one on, as far as they are wanted; the tokens behind them are not asked for."""
    lines: list[list[str]] = [[] for _ in range(count)]
    line = at = 0
    for name, value in tokens:
        if line + value.count("\n") < first:
            line += value.count("\n")
        else:
            for piece, is_marked in _cut(value, at, marks):
                for number, part in enumerate(piece.split("\n")):
                    line += bool(number)
                    if part and first <= line < first + count:
                        lines[line - first].append(_span(part, name, is_marked=is_marked))
        if line >= first + count:
            break
        at += len(value)
    return [Markup("".join(parts)) for parts in lines]  # noqa: S704 each part is escaped


def _span(text: str, name: str, *, is_marked: bool) -> str:
    html = str(escape(visible(text)))
    if name not in _PLAIN:
        html = f'<span class="{_PREFIX}{name}">{html}</span>'
    return f"<mark>{html}</mark>" if is_marked else html


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


def _tokens(text: str, language: str | None) -> Iterator[tuple[str, str]]:
    """The tokens of a text, each with the short name of its type; what no lexer knows is one without a name."""
    done = 0
    lexer = _lexer(language) if language and len(text) <= _MOST_CHARACTERS else None
    if lexer is not None and all(len(line) <= _LONGEST_LINE for line in text.split("\n")):
        for start, kind, value in lexer().get_tokens_unprocessed(text):
            if start != done or not text.startswith(value, start):
                break  # it skips or changes something: the rest is shown as it is
            yield _name(kind), value
            done += len(value)
    if done < len(text):
        yield "", text[done:]


@lru_cache(maxsize=256)  # a document may name any
def _lexer(language: str) -> Any:
    """The class of the lexer of a language; None where there is none."""
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        return find_lexer_class_by_name(_OTHER_NAMES.get(language, language))
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
