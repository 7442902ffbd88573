"""Checks of a folder before it is indexed: likely mistakes, and counts of what would be indexed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from docindex_dagster.core.events import reporter
from docindex_dagster.core.files import real_path
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.discovery import judge, list_entries
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import path_to_name
from docindex_dagster.sources.previous_listing import Memory
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import Entry, walk

_MAX_FILES = 2000  # a folder with more files is assumed to contain some that count
INDEXABLE_FILES = (
    "documents, code, configuration and other text files count unless a rule skips them; `docindex why FILE` says which"
)
_MAX_EXAMPLES = 3  # per rule
_STAGE = "discovered_files"
# From the runs of six repositories in benchmarks/README.md, with the static model and two shared cores: bytes per
# chunk, chunks per second after startup (minimum and maximum of each), and seconds to start.
_CHUNK_BYTES = (700, 1250)
CHUNKS_PER_SECOND = (270, 480)
STARTUP_S = 4


def contains_home(folder: Path) -> bool:
    """Return whether a folder is the user's home or one of its parents, such as `/`."""
    return Path.home().resolve().is_relative_to(folder.resolve())


def overlapping(settings: Settings, folder: Path) -> list[Source]:
    """Return the sources that share files with a folder, also through symlinks."""
    real = folder.resolve()
    declared = [source for source in registry.sources(settings).values() if source.remote is None]
    return [
        source
        for source in declared
        if (root := real_path(source.path)).is_relative_to(real)
        or (real.is_relative_to(root) and registry.locate_path(settings, real) is not None)
    ]


def has_no_files(settings: Settings, folder: Path) -> bool:
    """Return whether a folder contains nothing to index, judging by its first files.

    Raises:
        SourceError: The folder cannot be listed.
    """
    discovery = settings.discovery
    source = Source(
        "library/folder",
        "library",
        "folder",
        folder,
        max_file_bytes=discovery.max_file_bytes,
        secrets=discovery.secrets,
    )
    examined = 0
    for entry in islice(walk(path_rules(source)), _MAX_FILES):
        examined += 1
        if judge(source, entry, Memory()).reason is None:
            return False
    return examined < _MAX_FILES


@dataclass
class SkippedEntries:
    """The files and folders that one rule skips."""

    files: int = 0
    folders: int = 0  # with everything in them, which is not counted
    examples: list[str] = field(default_factory=list)


@dataclass
class SourcePreview:
    """The files of a source that would be indexed and those that would be skipped.

    Attributes:
        kinds: Number of files to index by source type (`doc`, `code`, `test`, `config`) and language.
        text_bytes: Total size of these files.
        rules: What would be skipped, by the name of the rule.
        masked: Number of files to index that contain secrets, which are masked.
    """

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    text_bytes: int = 0
    rules: dict[str, SkippedEntries] = field(default_factory=dict)
    masked: int = 0

    @property
    def files(self) -> int:
        """Number of files to index."""
        return self.kinds.total()

    @property
    def megabytes(self) -> float:
        """Size of these files in megabytes (10^6 bytes)."""
        return self.text_bytes / 1e6

    @property
    def chunks(self) -> tuple[int, int]:
        """Estimated minimum and maximum number of chunks; each file yields at least one."""
        large, small = (self.text_bytes // size for size in reversed(_CHUNK_BYTES))
        return max(self.files, large), max(self.files, small)

    @property
    def seconds(self) -> tuple[int, int]:
        """Estimated minimum and maximum indexing time, if this machine is like the measured one."""
        (few, many), (slow, fast) = self.chunks, CHUNKS_PER_SECOND
        return STARTUP_S + round(few / fast), STARTUP_S + round(many / slow)

    def languages(self, source_types: Sequence[str]) -> list[tuple[str, int]]:
        """Return the languages of files of some types with their file counts, most files first."""
        found = Counter[str]()
        for (source_type, language), count in self.kinds.items():
            if source_type in source_types:
                found[language] += count
        return found.most_common()


def preview_source(source: Source) -> SourcePreview:
    """Judge each file of a source as a run would, keeping only counts.

    Raises:
        SourceError: As for `discover`.
    """
    outlook, entries, nothing = SourcePreview(), list_entries(source), Memory()
    announce = reporter(source.key, _STAGE, "files")
    for done, entry in enumerate(entries, start=1):
        content = judge(source, entry, nothing)
        if content.reason is not None:
            _count_skipped(outlook, entry, content.reason)
        elif content.kind is not None:
            outlook.kinds[content.kind.source_type, content.kind.language or "text"] += 1
            outlook.text_bytes += entry.size
            outlook.masked += bool(content.masked)
        announce(done, len(entries))
    return outlook


def _count_skipped(outlook: SourcePreview, entry: Entry, reason: str) -> None:
    rule = outlook.rules.setdefault(reason.partition(":")[0], SkippedEntries())
    if entry.path.endswith(b"/"):
        rule.folders += 1
    else:
        rule.files += 1
    if len(rule.examples) < _MAX_EXAMPLES:
        rule.examples.append(path_to_name(entry.path))
