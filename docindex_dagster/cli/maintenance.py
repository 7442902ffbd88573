"""Maintenance commands: `docindex doctor`, `rollback`, `version` and `support`."""

import json as json_
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from docindex_dagster import __version__
from docindex_dagster.cli.common import Json, output_file, publication, reader_of
from docindex_dagster.cli.index import index_sources
from docindex_dagster.cli.selected_project import load_project, load_settings
from docindex_dagster.core import access
from docindex_dagster.core.errors import StoreError, first_line
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.privileges import INSTANCE_FILE, trusted_file
from docindex_dagster.core.safe_text import escape_json, on_one_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.sources import registry

if TYPE_CHECKING:
    from docindex_dagster.status.catalog import CatalogEntry
    from docindex_dagster.stores.doctor import Finding
    from docindex_dagster.stores.takeover import Takeover


_MAX_FILES = 10
_INDENT = "  "


def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild damaged parts from the files.")] = False,
    json: Json = False,
) -> None:
    """Check the index for damage.

    Verify that the three stores agree with each other and with the tables, and
    check dagster.yaml. Limitations that are not damage, such as files that
    could not be parsed, are shown as notes.
    """
    wrong = _instance_problems(load_settings())
    for text in () if json else wrong:
        console.out.print(f"dagster.yaml: {text}", soft_wrap=True)
    settings = load_project()
    layout = Layout(settings.home)
    if settings.storage.url is None and not layout.current.exists():
        reader_of(settings)  # explains what to do first
    findings = list(_examine(settings))
    if not json:
        _show(findings)
        if findings and not repair:
            console.out.print("run `docindex doctor --repair` to rebuild this from the files")
    repairs: list[dict[str, Any]] = []
    remaining = findings
    if findings and repair:
        repairs, remaining = _repair(settings, findings, quiet=json)
    notes = [] if remaining else _notes(layout)
    if json:
        console.as_json(
            {"findings": findings, "repairs": repairs, "left": remaining, "notes": notes, "instance": wrong}
        )
    else:
        _show_end(remaining, notes, is_repaired=repair)
    if remaining or wrong:
        raise typer.Exit(1)


def _show_end(remaining: "list[Finding]", notes: "list[_Note]", *, is_repaired: bool) -> None:
    if not remaining:
        console.out.print("the index is consistent: all stores agree")
        for note in notes:
            _show_note(note)
    elif is_repaired:
        console.out.print("the index is still damaged:")
        _show(remaining)


def _instance_problems(settings: Settings) -> list[str]:
    """Return the problems of the Dagster instance's file; none if there is no file."""
    from docindex_dagster.status.deployment import problems

    chosen = os.environ.get("DAGSTER_HOME")
    try:
        if chosen:
            file = Path(chosen) / INSTANCE_FILE
            data = file.read_bytes() if file.is_file() else None
        else:
            data = trusted_file(settings.root, INSTANCE_FILE)
        config = yaml.safe_load(data or b"")
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return [f"cannot read it: {first_line(error)}"]
    if not isinstance(config or {}, dict):
        return ["expected a mapping of settings"]
    return problems(config or {}, is_shared=settings.storage.url is not None)


def _examine(settings: Settings) -> "Iterator[Finding]":
    """Yield the problems of the index, and of the object store if the index is shared."""
    from docindex_dagster.stores.doctor import Finding, examine

    layout = Layout(settings.home)
    if settings.storage.url is None:
        yield from examine(layout)
        return
    from docindex_dagster.objects import garbage_collection
    from docindex_dagster.objects.shared_stores import configured_bucket

    if layout.current.exists():
        yield from examine(layout, has_tables=False)
    for source, problem in garbage_collection.problems(configured_bucket(settings)):
        yield Finding(source, "object store", problem)


@dataclass(frozen=True, slots=True)
class _Note:
    """A limitation of a source's index that is not damage."""

    source: str
    text: str
    files: dict[str, str]  # the affected files, and the reasons


def _notes(layout: Layout) -> list[_Note]:
    from docindex_dagster.chunking.table_rules import fallbacks
    from docindex_dagster.core import tables
    from docindex_dagster.status import catalog

    notes = []
    for entry in catalog.entries(layout):
        if limits := catalog.index_limitations(entry):
            chunks = tables.read(layout.table("chunks", entry.source)) if entry.fallbacks else None
            files = fallbacks(chunks) if chunks is not None else {}
            notes.append(_Note(entry.source, "; ".join(limits), _without_edges(layout, entry) | files))
    return notes


def _without_edges(layout: Layout, entry: "CatalogEntry") -> dict[str, str]:
    """Return the files whose edges are missing from the graph, and the unreadable configurations, with reasons."""
    from docindex_dagster.stores import graph_files
    from docindex_dagster.stores.generation import read_generation

    generation = read_generation(layout) if entry.graph_failures or entry.unreadable_configurations else None
    published = generation.sources.get(entry.source) if generation else None
    if generation is None or published is None or published.graph is None:
        return {}
    graph = graph_files.read(graph_files.mapped(layout, generation), published.graph)
    return graph.problems | graph.unreadable if graph else {}


def _show_note(note: _Note) -> None:
    console.out.print(f"note: {note.source}: {note.text}")
    for path, reason in islice(note.files.items(), _MAX_FILES):
        console.out.print(f"  {on_one_line(path)}: {on_one_line(reason)}")
    if len(note.files) > _MAX_FILES:
        console.out.print(f"  {len(note.files) - _MAX_FILES:,} more; `docindex doctor --json` lists all")


def _show(findings: "list[Finding]") -> None:
    for finding in findings:
        console.out.print(f"{finding.source or 'index'}: {finding.store}: {finding.problem}")


def _repair(
    settings: Settings, findings: "list[Finding]", *, quiet: bool
) -> "tuple[list[dict[str, Any]], list[Finding]]":
    """Index the damaged sources in full; return the summaries of the runs and the remaining findings.

    If the stores themselves are damaged, a single run rebuilds them from the tables of all sources, so the other
    sources need not be available. A source that has also lost its tables gets a run of its own.
    """
    layout = Layout(settings.home)
    is_whole_index = any(finding.source is None for finding in findings)
    keys = dict.fromkeys(finding.source for finding in findings if finding.source)
    if is_whole_index:
        published = _published(layout)
        declared = registry.sources(settings)
        keys |= dict.fromkeys(key for key in declared if key in published or layout.table("chunks", key).exists())
    summaries: list[dict[str, Any]] = []
    remaining = findings
    for key in keys:
        is_lost = is_whole_index and key not in _published(layout)
        if is_lost or any(finding.source in {None, key} for finding in remaining):
            summaries += index_sources(settings, {key: set()}, mode="full", quiet=quiet, report_failure=console.warning)
            remaining = list(_examine(settings))
    change = _change_of_model(settings)
    if remaining and change is not None:  # runs only write vectors of the new model, so it has to take over
        for key in (key for key in change.missing if key in registry.sources(settings)):
            summaries += index_sources(settings, {key: set()}, quiet=quiet, report_failure=console.warning)
        remaining = list(_examine(settings))
    return summaries, remaining


def _change_of_model(settings: Settings) -> "Takeover | None":
    """Return the progress of the change to another model; None if it cannot be read."""
    from docindex_dagster.status import source_status

    try:
        return source_status.change_of_model(settings)
    except StoreError:
        return None


def _published(layout: Layout) -> set[str]:
    """Return the keys of the published sources; none if they cannot be read."""
    from docindex_dagster.stores.generation import read_generation

    try:
        generation = read_generation(layout)
    except StoreError:
        return set()
    return set(generation.sources) if generation else set()


def rollback() -> None:
    """Restore the previous generation of the index.

    The next run publishes the current files again.
    """
    from docindex_dagster.status import catalog, source_status
    from docindex_dagster.stores.doctor import roll_back

    settings = load_project()
    with publication(settings, "rollback") as layout:
        generation = roll_back(layout)
    with access.writable_home(settings):
        catalog.rebuild(layout, owner="docindex rollback")
    console.out.print(f"restored generation {generation.number}; run `docindex rollback` again to undo this")
    change = source_status.change_of_model(settings)
    if change is not None:
        console.warning(f"its vectors come from {change.old}, but {change.new} is configured: runs switch to it again")


def version(json: Json = False) -> None:
    """Print the version.

    With --json, also print the versions of Python, dependencies and storage
    formats.
    """
    if not json:
        console.out.print(__version__)
        return
    from docindex_dagster.status.support_report import versions

    console.as_json(versions(__version__))


def support(
    json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file.")
    ] = None,
    paths: Annotated[
        bool, typer.Option("--paths", help="Include the names and paths of sources, and unredacted failures.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Skip the check that docindex doctor does, which reads all stores.")
    ] = False,
) -> None:
    """Create a diagnostic report for a bug.

    The report lists versions, settings, sizes, states and failures. It contains
    no file contents, names, paths or values of environment variables; --paths
    adds names and paths. Messages keep only words from docindex's own
    documentation, and none after "password", "user" and the like.

    Nothing is sent. Read the report before you share it.
    """
    from docindex_dagster.cli import dagster_runs, selected_project
    from docindex_dagster.status.support_report import ReportOptions, report

    if output is not None and output.is_dir():
        raise typer.BadParameter(f"{output} is a folder; expected a file", param_hint="--output")
    found = report(
        selected_project.load_settings,
        dagster_runs.outcomes,
        ReportOptions(__version__, has_paths=paths, is_verified=not quick),
    )
    text = escape_json(json_.dumps(found, indent=1, ensure_ascii=False)) if json else "\n".join(_lines(found))
    if output is None:
        console.plain(text)
        return
    with output_file(output, 0o600) as file:
        file.write(f"{text}\n".encode())
    console.out.print(f"wrote {output}; read it before you share it")


def _lines(values: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield a line per value, indented below the keys that contain it."""
    for name, value in values.items():
        at = f"{_INDENT * depth}{on_one_line(str(name))}:"
        if isinstance(value, Mapping) and value:
            yield at
            yield from _lines(value, depth + 1)
        elif isinstance(value, list) and value:
            yield at
            yield from (f"{_INDENT * (depth + 1)}{on_one_line(str(item))}" for item in value)
        else:
            yield f"{at} {_shown(value)}"


def _shown(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return on_one_line(str(value))
