"""What decides the chunks and references of a file besides its bytes and the settings."""

from functools import cache
from importlib.metadata import version

import pyarrow as pa

from docindex_dagster.callgraph.table import REFERENCES_VERSION
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.sources.memory import RULES

# Raise it with every change that makes the same file give other chunks, or other symbols.
EXTRACTOR_VERSION = "13"
# The packages that decide where a file is cut.
_PARSERS = (
    "charset-normalizer",
    "docutils",
    "markdown-it-py",
    "mdit-py-plugins",
    "py3langid",
    "pypdf",
    "selectolax",
    "tree-sitter",
    "tree-sitter-language-pack",
)


@cache
def parsers() -> tuple[str, ...]:
    """The packages that parse files, with their versions, which are looked up on the disk."""
    return tuple(f"{name} {version(name)}" for name in _PARSERS)


def rules_of(files: pa.Table) -> str:
    """The rules by which `files` were discovered, which say what is masked in them."""
    return str((files.schema.metadata or {}).get(RULES, b"").decode())


def extraction_fingerprint() -> str:
    """Changes when the same text would give other references."""
    return digest_parts(REFERENCES_VERSION, EXTRACTOR_VERSION, *parsers())


def references_fingerprint(files: pa.Table) -> str:
    """Changes when the same file would give other references; `files` are the `discovered_files`."""
    return digest_parts(extraction_fingerprint(), rules_of(files))
