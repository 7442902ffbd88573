"""Looking after the index: `docindex status`, `doctor`, `rollback` and `prune`."""

from typing import Annotated

import typer

from docindex_dagster import console
from docindex_dagster.cli.common import Json, project, publication, reader_of
from docindex_dagster.cli.indexing import index_sources
from docindex_dagster.layout import Layout
from docindex_dagster.settings import load_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source


def status(json: Json = False) -> None:
    """Show what is indexed, and what is declared but is not."""
    from docindex_dagster import catalog

    settings = load_settings()
    entries = {entry.source: entry for entry in catalog.entries(Layout(settings.home))}
    declared = registry.sources(settings)
    rows = []
    for key in sorted({*entries, *declared}):
        entry = entries.get(key)
        rows.append(
            {
                "source": key,
                "state": _state(declared.get(key), is_indexed=entry is not None),
                "files": entry.files if entry else 0,
                "chunks": entry.chunks if entry else 0,
                "commits": entry.commits if entry else 0,
                "megabytes": round(entry.text_bytes / 1e6, 2) if entry else 0.0,
                "changed_at": entry.changed_at if entry else "",
                "repository": entry.repository if entry else None,
            }
        )
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet: add one with `docindex source add PATH`")
    else:
        shown = [{**row, "changed_at": str(row["changed_at"])[:16].replace("T", " ")} for row in rows]
        columns = ("source", "state", "files", "chunks", "commits", "MB", "changed (UTC)")
        console.table(columns, [tuple(row.values())[: len(columns)] for row in shown])


def _state(source: Source | None, *, is_indexed: bool) -> str:
    if source is None:
        return "indexed, no longer declared"
    if source.remote is None and not source.path.is_dir():
        return "folder missing, index kept" if is_indexed else "folder missing"
    return "indexed" if is_indexed else "not indexed"


def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what is wrong from the files.")] = False,
    json: Json = False,
) -> None:
    """Verify that the three stores agree with each other and with the tables."""
    from docindex_dagster.stores.doctor import examine, sources_to_rebuild

    settings = project()
    layout = Layout(settings.home)
    if not layout.current.exists():
        reader_of(settings)  # says what to do first
    findings = list(examine(layout))
    summaries = []
    if findings and repair:
        keys = sources_to_rebuild(findings) or list(registry.sources(settings))
        summaries = index_sources(settings, {key: set() for key in keys}, full=True, quiet=json)
    left = list(examine(layout)) if summaries else findings
    if json:
        console.as_json({"findings": findings, "repairs": summaries, "left": left})
    else:
        for finding in findings:
            console.out.print(f"{finding.source or 'index'}: {finding.store}: {finding.problem}")
        if findings and not repair:
            console.out.print("`docindex doctor --repair` rebuilds this from the files")
        if not left:
            console.out.print("the index is whole: all stores agree")
    if left or not all(summary["succeeded"] for summary in summaries):
        raise typer.Exit(1)


def rollback() -> None:
    """Search the generation before the present one again; the next run publishes the present files again."""
    from docindex_dagster import catalog
    from docindex_dagster.stores.generation import roll_back

    layout = Layout(project().home)
    with publication(layout, "rollback"):
        generation = roll_back(layout)
        catalog.rebuild(layout)
    console.out.print(f"searches use generation {generation.number} again; `docindex rollback` undoes this")


def prune(
    previous: Annotated[
        bool, typer.Option("--previous", help="Also the generation that a rollback would go back to.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what no source needs.")] = False,
    json: Json = False,
) -> None:
    """Give back disk space: old rows of the stores, and what belongs to sources that are gone."""
    from docindex_dagster import prune as pruning
    from docindex_dagster.files import folder_bytes
    from docindex_dagster.stores.generation import read_generation

    layout = Layout(project().home)
    with publication(layout, "prune"):
        before = folder_bytes(layout.home)
        generation = read_generation(layout)
        declared = registry.sources(load_settings())  # also what was declared while this waited
        keys = {*declared, *(generation.sources if generation else ())}
        found = pruning.orphans(layout, keys) if dry_run else pruning.prune(layout, keys, keep_previous=not previous)
        freed = max(0, before - folder_bytes(layout.home))  # compacting writes anew what the generation before needs
    if json:
        console.as_json({"orphans": found, "freed_bytes": freed})
        return
    for orphan in found:
        place, busy = orphan.path.relative_to(layout.home), "; it stays while a run uses it" if orphan.is_busy else ""
        console.out.print(console.visible(f"{place}: {orphan.reason} ({orphan.size / 1e6:.1f} MB){busy}"))
    if dry_run:
        going = [orphan for orphan in found if not orphan.is_busy]
        size = sum(orphan.size for orphan in going) / 1e6
        what = "file or folder" if len(going) == 1 else "files and folders"
        console.out.print(f"{len(going)} {what} would go ({size:.1f} MB); the stores would be compacted")
    else:
        console.out.print(
            f"freed {freed / 1e6:.1f} MB" if freed > 0 else "freed nothing: there was nothing to give back"
        )
