"""What the previous table of a source says of its files, so that unchanged ones are not read again."""

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
from docindex_dagster.sources.secrets import detector_version, secrets_of

if TYPE_CHECKING:
    from docindex_dagster.sources.walk import Entry

# Keys of the metadata of a `discovered_files` table.
HEAD = b"docindex.head"  # git: id of the last commit; absent before the first
RULES = b"docindex.rules"  # version of the rules that look at content
STATE = b"docindex.state"  # git: what `changes.state_of` says
FINGERPRINT = b"docindex.fingerprint"  # of the state that discovery saw; absent where that is no state of the source

_RULES_VERSION = "6"
_RACY_NS = 2_000_000_000  # the coarsest time stamps of file systems in use


@cache
def rules_version(secrets: Literal["skip", "index"]) -> bytes:
    """Changes when the same file would give another row, in a source whose setting `secrets` says so."""
    return " ".join((_RULES_VERSION, secrets, detector_version() if secrets == "skip" else "")).encode()


def head_of(files: pa.Table) -> str | None:
    """The id of the commit that discovery saw; None outside of git, and before the first commit."""
    return _value(files, HEAD)


def fingerprint_of(files: pa.Table) -> str | None:
    """What `fingerprint` gave for the source when its files were found; None where that is no state of it."""
    return _value(files, FINGERPRINT)


def _value(files: pa.Table, key: bytes) -> str | None:
    value = (files.schema.metadata or {}).get(key)
    return value.decode() if value else None


@dataclass(frozen=True, slots=True)
class Memory:
    """The previous table, by path; its columns are lists, which are quicker to look into than Arrow's."""

    positions: dict[bytes, int] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    started_ns: int = 0

    def content(self, entry: "Entry") -> Content | None:
        """Return what reading an entry would give, if it was read before and cannot have changed since."""
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
            secrets_of(column["masked"][at]),
        )

    def commit(self, path: bytes) -> str | None:
        """Return the last commit that had changed a file then, if it is known."""
        at = self.positions.get(path)
        return self.columns["commit"][at] if at is not None else None

    def _is_unchanged(self, at: int, entry: "Entry") -> bool:
        column = self.columns
        if column["content_hash"][at] is None or column["size"][at] != entry.size:
            return False
        mtime_ns, blob = column["mtime_ns"][at], column["git_blob"][at]
        if mtime_ns != entry.mtime_ns or blob != entry.blob:
            # A blob alone is not enough: git converts what it checks out, by settings and attributes that may change.
            return False
        # Where git compared the file, only what was written while discovery ran may have been read in another state.
        return bool(mtime_ns < (self.started_ns if blob is not None else self.started_ns - _RACY_NS))


def remember(previous: pa.Table | None, names: Sequence[str], rules: bytes) -> Memory:
    """Open the previous table at some paths. One that other rules than these made, or none, remembers nothing."""
    metadata = (previous.schema.metadata or {}) if previous is not None else {}
    if previous is None or metadata.get(RULES) != rules:
        return Memory()
    asked = previous.filter(pc.is_in(previous["path"], pa.array(names, pa.string())))
    columns = {name: asked[name].to_pylist() for name in DISCOVERED_FILES.names}
    positions = {name_to_path(name): at for at, name in enumerate(columns["path"])}
    return Memory(positions, columns, int(metadata[STARTED_NS]))


@lru_cache
def _kind(source_type: str | None, language: str | None, loader: str | None) -> FileKind | None:
    return FileKind(source_type, language, loader) if source_type is not None and loader is not None else None
