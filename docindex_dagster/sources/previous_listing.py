"""The previous table of a source, used to avoid reading unchanged files again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.schemas import DISCOVERED_FILES
from docindex_dagster.core.tables import STARTED_NS
from docindex_dagster.sources.classify import FileKind
from docindex_dagster.sources.content import Content
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.secrets import detector_version, parse_masked

if TYPE_CHECKING:
    from docindex_dagster.sources.walk import Entry

# Keys of the metadata of a `discovered_files` table.
HEAD = b"docindex.head"  # git: id of the last commit; absent before the first commit
RULES = b"docindex.rules"  # version of the rules that examine content
STATE = b"docindex.state"  # git: the result of `changes.state_of`
FINGERPRINT = b"docindex.fingerprint"  # of the state that discovery saw; absent if the table mixes several states

_RULES_VERSION = "6"
_RACY_NS = 2_000_000_000  # the coarsest timestamp resolution of common file systems


@cache
def rules_version(secrets: Literal["skip", "index"]) -> bytes:
    """Return a version that changes when the same file may yield another row, given the source's `secrets` setting."""
    return " ".join((_RULES_VERSION, secrets, detector_version() if secrets == "skip" else "")).encode()


def head_of(files: pa.Table) -> str | None:
    """Return the id of the commit that discovery saw; None for libraries and before the first commit."""
    return _value(files, HEAD)


def fingerprint_of(files: pa.Table) -> str | None:
    """Return the source's `fingerprint` at discovery; None if the table mixes several states of the source."""
    return _value(files, FINGERPRINT)


def _value(files: pa.Table, key: bytes) -> str | None:
    value = (files.schema.metadata or {}).get(key)
    return value.decode() if value else None


@dataclass(frozen=True, slots=True)
class Memory:
    """The previous table, by path; its columns are lists, which are faster to index than Arrow arrays."""

    positions: dict[bytes, int] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    started_ns: int = 0

    def content(self, entry: "Entry") -> Content | None:
        """Return the content of an entry if it was read before and cannot have changed since."""
        at = self.positions.get(entry.path)
        if at is None or not self._is_unchanged(at, entry):
            return None
        column = self.columns
        return Content(
            _kind(column["source_type"][at], column["language"][at], column["loader"][at]),
            column["content_hash"][at],
            column["encoding"][at],
            column["is_lossy"][at],
            column["skipped_reason"][at],
            parse_masked(column["masked"][at]),
        )

    def commit(self, path: bytes) -> str | None:
        """Return the last commit that changed a file as of the previous table, if known."""
        at = self.positions.get(path)
        return self.columns["commit"][at] if at is not None else None

    def _is_unchanged(self, at: int, entry: "Entry") -> bool:
        column = self.columns
        if column["content_hash"][at] is None or column["size"][at] != entry.size:
            return False
        mtime_ns, blob = column["mtime_ns"][at], column["git_blob"][at]
        if mtime_ns != entry.mtime_ns or blob != entry.blob:
            # An unchanged blob is not enough: git converts files on checkout, by settings and attributes that may
            # change.
            return False
        # If git compared the file, only a write during discovery can have made us read another state.
        return bool(mtime_ns < (self.started_ns if blob is not None else self.started_ns - _RACY_NS))


def load_memory(previous: pa.Table | None, names: Sequence[str], rules: bytes) -> Memory:
    """Load the previous table at some paths; return an empty memory if there is none or other rules produced it."""
    metadata = (previous.schema.metadata or {}) if previous is not None else {}
    if previous is None or metadata.get(RULES) != rules:
        return Memory()
    rows = previous.filter(pc.is_in(previous["path"], pa.array(names, pa.string())))
    columns = {name: rows[name].to_pylist() for name in DISCOVERED_FILES.names}
    positions = {name_to_path(name): at for at, name in enumerate(columns["path"])}
    return Memory(positions, columns, int(metadata[STARTED_NS]))


@lru_cache
def _kind(source_type: str | None, language: str | None, loader: str | None) -> FileKind | None:
    return FileKind(source_type, language, loader) if source_type is not None and loader is not None else None
