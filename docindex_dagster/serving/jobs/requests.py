"""Whether a request can be done, before it waits for its turn."""

import os

from docindex_dagster.core import tables
from docindex_dagster.core.errors import JobError, SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.serving.jobs.model import JobRequest
from docindex_dagster.sources import edit, registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path, path_to_name
from docindex_dagster.sources.why import why
from docindex_dagster.stores.generation import read_generation


def check(settings: Settings, request: JobRequest) -> None:
    """Check that a request can be done as the project stands.

    Raises:
        SourceError: its source is not declared, cannot be removed alone, or a path is none of it.
        JobError: it asks for what excludes each other.
    """
    if request.kind == "remove":
        _check_removal(settings, request)
        return
    source = registry.sources(settings).get(request.source)
    if source is None:
        raise SourceError(f"{request.source} is not declared; `docindex source list` shows the sources")
    if request.paths and request.mode != "changes":
        raise JobError(f"the mode {request.mode} is for whole sources; leave out the paths, or the mode")
    for path in request.paths:
        _check_path(settings, source, path)


def _check_removal(settings: Settings, request: JobRequest) -> None:
    if request.mode != "changes" or request.paths:
        raise JobError("a source is removed as a whole: leave out the mode and the paths")
    generation = read_generation(Layout(settings.home))
    published = generation.sources if generation else ()
    if request.source not in registry.sources(settings) and request.source not in published:
        raise SourceError(f"{request.source} is neither declared nor indexed")
    edit.check_removable(settings.root, request.source)


def _check_path(settings: Settings, source: Source, name: str) -> None:
    """A path is that of a file that is to be indexed, or of one that was and is gone.

    Raises:
        SourceError: it is neither.
    """
    path = _path_of(name)
    if path is None:
        raise SourceError(f"{name!r} is not the path of a file in {source.key}, as its tables name it")
    file = source.path / os.fsdecode(path)
    if file.is_file():
        explanation = why(source, file)
        if explanation.skipped_reason:
            raise SourceError(f"{source.key}: {explanation.sentence}")
    elif os.path.lexists(file) or not was_found(settings, source, name):
        raise SourceError(f"{source.key} has no file {name!r}")


def _path_of(name: str) -> bytes | None:
    """The path that a table calls so; None where no table calls any so, or it leads out of the source."""
    try:
        path = name_to_path(name)
    except UnicodeEncodeError:  # half of a character
        return None
    leads_astray = b"\0" in path or any(part in {b"", b".", b".."} for part in path.split(b"/"))
    return None if leads_astray or path_to_name(path) != name else path


def was_found(settings: Settings, source: Source, name: str) -> bool:
    """Whether the last run of a source found a file."""
    known = tables.read(Layout(settings.home).table("discovered_files", source.key))
    return known is not None and name in known["path"].to_pylist()
