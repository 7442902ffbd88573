"""Looking after the index: `docindex doctor`, `rollback` and `prune`."""

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from docindex_dagster.cli import console
from docindex_dagster.cli.common import Json, publication, reader_of
from docindex_dagster.cli.indexing import index_sources
from docindex_dagster.cli.project import load_project, load_settings
from docindex_dagster.core import access
from docindex_dagster.core.errors import StoreError, first_line
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.printable import in_line
from docindex_dagster.core.settings import Settings
from docindex_dagster.objects.cells import homes
from docindex_dagster.sources import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docindex_dagster.objects.bucket import Listed
    from docindex_dagster.status.catalog import CatalogEntry
    from docindex_dagster.stores.doctor import Finding
    from docindex_dagster.stores.prune import Orphan
    from docindex_dagster.stores.takeover import Takeover

_MOST_FILES = 10


def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what is wrong from the files.")] = False,
    json: Json = False,
) -> None:
    """Verify that the three stores agree with each other and with the tables, and that dagster.yaml fits.

    What is worse than it could be, such as files that could not be parsed, is noted; it is no damage.
    """
    wrong = _of_instance(load_settings())
    for text in () if json else wrong:
        console.out.print(f"dagster.yaml: {text}", soft_wrap=True)
    settings = load_project()
    layout = Layout(settings.home)
    if settings.storage.url is None and not layout.current.exists():
        reader_of(settings)  # says what to do first
    findings = list(_examine(settings))
    if not json:
        _show(findings)
        if findings and not repair:
            console.out.print("`docindex doctor --repair` rebuilds this from the files")
    repairs: list[dict[str, Any]] = []
    left = findings
    if findings and repair:
        repairs, left = _repair(settings, findings, quiet=json)
    notes = [] if left else [note for home in homes(settings) for note in _notes(home)]
    if json:
        console.as_json({"findings": findings, "repairs": repairs, "left": left, "notes": notes, "instance": wrong})
    else:
        _show_end(left, notes, is_repaired=repair)
    if left or wrong:
        raise typer.Exit(1)


def _show_end(left: "list[Finding]", notes: "list[_Note]", *, is_repaired: bool) -> None:
    if not left:
        console.out.print("the index is whole: all stores agree")
        for note in notes:
            _show_note(note)
    elif is_repaired:
        console.out.print("the index is not whole yet:")
        _show(left)


def _of_instance(settings: Settings) -> list[str]:
    """What is wrong with the file of Dagster's instance; nothing where there is none."""
    from docindex_dagster.status.deployment import problems

    file = Path(os.environ.get("DAGSTER_HOME") or settings.root) / "dagster.yaml"
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return [f"it cannot be read: {first_line(error)}"]
    if not isinstance(config or {}, dict):
        return ["it holds no settings"]
    return problems(config or {}, is_shared=settings.storage.url is not None)


def _examine(settings: Settings) -> "Iterator[Finding]":
    """What is wrong with the index, and where it is shared, with what the object store holds of it."""
    from docindex_dagster.stores.doctor import Finding, examine

    if settings.storage.url is None:
        yield from examine(Layout(settings.home))
        return
    from docindex_dagster.objects import cells, check
    from docindex_dagster.objects.cell import bucket_of

    for cell in range(settings.storage.cells):
        layout = cells.home_of(settings, cell)
        if layout.current.exists():
            yield from examine(layout, has_tables=False)
    for source, problem in check.problems(bucket_of(settings), settings.storage.cells):
        yield Finding(source, "object store", problem)


@dataclass(frozen=True, slots=True)
class _Note:
    """What is worse of a source than it could be, though nothing is damaged."""

    source: str
    text: str
    files: dict[str, str]  # those concerned, and why


def _notes(layout: Layout) -> list[_Note]:
    from docindex_dagster.chunking.fallbacks import fallbacks
    from docindex_dagster.core import tables
    from docindex_dagster.status import catalog

    notes = []
    for entry in catalog.entries(layout):
        if worse := catalog.lacks(entry):
            chunks = tables.read(layout.table("chunks", entry.source)) if entry.fallbacks else None
            files = fallbacks(chunks) if chunks is not None else {}
            notes.append(_Note(entry.source, "; ".join(worse), _without_edges(layout, entry) | files))
    return notes


def _without_edges(layout: Layout, entry: "CatalogEntry") -> dict[str, str]:
    """The files of which the graph has definitions alone, and why."""
    from docindex_dagster.stores import graph_files
    from docindex_dagster.stores.generation import read_generation

    generation = read_generation(layout) if entry.graph_failures else None
    published = generation.sources.get(entry.source) if generation else None
    if generation is None or published is None or published.graph is None:
        return {}
    graph = graph_files.read(graph_files.mapped(layout, generation), published.graph)
    return graph.problems if graph else {}


def _show_note(note: _Note) -> None:
    console.out.print(f"note: {note.source}: {note.text}")
    for path, reason in islice(note.files.items(), _MOST_FILES):
        console.out.print(f"  {in_line(path)}: {in_line(reason)}")
    if len(note.files) > _MOST_FILES:
        console.out.print(f"  {len(note.files) - _MOST_FILES:,} more, which `docindex doctor --json` lists")


def _show(findings: "list[Finding]") -> None:
    for finding in findings:
        console.out.print(f"{finding.source or 'index'}: {finding.store}: {finding.problem}")


def _repair(
    settings: Settings, findings: "list[Finding]", *, quiet: bool
) -> "tuple[list[dict[str, Any]], list[Finding]]":
    """Index in full what is damaged; returns what the runs did, and what is wrong still.

    Where the stores are damaged as a whole, one run builds them anew from the tables of all sources, so that others
    need not be there; a source whose tables are lost, too, is run as well.
    """
    layout = Layout(settings.home)
    is_whole_index = any(finding.source is None for finding in findings)
    keys = dict.fromkeys(finding.source for finding in findings if finding.source)
    if is_whole_index:
        published = _published(layout)
        declared = registry.sources(settings)
        keys |= dict.fromkeys(key for key in declared if key in published or layout.table("chunks", key).exists())
    summaries: list[dict[str, Any]] = []
    left = findings
    for key in keys:
        is_lost = is_whole_index and key not in _published(layout)
        if is_lost or any(finding.source in {None, key} for finding in left):
            summaries += index_sources(settings, {key: set()}, full=True, quiet=quiet, report_failure=console.warning)
            left = list(_examine(settings))
    change = _change_of_model(settings)
    if left and change is not None:  # runs make vectors of the new model alone, so that one has to take over
        for key in (key for key in change.missing if key in registry.sources(settings)):
            summaries += index_sources(settings, {key: set()}, full=False, quiet=quiet, report_failure=console.warning)
        left = list(_examine(settings))
    return summaries, left


def _change_of_model(settings: Settings) -> "Takeover | None":
    """How far the index is on its way to another model; None where that cannot be read."""
    from docindex_dagster.status import source_status

    try:
        return source_status.change_of_model(settings)
    except StoreError:
        return None


def _published(layout: Layout) -> set[str]:
    """The keys of what is published; none where that cannot be read."""
    from docindex_dagster.stores.generation import read_generation

    try:
        generation = read_generation(layout)
    except StoreError:
        return set()
    return set(generation.sources) if generation else set()


def rollback() -> None:
    """Search the generation before the present one again; the next run publishes the present files again."""
    from docindex_dagster.status import catalog, source_status
    from docindex_dagster.stores.rollback import roll_back

    settings = load_project()
    for cell in range(settings.storage.cells):
        with publication(settings, "rollback", cell) as layout:
            generation = roll_back(layout)
        with access.writing(settings):
            catalog.rebuild(layout, owner="docindex rollback")
        of_cell = f" of cell {cell}" if settings.storage.cells > 1 else ""
        console.out.print(
            f"searches use generation {generation.number}{of_cell} again; `docindex rollback` undoes this"
        )
    change = source_status.change_of_model(settings)
    if change is not None:
        console.warning(f"its vectors are of {change.old}, the settings name {change.new}: runs go over to it again")


def prune(
    previous: Annotated[
        bool, typer.Option("--previous", help="Also the generation that a rollback would go back to.")
    ] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Also every trace of texts that are gone; there is no way back.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what no source needs.")] = False,
    json: Json = False,
) -> None:
    """Give back disk space: old rows of the stores, and what belongs to sources that are gone."""
    settings = load_project()
    found: list[Orphan] = []
    freed = 0
    for cell in range(settings.storage.cells):
        with publication(settings, "prune", cell) as layout:
            if dry_run:
                found += _orphans(layout, erase=erase)
            else:
                orphans, bytes_ = _prune(settings, layout, keep_previous=not previous, erase=erase)
                found, freed = [*found, *orphans], freed + bytes_
    objects = _objects(settings, remove=not dry_run)
    if json:
        of_objects = {} if objects is None else {"objects": [object_.name for object_ in objects]}
        console.as_json({"orphans": found, "freed_bytes": freed, **of_objects})
    else:
        _show_pruned(Layout(settings.home), found, freed, is_done=not dry_run)
        if objects is not None:
            size = sum(object_.size for object_ in objects) / 1e6
            what = "would go" if dry_run else "removed"
            console.out.print(f"{what} in the object store: {console.count(len(objects), 'object')} ({size:.1f} MB)")
    if erase and not dry_run:
        _show_erased(settings, found)


def erase(settings: Settings) -> None:
    """Leave no trace of texts that are not indexed any more, and say so; where a run uses one, exit."""
    found: list[Orphan] = []
    for cell in range(settings.storage.cells):
        with publication(settings, "prune", cell) as layout:
            found += _prune(settings, layout, keep_previous=False, erase=True)[0]
    _objects(settings, remove=True)
    _show_erased(settings, found)


def _objects(settings: Settings, *, remove: bool) -> "list[Listed] | None":
    """The objects that nothing names any more, which are removed; None where there is no object store."""
    if settings.storage.url is None:
        return None
    from docindex_dagster.objects import garbage
    from docindex_dagster.objects.cell import bucket_of

    return (garbage.collect if remove else garbage.unnamed)(bucket_of(settings))


def _orphans(layout: Layout, *, erase: bool) -> "list[Orphan]":
    from docindex_dagster.stores import prune as pruning

    return pruning.orphans(layout, _known(layout), erase=erase)


def _prune(settings: Settings, layout: Layout, *, keep_previous: bool, erase: bool) -> "tuple[list[Orphan], int]":
    """What no source needed, which is gone but for what a run uses, and how many bytes that gave back."""
    from docindex_dagster.core.files import folder_bytes
    from docindex_dagster.stores import prune as pruning

    before = folder_bytes(layout.home)
    found = pruning.prune(layout, _known(layout), keep_previous=keep_previous, erase=erase)
    if erase:
        _erase_samples(settings)
    return found, max(0, before - folder_bytes(layout.home))  # compacting writes anew what the generation before needs


def _known(layout: Layout) -> set[str]:
    """The keys of all sources that are declared now, published, or about to be."""
    from docindex_dagster.stores import takeover
    from docindex_dagster.stores.generation import read_generation

    declared = registry.sources(load_settings())  # also what was declared while this waited
    generations = read_generation(layout), takeover.pending(layout)
    return {key for found in generations if found for key in found.sources} | declared.keys()


def _show_erased(settings: Settings, found: "list[Orphan]") -> None:
    if any(orphan.is_busy for orphan in found):
        console.failure("not all is erased, since a run uses it: run `docindex prune --erase` when that has ended")
        raise typer.Exit(1)
    if settings.storage.url is None:
        console.err.print("nothing is left of texts that are not indexed any more, and nothing to roll back to")
        return
    from docindex_dagster.objects.contents import LONGEST

    hours = LONGEST.total_seconds() / 3600
    console.err.print(
        "nothing names texts that are not indexed any more, and there is nothing to roll back to; objects that are "
        f"younger than {hours:.0f} hours go with the next prune after that, and workers' disks with their next runs"
    )


def _erase_samples(settings: Settings) -> None:
    """Take the rows that runs have shown out of Dagster's record, where there is one."""
    if "DAGSTER_HOME" not in os.environ and not Layout(settings.home).dagster.is_dir():
        return
    from docindex_dagster.cli import launch
    from docindex_dagster.defs.samples import erase_samples

    with launch.instance(settings) as instance:
        erase_samples(instance)


def _show_pruned(layout: Layout, found: "list[Orphan]", freed: int, *, is_done: bool) -> None:
    """Print a line for each orphan, and what a prune freed or would remove."""
    for orphan in found:
        place, busy = orphan.path.relative_to(layout.home), "; it stays while a run uses it" if orphan.is_busy else ""
        console.out.print(f"{place}: {orphan.reason} ({orphan.size / 1e6:.1f} MB){busy}")
    if is_done:
        console.out.print(
            f"freed {freed / 1e6:.1f} MB" if freed > 0 else "freed nothing: there was nothing to give back"
        )
        return
    going = [orphan for orphan in found if not orphan.is_busy]
    size = sum(orphan.size for orphan in going) / 1e6
    what = "file or folder" if len(going) == 1 else "files and folders"
    console.out.print(f"{len(going)} {what} would go ({size:.1f} MB); the stores would be compacted")
