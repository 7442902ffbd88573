"""Symbols defined in source files, and their signatures and docstrings."""

import re
from dataclasses import dataclass
from inspect import cleandoc

_DOCSTRING_LIMIT = 2000
_LINE_LIMIT = 300
# In text with collapsed white space: trailing commas, and spaces inside brackets.
_BRACKETS = ((", )", " )"), (", ]", " ]"), (", }", " }"), ("( ", "("), ("[ ", "["), (" )", ")"), (" ]", "]"))
_BLOCK_COMMENT = re.compile(r"(?:/\*+!?|--\[=*\[|\{-+[ \t]*[|^]?)(.*?)(?:\**/|\]=*\]|-+\})\s*", re.DOTALL)
_OPENING = re.compile(r"/\*+!?")
_STAR = re.compile(r"^[ \t]*\*[ \t]?", re.MULTILINE)
_LINE_MARKER = re.compile(r"^[ \t]*(?://[/!]?|#+!?|--+(?:[ \t]*[|^](?=\s))?) ?", re.MULTILINE)
_DIRECTIVE = re.compile(r"//[a-z]+:\S*")  # tool directives such as //go:build
_XML_TAG = re.compile(r"</?(?:summary|remarks|para)>")
_QUOTES = re.compile(r"[a-zA-Z]*(\"\"\"|'''|\"|')(.*)\1", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition: a function, method, class, type or similar.

    The span includes decorators and the leading comment. Bytes are offsets into UTF-8; lines are 1-based and inclusive.
    """

    name: str
    kind: str  # function | method | class | interface | struct | enum | trait | module | type | constant …
    qualified_name: str  # dotted path within the file: Outer.Inner.method
    parent: str | None  # qualified name of the enclosing symbol
    signature: str | None
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    parameters: tuple[str, ...] | None = None
    return_type: str | None = None
    decorators: tuple[str, ...] | None = None
    docstring: str | None = None


# Every kind used in the query files.
SYMBOL_KINDS = (
    *("class", "constant", "enum", "function", "impl", "interface", "macro", "method", "module", "property"),
    *("struct", "trait", "type", "union"),
)


def one_line(source: bytes, limit: int = _LINE_LIMIT) -> str:
    """Collapse white space and truncate to `limit` characters."""
    text = " ".join(source[: 8 * limit].decode("utf-8", "ignore").split())
    if " " in text:
        for written, plain in _BRACKETS:
            text = text.replace(written, plain)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def comment_text(comments: list[bytes]) -> str | None:
    """Return the text of the comments above a definition, without comment markers; None if it is empty."""
    decoded = [comment[: 4 * _DOCSTRING_LIMIT].decode("utf-8", "ignore") for comment in comments]
    return _limited(_dedented(_XML_TAG.sub("", "\n".join(_without_markers(comment) for comment in decoded))))


def docstring_text(literal: bytes) -> str | None:
    """Return the text of a docstring literal; None if it is empty."""
    text = literal.decode("utf-8", "replace")
    quoted = _QUOTES.fullmatch(text)
    return _limited(_dedented(quoted[2] if quoted else text))


def _without_markers(comment: str) -> str:
    body = _block_body(comment)
    if body is not None:
        return _dedented(_STAR.sub("", body))
    return "" if _DIRECTIVE.match(comment) else _LINE_MARKER.sub("", comment).rstrip()


def _block_body(comment: str) -> str | None:
    """Return the text of a block comment; None for other comments."""
    opening, closed = _OPENING.match(comment), comment.rstrip()
    if opening and closed.endswith("*/"):  # fast path: the regex below tries to match the end at every character
        return closed[opening.end() : -1].rstrip("*")
    block = _BLOCK_COMMENT.fullmatch(comment)
    return block[1] if block else None


def _dedented(text: str) -> str:
    """Remove common indentation, independent of the Python version: 3.13 treats a carriage return as text."""
    return cleandoc(text.replace("\r\n", "\n"))


def _limited(text: str) -> str | None:
    text = text.strip()
    return (text if len(text) <= _DOCSTRING_LIMIT else text[: _DOCSTRING_LIMIT - 1] + "…") or None
