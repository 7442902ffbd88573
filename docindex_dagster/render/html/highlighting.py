"""Syntax highlighting with CSS classes: each token becomes a span whose class is its type."""

import time
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

from docindex_dagster.core.safe_text import make_visible
from docindex_dagster.search.cancellation import check_waiting
from docindex_dagster.sources import languages

_PREFIX = "k-"
# A lexer's regular expressions may take superlinear time on text written by an attacker. With lines of this length, a
# single step takes half a second at worst. When the time is up, the rest of a text stays plain.
_MAX_CHARACTERS, _MAX_LINE, _MAX_SECONDS = 200_000, 2_000, 0.5
_OTHER_NAMES = {"astro": "html", "svelte": "html", "commonlisp": "common-lisp", "apex": "java", "jupyter": "markdown"}
_PLAIN = frozenset({"", "n", "p", "w", "x"})  # token types without a color
_CONTEXT = 40  # lines before a window that are also lexed, for tokens such as comments that span lines

Span = tuple[int, int]


def highlighting_deadline() -> float:
    """Return the deadline for highlighting a page that starts now, as a `time.monotonic` value."""
    return time.monotonic() + _MAX_SECONDS


def lines_of(text: str, language: str | None, marks: Sequence[Span] = (), ends_at: float | None = None) -> list[Markup]:
    """Return the lines of a text as HTML, with the spans [start, end), in characters, marked.

    Raises:
        QueryError: The client has disconnected.
    """
    plain = text.replace("\r\n", " \n")  # same length, so that the marks fit
    return _html(_tokens(plain, language, ends_at or highlighting_deadline()), marks, 0, plain.count("\n") + 1)


def window_of(text: str, language: str | None, marks: Sequence[Span], first: int, count: int) -> list[Markup]:
    """Return some lines of a text, highlighted in the context of the lines before them.

    Args:
        text: the full text.
        language: its language.
        marks: as for `lines_of`, relative to the first of these lines.
        first: the number of lines before them.
        count: the number of these lines.
    """
    begin = max(0, first - _CONTEXT)
    lines = text.replace("\r\n", " \n").split("\n")[begin:]
    before = sum(len(line) + 1 for line in lines[: first - begin])
    moved = [(start + before, end + before) for start, end in marks]
    return _html(_tokens("\n".join(lines), language, highlighting_deadline()), moved, first - begin, count)


def _html(tokens: Iterator[tuple[str, str]], marks: Sequence[Span], first: int, count: int) -> list[Markup]:
    """Return `count` lines of a text from line `first` on. Later tokens are not lexed."""
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
    html = str(escape(make_visible(text)))
    if name not in _PLAIN:
        html = f'<span class="{_PREFIX}{name}">{html}</span>'
    return f"<mark>{html}</mark>" if is_marked else html


def _cut(value: str, at: int, marks: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a token at a position of the text, and whether each is marked."""
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
    """Yield the tokens of a text with the short names of their types; the name is empty for text without a lexer."""
    done = 0
    lexer = _lexer(language) if language and len(text) <= _MAX_CHARACTERS else None
    if lexer is not None and all(len(line) <= _MAX_LINE for line in text.split("\n")):
        for start, kind, value in lexer().get_tokens_unprocessed(text):
            check_waiting()
            if start != done or not text.startswith(value, start) or time.monotonic() > ends_at:
                break  # the lexer skips or changes text, or takes too long: the rest stays plain
            yield _name(kind), value
            done += len(value)
    if done < len(text):
        yield "", text[done:]


@lru_cache(maxsize=256)  # bounded, since a document may name any language
def _lexer(language: str) -> Any:
    """Return the lexer class for any name of a language; None if docindex does not know the language."""
    from pygments.lexers import find_lexer_class_by_name

    name = _OTHER_NAMES.get(language, language)
    return find_lexer_class_by_name(name) if name in _names() else None


@cache
def _names() -> frozenset[str]:
    """Return all names of lexers for the languages that docindex knows."""
    from pygments.lexers import get_all_lexers

    known = {_OTHER_NAMES.get(name, name) for name in languages.NAMES}
    return frozenset(name for _, names, *_ in get_all_lexers(plugins=False) if known & {*names} for name in names)


@cache
def _name(kind: Any) -> str:
    """Return the short name of a token type, or of its nearest ancestor that has one."""
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    name: str = STANDARD_TYPES.get(kind, "")
    return name
