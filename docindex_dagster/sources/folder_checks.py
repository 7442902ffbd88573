"""A folder before it is indexed: what its user may not have meant, and what would be indexed of it, in counts."""

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

_MOST_FILES = 2000  # a folder in which none of so many counts is taken for one that has others
WHAT_COUNTS = (
    "documents, code, configuration and other texts count, unless a rule skips them; `docindex why FILE` says which"
)
_EXAMPLES = 3  # of what a rule leaves out
_STAGE = "discovered_files"
# Of the runs of six repositories in benchmarks/README.md, with the static model and two shared cores: bytes of a chunk,
# chunks a second once it has started, each the least and the most, and seconds to start.
_CHUNK_BYTES = (700, 1250)
CHUNKS_A_SECOND = (270, 480)
START_S = 4


def holds_home(folder: Path) -> bool:
    """Whether a folder is the user's home, or one around it such as `/`."""
    return Path.home().resolve().is_relative_to(folder.resolve())


def overlapping(settings: Settings, folder: Path) -> list[Source]:
    """The sources that have files in common with a folder, also where a link leads from one to the other."""
    real = folder.resolve()
    declared = [source for source in registry.sources(settings).values() if source.remote is None]
    return [
        source
        for source in declared
        if (place := real_path(source.path)).is_relative_to(real)
        or (real.is_relative_to(place) and registry.located(settings, real) is not None)
    ]


def is_without_files(settings: Settings, folder: Path) -> bool:
    """Whether nothing in a folder would be indexed, so far as can be seen soon.

    Raises:
        SourceError: it cannot be listed.
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
    looked_at = 0
    for entry in islice(walk(path_rules(source)), _MOST_FILES):
        looked_at += 1
        if judge(source, entry, Memory()).reason is None:
            return False
    return looked_at < _MOST_FILES


@dataclass
class LeftOut:
    """What one rule leaves out."""

    files: int = 0
    folders: int = 0  # with all that is in them, which is not counted
    examples: list[str] = field(default_factory=list)


@dataclass
class Outlook:
    """What would become of the files of a source.

    Attributes:
        kinds: how many files would be indexed, by what they are (`doc`, `code`, `test`, `config`) and their language.
        text_bytes: of these files.
        rules: what would be left out, by the name of the rule.
        masked: how many of the files that would be indexed hold secrets, which are not.
    """

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    text_bytes: int = 0
    rules: dict[str, LeftOut] = field(default_factory=dict)
    masked: int = 0

    @property
    def files(self) -> int:
        """How many would be indexed."""
        return self.kinds.total()

    @property
    def megabytes(self) -> float:
        """The bytes of these files, in millions."""
        return self.text_bytes / 1e6

    @property
    def chunks(self) -> tuple[int, int]:
        """How many chunks these files give about, at least and at most; each gives one."""
        large, small = (self.text_bytes // size for size in reversed(_CHUNK_BYTES))
        return max(self.files, large), max(self.files, small)

    @property
    def seconds(self) -> tuple[int, int]:
        """How long indexing them takes at least and at most, if this machine is like the one that was measured."""
        (few, many), (slow, fast) = self.chunks, CHUNKS_A_SECOND
        return START_S + round(few / fast), START_S + round(many / slow)

    def languages(self, source_types: Sequence[str]) -> list[tuple[str, int]]:
        """The languages of files of some types, that with the most files first."""
        found = Counter[str]()
        for (source_type, language), count in self.kinds.items():
            if source_type in source_types:
                found[language] += count
        return found.most_common()


def look_ahead(source: Source) -> Outlook:
    """Judge each file of a source as a run would, and keep no more than counts.

    Raises:
        SourceError: as `discover`.
    """
    outlook, entries, nothing = Outlook(), list_entries(source), Memory()
    announce = reporter(source.key, _STAGE, "files")
    for done, entry in enumerate(entries, start=1):
        content = judge(source, entry, nothing)
        if content.reason is not None:
            _leave_out(outlook, entry, content.reason)
        elif content.kind is not None:
            outlook.kinds[content.kind.source_type, content.kind.language or "text"] += 1
            outlook.text_bytes += entry.size
            outlook.masked += bool(content.masked)
        announce(done, len(entries))
    return outlook


def _leave_out(outlook: Outlook, entry: Entry, reason: str) -> None:
    rule = outlook.rules.setdefault(reason.partition(":")[0], LeftOut())
    if entry.path.endswith(b"/"):
        rule.folders += 1
    else:
        rule.files += 1
    if len(rule.examples) < _EXAMPLES:
        rule.examples.append(path_to_name(entry.path))
