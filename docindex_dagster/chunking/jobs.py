"""What a parsing worker is given, and what it gives. No parser is loaded."""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from docindex_dagster.callgraph.table import REFERENCES
from docindex_dagster.code.languages import holds_symbols
from docindex_dagster.documents.convert import is_converted
from docindex_dagster.sources.secrets import Secret

_PATIENCE = 12


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What every chunk of one file shares."""

    source: str
    source_kind: str
    path: str
    content_hash: str
    source_type: str
    language: str | None
    commit: str | None
    is_uncommitted: bool


@dataclass(frozen=True, slots=True)
class FileJob(FileIdentity):
    """One file to cut, as discovery saw it, and what is wanted of it."""

    root: Path
    chunker: str
    size: int
    masked: tuple[Secret, ...] | None = None  # the secrets in a file of this hash; None: it is indexed as it is
    max_file_bytes: int = 1 << 20  # it may have grown since its size was looked at
    wants_chunks: bool = True
    wants_references: bool = False

    @property
    def is_referring(self) -> bool:
        """Whether what it says about names is to be extracted."""
        return self.wants_references and self.language is not None and holds_symbols(self.language)

    @property
    def patience(self) -> int:
        """How much longer than others it may take: hundreds of pages are read at some twenty a second."""
        return _PATIENCE if is_converted(self.language) else 1


@dataclass(frozen=True, slots=True)
class ChunkedFiles:
    """The rows of a batch of files, the files that are left out, with the reason, and the rows of what files say."""

    rows: pa.Table
    left_out: tuple[tuple[str, str], ...] = ()
    references: pa.Table = field(default_factory=REFERENCES.empty_table)
