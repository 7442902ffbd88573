"""What a reference that a user typed may mean here, where its path may be one on disk."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from docindex_dagster.core.references import Reference, parse
from docindex_dagster.core.settings import Settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import path_to_name


def readings_of(settings: Settings, text: str, sources: Iterable[str] = ()) -> list[Reference]:
    """Return all ways to read a text, with the paths that lead to something on disk as their sources name them.

    Args:
        settings: of the project.
        text: what the user typed, maybe with a path from the working directory or from the root.
        sources: the keys of those that are indexed; those that are declared are known.
    """
    found: list[Reference] = []
    absent: list[Reference] = []
    for reading in parse(text, dict.fromkeys((*sources, *registry.sources(settings)))):
        place = None if reading.source or not reading.path else registry.located(settings, Path(reading.path))
        if place:
            source, name = place
            readings = found if os.path.lexists(reading.path) else absent
            readings.append(replace(reading, path=name or ".", source=source.key))
        found.append(replace(reading, path=_as_name(reading.path)))
    return [*dict.fromkeys((*found, *absent))]


def _as_name(path: str) -> str:
    """Return a path as tables hold it, unless it can be one of those already."""
    try:
        path.encode()
    except UnicodeEncodeError:  # the shell passed bytes that are no text
        return path_to_name(os.fsencode(path))
    return path
