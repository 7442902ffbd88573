"""The one door to all loaders."""

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath
from typing import Literal, cast

from docindex_dagster.documents.line_markup import load_line_markup, load_plain
from docindex_dagster.documents.model import Document

Loader = Literal["markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc", "pdf"]

# By name, so that a run pays only for the parsers that its files need.
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
_LEAST = 64  # characters of data: shorter ones are examples
# The type of a `data:` URI, and its data: Base64, which may go on in lines of its own, or escaped bytes.
_DATA = re.compile(
    r"(?<!\w)(?P<type>data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+(?:=[\w.+-]*)?)*,)"
    rf"(?P<data>(?:[\w+/=.~!*:;,@$&-]|%[0-9A-Fa-f]{{2}}){{{_LEAST},}}"
    rf"|[\w+/-]*\r?\n[ \t]*{_LINE})(?:\r?\n[ \t]*(?:{_LINE}|[A-Za-z0-9+/]+={{1,2}}))*"
)


def load_document(text: str, path: str, loader: str) -> Document:
    """Read the text of the file at `path` with the named loader.

    A file that its loader cannot read comes back as plain text, with the reason in `fallback`. The data of `data:` URIs
    is left out; its lines stay as empty ones.

    Raises:
        ValueError: there is no such loader.
    """
    readable = _without_data(text)
    document = _loaded(readable, path, loader)
    return document if readable == text else _transformed(document)


def _without_data(text: str) -> str:
    """A text in which `data:` URIs end before their data."""
    if "data:" not in text:
        return text
    return _DATA.sub(lambda found: found["type"] + "\n" * found[0].count("\n"), text)


def _transformed(document: Document) -> Document:
    """A document whose blocks are no spans of its file."""
    sections = [
        replace(section, blocks=tuple(replace(block, start_byte=None, end_byte=None) for block in section.blocks))
        for section in document.sections
    ]
    return replace(document, sections=tuple(sections), transformed=True)


def _loaded(text: str, path: str, loader: str) -> Document:
    if loader not in _LOADERS:
        raise ValueError(f"no loader {loader!r} for {path}; there are {', '.join(_LOADERS)}")
    module, function = _LOADERS[loader]
    load = cast("Callable[[str], Document]", getattr(import_module(f"docindex_dagster.documents.{module}"), function))
    try:
        document = (loader == "text" and load_line_markup(text, PurePosixPath(path).suffix.lower())) or load(text)
    except Exception as error:  # noqa: BLE001 - the parsers are not ours, and a hostile file may break them in any way
        return load_plain(text, fallback=f"{loader} loader failed: {type(error).__name__}: {str(error)[:200]}")
    if not document.sections and text.strip():
        return load_plain(text, fallback=f"{loader} loader found no text")
    return document
