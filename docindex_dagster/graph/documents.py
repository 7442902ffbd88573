"""The edges of a document: where its links lead, and what it names in code font.

Both are kept by the name that is written, and settled when a generation is opened: what a file gives never depends on
another file.
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
"""The source_type of the chunks that are read."""

_CALL = re.compile(r"\([^`]{0,200}\)$")
_GENERIC = re.compile(r"<[\w, ]{1,60}>$")
_NAME = re.compile(r"[@$&*~]?(?P<name>[^\W\d]\w*(?:(?:\.|::|#|->)[^\W\d]\w*){0,8})[!?]?")
_PATH = re.compile(r"(?:\./)?(?P<path>[\w.@+-]+(?:/[\w.@+-]+){0,20}\.[A-Za-z][A-Za-z0-9]{0,7})")
_PARTS = re.compile(r"::|#|->")
_LOCAL = re.compile(r"[^\x00-\x1f\\`<>(){}\[\]:]+")  # no Rust path, no template
_Place = tuple[str, str]  # a node and its type
_SHORTEST = 3  # characters of a name
_LONGEST = 200  # of an address or name
_WORDS = words(
    """true false null none nil undefined self this super async await return yield import export from class struct enum
    interface function const static void bool boolean int integer float double string str number object array list dict
    map set tuple bytes char any type default public private protected final abstract int32 int64 uint8 uint32 uint64
    usize isize option result vec some main init test tests name path file value key data index id url error"""
)


def document_edges(chunks: Sequence[ReadChunk]) -> Iterator[Triple]:
    """The links and mentions of one document, each once a section."""
    known: set[tuple[str, str, str]] = set()
    for chunk in chunks:
        row = chunk.row
        of_chunk = row["source"], row["path"], row["chunk_id"]
        for place, predicate, target, line in _found(chunk):
            key = place[0], predicate, target[0]
            if key not in known:
                known.add(key)
                how = "link" if predicate == "links_to" else "name"
                yield Triple(*place, predicate, *target, *of_chunk, line, 1.0, how)


def _found(chunk: ReadChunk) -> Iterator[tuple[_Place, str, _Place, int]]:
    """What a chunk leads to: from where, how, to what, on which line of the file."""
    path = chunk.row["path"]
    for link in chunk.prose.links:
        for target in _address(path, link.text):
            yield chunk.place(link.line), "links_to", target, chunk.line(link.line)
    for pointer in chunk.pointers:
        for target in _targets_of(path, pointer):
            yield chunk.titled(pointer.titles), "links_to", target, pointer.line
    for code in chunk.prose.codes:
        for target in _mention(code.text):
            yield chunk.place(code.line), "mentions", target, chunk.line(code.line)


def _targets_of(path: str, pointer: PlacedPointer) -> Iterator[_Place]:
    """Where a link leads that the text does not show; a label is one of any file."""
    if pointer.kind == "link":
        yield from _address(path, pointer.name)
    elif pointer.kind == "ref":
        yield f"{LINK}:#{pointer.name}"[:_LONGEST], LINK


def _address(path: str, href: str) -> Iterator[tuple[str, str]]:
    """Where a link of a file leads: into the source, by path and anchor, or to a page of the web."""
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
        target = _local(path, unquote(parts.path))
        if target is not None:
            anchor = unquote(parts.fragment)
            yield f"{LINK}:{target}{'#' if anchor else ''}{anchor}"[:_LONGEST], LINK


def _local(path: str, target: str) -> str | None:
    """The path in the source of what a file links to; one from the top of a site keeps its slash."""
    if not target:
        return path
    if not _LOCAL.fullmatch(target):
        return None
    if target.startswith("/"):
        return posixpath.normpath(target)
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if joined.startswith("..") or joined == "." else joined


def _mention(code: str) -> Iterator[tuple[str, str]]:
    """The symbol or file that a text in code font may name. A plain word keeps its parentheses."""
    text = code.strip()
    if len(text) > _LONGEST:
        return
    file = _PATH.fullmatch(text)
    if file and ("/" in text or text.rpartition(".")[2] in _ENDINGS):
        yield f"{MENTION}:{file['path']}", MENTION
        return
    called = _CALL.sub("", text)
    found = _NAME.fullmatch(_GENERIC.sub("", called))
    if found is None:
        return
    name = _PARTS.sub(".", found["name"])
    if called != text and is_plain(name):
        yield f"{MENTION}:{name}()", MENTION
    elif may_be_name(name):
        yield f"{MENTION}:{name}", MENTION


def may_be_name(name: str) -> bool:
    """Whether a name in code font, without parentheses, may be that of a symbol: most programs have the other ones."""
    return len(name) >= _SHORTEST and name.lower() not in _WORDS


def is_plain(name: str) -> bool:
    """Whether a name is a word as any other: of small letters alone."""
    return name.islower() and name.isalpha()


_ENDINGS = words("py pyi js ts tsx jsx mjs cjs go rs java kt rb php cs c h cc cpp hpp swift md rst toml")
