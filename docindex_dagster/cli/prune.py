"""`docindex prune`: giving back disk space, and leaving no trace of texts that are gone."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster.cli.common import Json, publication
from docindex_dagster.cli.selected_project import load_project, load_settings
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.runner import journal
from docindex_dagster.sources import registry

if TYPE_CHECKING:
    from docindex_dagster.objects.bucket import Listed
    from docindex_dagster.stores.prune import Orphan


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
    freed = 0
    with publication(settings, "prune") as layout:
        if dry_run:
            found = _orphans(layout, erase=erase)
        else:
            found, freed = _prune(settings, layout, keep_previous=not previous, erase=erase)
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
    with publication(settings, "prune") as layout:
        found, _ = _prune(settings, layout, keep_previous=False, erase=True)
    _objects(settings, remove=True)
    _show_erased(settings, found)


def _objects(settings: Settings, *, remove: bool) -> "list[Listed] | None":
    """The objects that nothing names any more, which are removed; None where there is no object store."""
    if settings.storage.url is None:
        return None
    from docindex_dagster.objects import garbage_collection
    from docindex_dagster.objects.shared_stores import bucket_of

    return (garbage_collection.collect if remove else garbage_collection.unnamed)(bucket_of(settings))


def _orphans(layout: Layout, *, erase: bool) -> "list[Orphan]":
    from docindex_dagster.stores import prune as pruning

    return pruning.orphans(layout, _known(layout), erase=erase)


def _prune(settings: Settings, layout: Layout, *, keep_previous: bool, erase: bool) -> "tuple[list[Orphan], int]":
    """What no source needed, which is gone but for what a run uses, and how many bytes that gave back."""
    from docindex_dagster.core.files import folder_bytes
    from docindex_dagster.stores import prune as pruning

    before = folder_bytes(layout.home)
    if erase:
        journal.drop_samples(layout)
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
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.defs.retention import erase_samples

    with dagster_runs.instance(settings) as instance:
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
