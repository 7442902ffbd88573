"""The intermediate representation of a file, from its syntax tree and its symbols."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from docindex_dagster.callgraph.facts import file_of
from docindex_dagster.callgraph.ir import FileIR
from docindex_dagster.code.facts import find_facts
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree


def extract(tree: "Tree", language: str, symbols: Sequence[Symbol]) -> FileIR:
    """What a parsed file with these symbols says; of a language whose calls are not read, what it defines."""
    return file_of(find_facts(tree, language, symbols), language, symbols)
