"""Which files of a source the last run left out, and by which rule."""

from dataclasses import dataclass

import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.printable import command

_COLUMNS = ("path", "size", "skipped_reason")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a folder with all that is in it, that is not indexed."""

    path: str
    size: int | None  # bytes; None where it was not looked at
    rule: str  # the name of the rule, such as `gitignored`
    detail: str  # what of it: a pattern, a size; may be empty


def skipped_files(layout: Layout, key: str) -> list[Skipped]:
    """The files that the last run of a source skipped, by rule and path.

    Raises:
        SourceError: the source was not indexed yet.
    """
    found = tables.read(layout.table("discovered_files", key))
    if found is None:
        raise SourceError(f"{key} is not indexed yet: run {command('docindex', 'index', key)}")
    rows = found.filter(pc.is_valid(found["skipped_reason"])).select(_COLUMNS)
    rows = rows.sort_by([("path", "ascending")])
    skipped = []
    for path, size, reason in zip(*(rows[name].to_pylist() for name in _COLUMNS), strict=True):
        rule, _, detail = reason.partition(": ")
        skipped.append(Skipped(path, size, rule, detail))
    return sorted(skipped, key=lambda one: one.rule)
