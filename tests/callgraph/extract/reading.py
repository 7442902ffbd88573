"""Intermediate representation of source snippets."""

from docindex_dagster.callgraph.ir import Expression, FileIR
from docindex_dagster.callgraph.languages import extract
from docindex_dagster.code.extraction import extract as outline_of
from docindex_dagster.code.parsers import parse


def read(language: str, source: str) -> FileIR:
    data = source.encode()
    tree = parse(data, language)
    return extract(tree, language, outline_of(tree, data, language).symbols)


def value(language: str, source: str) -> Expression:
    """Return the value assigned to the last variable in the source."""
    return read(language, source).assignments[-1].value
