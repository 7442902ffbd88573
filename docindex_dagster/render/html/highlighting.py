"""Colours of syntax, by classes alone: each token of a text in a span that says what it is."""

import time
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

from docindex_dagster.core.safe_text import visible
from docindex_dagster.search.cancellation import check_waiting
from docindex_dagster.sources import languages

_PREFIX = "k-"
# A lexer's expressions may need time that grows faster than a text that an attacker wrote: one step takes half a
# second at the worst for lines of this length, and a text is coloured as far as its lexer comes in time.
_MOST_CHARACTERS, _LONGEST_LINE, _LONGEST_S = 200_000, 2_000, 0.5
_OTHER_NAMES = {"astro": "html", "svelte": "html", "commonlisp": "common-lisp", "apex": "java", "jupyter": "markdown"}
_PLAIN = frozenset({"", "n", "p", "w", "x"})  # they have no colour
_CONTEXT = 40  # lines before those that are wanted, for what goes over several, such as comments

Span = tuple[int, int]


def end_of_colours() -> float:
    """When to stop colouring a page that begins now, by `time.monotonic`."""
    return time.monotonic() + _LONGEST_S


def lines_of(text: str, language: str | None, marks: Sequence[Span] = (), ends_at: float | None = None) -> list[Markup]:
    """The lines of a text as HTML; some parts of it, [start, end) in characters, are marked.

    Raises:
        QueryError: the client has left.
    """
    plain = text.replace("\r\n", " \n")  # as long as it was, so that the marks fit
    return _html(_tokens(plain, language, ends_at or end_of_colours()), marks, 0, plain.count("\n") + 1)


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
    return _html(_tokens("\n".join(lines), language, end_of_colours()), moved, first - begin, count)


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


def _tokens(text: str, language: str | None, ends_at: float) -> Iterator[tuple[str, str]]:
    """The tokens of a text, each with the short name of its type; what no lexer knows is one without a name."""
    done = 0
    lexer = _lexer(language) if language and len(text) <= _MOST_CHARACTERS else None
    if lexer is not None and all(len(line) <= _LONGEST_LINE for line in text.split("\n")):
        for start, kind, value in lexer().get_tokens_unprocessed(text):
            check_waiting()
            if start != done or not text.startswith(value, start) or time.monotonic() > ends_at:
                break  # it skips or changes something, or takes too long: the rest is shown as it is
            yield _name(kind), value
            done += len(value)
    if done < len(text):
        yield "", text[done:]


@lru_cache(maxsize=256)  # a document may name any
def _lexer(language: str) -> Any:
    """The class of the lexer of a language, under any of its names; None for one that docindex does not know."""
    from pygments.lexers import find_lexer_class_by_name

    name = _OTHER_NAMES.get(language, language)
    return find_lexer_class_by_name(name) if name in _names() else None


@cache
def _names() -> frozenset[str]:
    """All names that lexers of the languages have which docindex knows."""
    from pygments.lexers import get_all_lexers

    known = {_OTHER_NAMES.get(name, name) for name in languages.NAMES}
    return frozenset(name for _, names, *_ in get_all_lexers(plugins=False) if known & {*names} for name in names)


@cache
def _name(kind: Any) -> str:
    """The short name of a type of tokens, or of the nearest one that it is a part of."""
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    name: str = STANDARD_TYPES.get(kind, "")
    return name
