"""The `docindex status` command: the state of each source, its size, and whether its files have changed."""

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from docindex_dagster.cli import completion
from docindex_dagster.cli.common import Json
from docindex_dagster.cli.selected_project import load_settings, up_to_date
from docindex_dagster.core import locks
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import Holder
from docindex_dagster.core.safe_text import command, on_one_line
from docindex_dagster.render import console
from docindex_dagster.search.model import CHANGED
from docindex_dagster.sources import registry

if TYPE_CHECKING:
    from docindex_dagster.operations.status import CheckedSource, SourceStatus, StatusAnswer

_MAX_SKIPPED = 50  # files listed per rule
_COLUMNS = ("source", "state", "files", "chunks", "commits", "MB", "changed (UTC)", "checked (UTC)")


def status(
    check: Annotated[
        bool,
        typer.Option("--check", help="Check every source for changed files, without the usual limit of 1 s."),
    ] = False,
    skipped: Annotated[
        str | None,
        typer.Option(
            "--skipped",
            metavar="SOURCE",
            help="List the files of this source that are not indexed, with the reasons.",
            autocompletion=completion.sources,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the state of each source.

    List what is indexed, what has changed since, and why runs failed. Remotes
    are not contacted. In the JSON, `is_current` is null for a source that was
    not checked for changes.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.operations import status as operation
    from docindex_dagster.status import overview

    settings = up_to_date(load_settings())
    layout = Layout(settings.home)
    if skipped is not None:
        _show_skipped(layout, registry.find(settings, skipped).key, json=json)
        return
    request = operation.StatusRequest(look_s=None if check else operation.LOOK_S)
    found = operation.status(settings, request, dagster_runs.outcomes, console.warning)
    if json:
        console.as_json(found.rows())
    elif not found.sources:
        console.out.print("no sources yet; add one with `docindex index PATH`")
    else:
        _show(found)
        if found.change is not None:
            console.out.print(overview.sentence(found.change))
        console.out.print(on_one_line(f"index: {layout.home}"), soft_wrap=True)
    holder = locks.holder(layout.publication_lock)
    if (
        not json
        and holder is not None
        and all(holder.pid != one.work.pid for one in found.sources if one.work is not None)
    ):
        console.out.print(f"stores: {_describe_work(holder)}")


def _show_skipped(layout: Layout, key: str, *, json: bool) -> None:
    """Print the files that a source skipped, grouped by rule: a count and the first files."""
    from docindex_dagster.sources.explanation import skipped_files

    found = skipped_files(layout, key)
    if json:
        console.as_json(found)
        return
    for rule, files in groupby(found, key=lambda one: one.rule):
        listed = list(files)
        console.out.print(Text(f"{on_one_line(rule)}: {console.count(len(listed), 'file')}", "bold"))
        for one in listed[:_MAX_SKIPPED]:
            size = f"  {one.size:,} bytes" if one.size is not None else ""
            console.out.print(
                on_one_line(f"  {one.path}{size}" + (f"  {one.detail}" if one.detail else "")), soft_wrap=True
            )
        if (more := len(listed) - _MAX_SKIPPED) > 0:
            every = command("docindex", "status", "--skipped", key, "--json")
            console.out.print(f"  and {more:,} more; list all with {every}")
    if not found:
        console.out.print(f"{key} has no skipped files")


def _show(found: "StatusAnswer") -> None:
    """Print the table, the notes on each source, and the number of sources not checked."""
    console.table(_COLUMNS, [_cells(row) for row in found.rows()])
    for present in found.sources:
        for note in _notes(present):
            console.out.print(f"{present.status.source}: {note}")
    if unchecked := sum(present.was_left for present in found.sources):
        sources = console.count(unchecked, "source")
        console.out.print(f"{sources} not checked for changes; run `docindex status --check`, which takes longer")


def _describe_work(one: Holder) -> str:
    """Return who is working, since when, and on what."""
    since = one.since[:19].replace("T", " ")
    return f"{one.owner}, running since {since} (UTC)" + (f": {one.step}" if one.step else "")


def _notes(present: "CheckedSource") -> list[str]:
    from docindex_dagster.status.catalog import index_limitations

    one = present.status
    notes = [_describe_work(present.work)] if present.work is not None else []
    notes += [f"{one.state}: {one.problem}"] if one.problem is not None else []
    if one.runs.failure is not None and one.state != "failed":
        notes.append(f"the last run failed: {one.runs.failure}")
    if one.entry is not None and one.state != "degraded":
        notes += index_limitations(one.entry)
    return notes


def _cells(row: "SourceStatus") -> tuple[str | int | float, ...]:
    state = f"{row.state}, {CHANGED}" if row.is_current is False else row.state
    times = (row.changed_at, row.checked_at or "")
    figures = (row.files, row.chunks, row.commits, row.megabytes)
    return (row.source, state, *figures, *(moment[:16].replace("T", " ") for moment in times))
