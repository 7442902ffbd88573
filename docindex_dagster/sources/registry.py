"""Which sources there are: from the `[[source]]` tables of the settings to `Source` objects."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from docindex_dagster.errors import SettingsError, SourceError
from docindex_dagster.settings import Settings, SourceSettings, is_parent_of_libraries
from docindex_dagster.sources.model import Source


def sources(settings: Settings) -> dict[str, Source]:
    """All declared sources by key, whether or not their folders exist.

    Raises:
        SettingsError: two sources have one key.
    """
    found: dict[str, Source] = {}
    for declared in settings.source:
        for name, path in _places(settings.root, declared):
            source = _source(settings, declared, name, path)
            if source.key in found:
                raise SettingsError(
                    f"{settings.config_file}: two sources are named {source.key} "
                    f"({found[source.key].path} and {path}); give one of them another name"
                )
            found[source.key] = source
    return found


def find(settings: Settings, name: str) -> Source:
    """The source that a user means by `git/NAME`, `library/NAME`, or NAME alone where it is unique.

    Raises:
        SourceError: none or several fit.
    """
    declared = sources(settings)
    fitting = [source for key, source in declared.items() if name in {key, source.name}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SourceError(f"{name!r} is not unique: say {' or '.join(source.key for source in fitting)}")
    known = ", ".join(declared) or "none yet: add one with `docindex source add PATH`"
    raise SourceError(f"there is no source {name!r}; known sources: {known}")


def containing(settings: Settings, path: Path) -> Source | None:
    """The source whose folder holds `path`; the innermost where sources lie in one another."""
    path = Path(os.path.normpath(path.absolute()))
    around = [source for source in sources(settings).values() if path.is_relative_to(source.path)]
    return max(around, key=lambda source: len(source.path.parts), default=None)


def _places(root: Path, declared: SourceSettings) -> Iterator[tuple[str, Path]]:
    """Name and folder of each source that one table declares."""
    path = (root / Path(declared.path).expanduser()).absolute()
    if not is_parent_of_libraries(declared.path):
        yield declared.name or _key_name(path.resolve().name or "root"), path
        return
    if path.parent.is_dir():
        children = (child for child in path.parent.iterdir() if child.is_dir() and not child.name.startswith("."))
        yield from ((_key_name(child.name), child) for child in sorted(children))


def _key_name(name: str) -> str:
    """A folder's name as part of a key: what a Dagster partition key cannot hold is percent-escaped."""
    escaped = "".join(char if char.isprintable() else quote(char, errors="surrogateescape") for char in name)
    return escaped.replace("...", "%2E%2E%2E")


def _source(settings: Settings, declared: SourceSettings, name: str, path: Path) -> Source:
    return Source(
        key=f"{declared.kind}/{name}",
        kind=declared.kind,
        name=name,
        path=path,
        include=declared.include,
        exclude=declared.exclude,
        recursive=declared.recursive,
        include_code=declared.include_code,
        untracked=declared.untracked,
        version=declared.version,
        max_file_bytes=settings.discovery.max_file_bytes,
    )
