"""Edges of a document: the targets of its links, and the names it mentions in code font.

Both are stored as written and resolved when a generation is opened, so the edges of a file never depend on other
files.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit

from docindex_dagster.core.urls import scrub
from docindex_dagster.documents.model import PlacedPointer, words
from docindex_dagster.graph.document_text import ReadChunk
from docindex_dagster.graph.source_graph import EXTERNAL, LINK, MENTION, Triple

DOCUMENT = "doc"
"""The source_type of documents."""

_CALL = re.compile(r"\([^`]{0,200}\)$")
_GENERIC = re.compile(r"<[\w, ]{1,60}>$")
_NAME = re.compile(r"[@$&*~]?(?P<name>[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*){0,8})[!?]?")
_PATH = re.compile(r"(?:\./)?(?P<path>[\w.@+-]+(?:/[\w.@+-]+){0,20}\.[A-Za-z][A-Za-z0-9]{0,7})")
_SEPARATORS = re.compile(r"::|#|->")
_LOCAL = re.compile(r"[^\x00-\x1f\\`<>(){}\[\]:]+")  # neither a Rust path nor a template
_TypedNode = tuple[str, str]  # a node and its type
_SHORTEST = 3  # characters in a name
_LONGEST = 200  # characters in an address or name
_COMMON_WORDS = words(
    """true false null none nil undefined self this super async await return yield import export from class struct enum
    interface function const static void bool boolean int integer float double string str number object array list dict
    map set tuple bytes char any type default public private protected final abstract int32 int64 uint8 uint32 uint64
    usize isize option result vec some main init test tests name path file value key data index id url error"""
)


def document_edges(chunks: Sequence[ReadChunk]) -> Iterator[Triple]:
    """Yield the links and mentions of one document, each once per section."""
    known: set[tuple[str, str, str]] = set()
    for chunk in chunks:
        row = chunk.row
        of_chunk = row["source"], row["path"], row["chunk_id"]
        for subject, predicate, target, line in _edges(chunk):
            key = subject[0], predicate, target[0]
            if key not in known:
                known.add(key)
                resolution = "link" if predicate == "links_to" else "name"
                yield Triple(*subject, predicate, *target, *of_chunk, line, 1.0, resolution)


def _edges(chunk: ReadChunk) -> Iterator[tuple[_TypedNode, str, _TypedNode, int]]:
    """Yield the edges of a chunk: subject, predicate, object, and line in the file."""
    path = chunk.row["path"]
    for link in chunk.prose.links:
        for target in _link_target(path, link.text):
            yield chunk.place(link.line), "links_to", target, chunk.line(link.line)
    for pointer in chunk.pointers:
        for target in _pointer_target(path, pointer):
            yield chunk.titled(pointer.titles), "links_to", target, pointer.line
    for code in chunk.prose.codes:
        for target in _mention(code.text):
            yield chunk.place(code.line), "mentions", target, chunk.line(code.line)


def _pointer_target(path: str, pointer: PlacedPointer) -> Iterator[_TypedNode]:
    """Yield the target of a link that the text does not show; a label may be in any file."""
    if pointer.kind == "link":
        yield from _link_target(path, pointer.name)
    elif pointer.kind == "ref":
        yield f"{LINK}:#{pointer.name}"[:_LONGEST], LINK


def _link_target(path: str, href: str) -> Iterator[tuple[str, str]]:
    """Yield the target of a link: a path and anchor in the source, or a web page."""
    if not href or len(href) > _LONGEST * 5 or href.startswith("//"):
        return
    try:
        parts = urlsplit(href)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return
    if parts.scheme in {"http", "https"} and parts.hostname:
        page = scrub(f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}")
        yield f"{EXTERNAL}:{page}"[:_LONGEST], EXTERNAL
    elif not parts.scheme and not parts.netloc:
        target = _source_path(path, unquote(parts.path))
        if target is not None:
            anchor = unquote(parts.fragment)
            yield f"{LINK}:{target}{'#' if anchor else ''}{anchor}"[:_LONGEST], LINK


def _source_path(path: str, target: str) -> str | None:
    """Return the source path that a file links to; a path relative to the site root keeps its leading slash."""
    if not target:
        return path
    if not _LOCAL.fullmatch(target):
        return None
    if target.startswith("/"):
        return posixpath.normpath(target)
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if joined.startswith("..") or joined == "." else joined


def _mention(code: str) -> Iterator[tuple[str, str]]:
    """Yield the symbol or file that text in code font may name. A plain word keeps its parentheses."""
    text = code.strip()
    if len(text) > _LONGEST:
        return
    file = _PATH.fullmatch(text)
    if file and ("/" in text or text.rpartition(".")[2] in _FILE_EXTENSIONS):
        yield f"{MENTION}:{file['path']}", MENTION
        return
    called = _CALL.sub("", text)
    found = _NAME.fullmatch(_GENERIC.sub("", called))
    if found is None:
        return
    name = _SEPARATORS.sub(".", found["name"])
    if called != text and is_plain(name):
        yield f"{MENTION}:{name}()", MENTION
    elif may_be_name(name):
        yield f"{MENTION}:{name}", MENTION


def may_be_name(name: str) -> bool:
    """Return whether a name in code font, without parentheses, may be a symbol: neither short nor a common word."""
    return len(name) >= _SHORTEST and name.lower() not in _COMMON_WORDS


def is_plain(name: str) -> bool:
    """Return whether a name looks like an ordinary word: lower-case letters only."""
    return name.islower() and name.isalpha()


_FILE_EXTENSIONS = words("py pyi js ts tsx jsx mjs cjs go rs java kt rb php cs c h cc cpp hpp swift md rst toml")
