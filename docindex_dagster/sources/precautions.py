"""What a user may not have meant about a folder that is to be indexed."""

from itertools import islice
from pathlib import Path

from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.discover import judge
from docindex_dagster.sources.memory import Memory
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import walk

_MOST_FILES = 2000  # a folder in which none of so many counts is taken for one that has others
WHAT_COUNTS = (
    "documents, code, configuration and other texts count, unless a rule skips them; `docindex why FILE` says which"
)


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
        if (place := source.path.resolve()).is_relative_to(real)
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
