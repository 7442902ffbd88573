"""The one door to all loaders."""

from collections.abc import Callable
from importlib import import_module
from typing import Literal, cast

from docindex_dagster.documents.model import Document
from docindex_dagster.documents.plain import load_plain

Loader = Literal["markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc", "pdf"]

# By name, so that a run pays only for the parsers that its files need.
_LOADERS = {
    "markdown": ("markdown", "load_markdown"),
    "mdx": ("mdx", "load_mdx"),
    "rst": ("rst", "load_rst"),
    "html": ("html", "load_html"),
    "text": ("plain", "load_plain"),
    "notebook": ("notebook", "load_notebook"),
    "asciidoc": ("asciidoc", "load_asciidoc"),
    "pdf": ("converted", "load_converted"),
}


def load_document(text: str, path: str, loader: str) -> Document:
    """Read the text of the file at `path` with the named loader.

    A file that its loader cannot read comes back as plain text, with the reason in `fallback`.

    Raises:
        ValueError: there is no such loader.
    """
    if loader not in _LOADERS:
        raise ValueError(f"no loader {loader!r} for {path}; there are {', '.join(_LOADERS)}")
    module, function = _LOADERS[loader]
    load = cast("Callable[[str], Document]", getattr(import_module(f"docindex_dagster.documents.{module}"), function))
    try:
        document = load(text)
    except Exception as error:  # noqa: BLE001 - the parsers are not ours, and a hostile file may break them in any way
        return load_plain(text, fallback=f"{loader} loader failed: {type(error).__name__}: {str(error)[:200]}")
    if not document.sections and text.strip():
        return load_plain(text, fallback=f"{loader} loader found no text")
    return document
