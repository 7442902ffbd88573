"""The entry point to all loaders."""

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath
from typing import Literal, cast

from docindex_dagster.documents.line_markup import load_line_markup, load_plain
from docindex_dagster.documents.model import Document

Loader = Literal["markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc", "pdf"]

# Named rather than imported, so that a run loads only the parsers that its files need.
_LOADERS = {
    "markdown": ("markdown", "load_markdown"),
    "mdx": ("mdx", "load_mdx"),
    "rst": ("rst", "load_rst"),
    "html": ("html", "load_html"),
    "text": ("line_markup", "load_plain"),
    "notebook": ("notebook", "load_notebook"),
    "asciidoc": ("line_markup", "load_asciidoc"),
    "pdf": ("line_markup", "load_converted"),
}

_LINE = r"[A-Za-z0-9+/]{40,}={0,2}"
_MIN_DATA = 64  # characters of data; shorter data is usually an example
# The type of a `data:` URI and its data: Base64, possibly continued on further lines, or escaped bytes.
_DATA = re.compile(
    r"(?<!\w)(?P<type>data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+(?:=[\w.+-]*)?)*,)"
    rf"(?P<data>(?:[\w+/=.~!*:;,@$&-]|%[0-9A-Fa-f]{{2}}){{{_MIN_DATA},}}"
    rf"|[\w+/-]*\r?\n[ \t]*{_LINE})(?:\r?\n[ \t]*(?:{_LINE}|[A-Za-z0-9+/]+={{1,2}}))*"
)


def load_document(text: str, path: str, loader: str) -> Document:
    """Read the text of the file at `path` with the named loader.

    If the loader fails, the file is read as plain text, and `fallback` gives the reason. The data of `data:` URIs is
    removed; its lines remain as empty lines.

    Raises:
        ValueError: The loader does not exist.
    """
    readable = _without_data(text)
    document = _load(readable, path, loader)
    return document if readable == text else _as_transformed(document)


def _without_data(text: str) -> str:
    """Return a text with the data removed from its `data:` URIs."""
    if "data:" not in text:
        return text
    return _DATA.sub(lambda found: found["type"] + "\n" * found[0].count("\n"), text)


def _as_transformed(document: Document) -> Document:
    """Return a document whose blocks are not spans of its file."""
    sections = [
        replace(section, blocks=tuple(replace(block, start_byte=None, end_byte=None) for block in section.blocks))
        for section in document.sections
    ]
    return replace(document, sections=tuple(sections), transformed=True)


def _load(text: str, path: str, loader: str) -> Document:
    if loader not in _LOADERS:
        raise ValueError(f"unknown loader {loader!r} for {path}; available loaders: {', '.join(_LOADERS)}")
    module, function = _LOADERS[loader]
    load = cast("Callable[[str], Document]", getattr(import_module(f"docindex_dagster.documents.{module}"), function))
    try:
        document = (loader == "text" and load_line_markup(text, PurePosixPath(path).suffix.lower())) or load(text)
    except Exception as error:  # noqa: BLE001 - third-party parsers may fail in any way on hostile files
        return load_plain(text, fallback=f"{loader} loader failed: {type(error).__name__}: {str(error)[:200]}")
    if not document.sections and text.strip():
        return load_plain(text, fallback=f"{loader} loader found no text")
    return document
