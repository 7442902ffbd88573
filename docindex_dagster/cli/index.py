"""The `docindex index` command."""

import os
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docindex_dagster.cli import INTERRUPTED, completion, progress
from docindex_dagster.cli.common import Json, Yes, register_project
from docindex_dagster.cli.selected_project import chosen, load_settings
from docindex_dagster.core import events
from docindex_dagster.core.errors import AlreadyDeclaredError, SourceError
from docindex_dagster.core.events import Listener
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import CONFIG_NAME, Settings, is_parent_of_libraries
from docindex_dagster.core.urls import is_url
from docindex_dagster.render import console
from docindex_dagster.sources import registry, removed_sources
from docindex_dagster.sources.paths import expand_user, normal
from docindex_dagster.status.summary import summary_of, summary_of_up_to_date

if TYPE_CHECKING:
    from docindex_dagster.runner.entries import Mode

_INTERRUPTED = "interrupted; what was searchable still is, and the next run continues from here"
_ELSEWHERE = "stopped following; this run and those of the remaining sources continue: see the Dagster UI"


def _ignore_event(_event: events.Event) -> None:
    """Ignore an event."""


def index(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Source keys, names, files, folders or URLs. New folders and URLs are declared. Default: all sources.",
            autocompletion=completion.sources,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Rebuild without reusing earlier results.")] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read every file and compare every stored row, ignoring modification times."),
    ] = False,
    run: Annotated[
        bool, typer.Option("--run", help="Record a Dagster run for each source now, even if nothing changed.")
    ] = False,
    wait: Annotated[
        progress.Wait,
        typer.Option("--wait", help="Wait for the graph to be linked, or only until everything is searchable."),
    ] = progress.Wait.GRAPH,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Update the index: chunk and embed only what changed.

    If docindex watch is running, it does the work, which is faster.
    """
    _check_options(sources or (), full=full, verify=verify)
    progress.continue_in_background(wait, json=json)
    wanted: dict[str, set[str]] = {}  # the names of files by source; empty for all files
    added: list[str] = []
    for argument in sources or ():
        if (file := _file(argument)) is not None:
            key, name = file
            if wanted.get(key) != set():
                wanted.setdefault(key, set()).add(name)
        else:
            keys, is_new = _resolve_argument(argument, yes=yes)
            wanted |= {key: set() for key in keys}
            added += keys if is_new and not is_parent_of_libraries(argument) else []
    settings = load_settings(by_url=False)
    wanted = wanted or _all_declared(settings)
    is_plain = not (full or verify or run)
    mode: Mode = "full" if full else "verify" if verify else "changes"
    summaries = _delegate_to_watcher(settings, wanted, quiet=json) if is_plain else {}
    remaining = {key: names for key, names in wanted.items() if key not in summaries}
    settled = _find_up_to_date(settings, remaining, quiet=json) if is_plain and remaining else {}
    unsettled = {key: names for key, names in remaining.items() if key not in settled}
    if unsettled:
        leaving = progress.detach_listener([*unsettled][-1])
        results = index_sources(settings, unsettled, mode=mode, quiet=json, listener=leaving)
        summaries |= {summary["source"]: summary for summary in results}
    elif remaining:  # otherwise the watching process does it
        _run_maintenance(settings)
    summaries |= settled
    _record(settings, is_wanted=run)
    if json:
        console.as_json([summaries[key] for key in wanted])
    failed = [key for key, summary in summaries.items() if not summary["succeeded"]]
    for key in failed:
        if key in added:
            _undeclare(settings, key)
    if failed:
        raise typer.Exit(1)


def _record(settings: Settings, *, is_wanted: bool) -> None:
    """Record the runs of the journal in Dagster now, unless Dagster ran them."""
    if not is_wanted or settings.storage.url is not None:
        return
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.definitions import build_definitions
    from docindex_dagster.defs.recorder import record

    with dagster_runs.instance(settings) as instance:
        record(instance, settings, partial(build_definitions, settings.root))


def _check_options(arguments: Sequence[str], *, full: bool, verify: bool) -> None:
    """Reject options that the run could not apply to all arguments, before anything is declared.

    Raises:
        BadParameter: Options exclude each other, or apply only to entire sources and an argument is a file.
    """
    if full and verify:
        raise typer.BadParameter("pass --full or --verify, not both")
    if full or verify:
        files = [argument for argument in arguments if _names_file(argument)]
        if files:
            option = "--full" if full else "--verify"
            raise typer.BadParameter(f"{option} is for entire sources; {files[0]} is a file")


def _names_file(argument: str) -> bool:
    """Return whether an argument is the path of a file. It may be in no source yet, or deleted from one."""
    try:
        return _file(argument) is not None
    except SourceError:
        return True


def _undeclare(settings: Settings, key: str) -> None:
    """Undeclare a source that was added for a run that could not reach it, since later runs would fail too."""
    from docindex_dagster.cli.sources import remove

    layout = Layout(settings.home)
    was_reached = layout.table("discovered_files", key).exists() or layout.repository(key).exists()
    if was_reached or settings.storage.url is not None:  # another machine may have reached it
        console.err.print(f"{key} stays declared; {command('docindex', 'source', 'remove', key)} removes it")
    else:
        remove(settings, key)
        console.err.print(f"removed {key} from {CONFIG_NAME} again, because it could not be read")


def _all_declared(settings: Settings) -> dict[str, set[str]]:
    """Return all declared sources except those that a user removed from the index.

    Raises:
        SourceError: No source is declared.
    """
    taken_out = _removed_keys(settings)
    declared = registry.sources(settings)
    if not declared:
        raise SourceError("no sources yet; add one with `docindex index PATH`")
    for key in sorted(taken_out & declared.keys()):
        console.err.print(f"skipping {key}, which was removed; {command('docindex', 'index', key)} adds it back")
    return {key: set() for key in declared if key not in taken_out}


def _removed_keys(settings: Settings) -> set[str]:
    if settings.storage.url is None:
        return removed_sources.removed_keys(Layout(settings.home))
    from docindex_dagster.cli import dagster_runs

    return dagster_runs.removed_keys(settings)


def _delegate_to_watcher(
    settings: Settings, wanted: Mapping[str, Collection[str]], *, quiet: bool
) -> dict[str, dict[str, Any]]:
    """Return the summaries of the sources that a watching process updated, always in full."""
    from docindex_dagster.cli.watch_client import delegate_to_watcher

    def show(summary: Mapping[str, Any]) -> None:
        _show(summary, quiet=quiet, report_failure=console.failure)

    return delegate_to_watcher(settings, wanted, show, quiet=quiet) if settings.storage.url is None else {}


def _find_up_to_date(
    settings: Settings, wanted: Mapping[str, Collection[str]], *, quiet: bool
) -> dict[str, dict[str, Any]]:
    """Return the summaries of the sources that are requested in full and already up to date.

    This loads neither Dagster nor the stores.
    """
    from docindex_dagster.core.errors import DocindexError
    from docindex_dagster.pipeline.up_to_date import settled

    declared = registry.sources(settings)
    found: dict[str, dict[str, Any]] = {}
    for key, names in wanted.items():
        started = time.monotonic()
        try:
            state = None if names or key not in declared else settled(settings, declared[key])
        except (DocindexError, OSError):  # the run reports it
            state = None
        if state is not None:
            found[key] = summary_of_up_to_date(key, state, time.monotonic() - started)
            if not quiet:
                console.out.print(format_summary(found[key]))
    return found


def _run_maintenance(settings: Settings) -> None:
    """Do the maintenance that runs and publications defer."""
    from docindex_dagster.stores import link_files, maintenance

    for warning in register_project(settings):
        console.warning(warning)
    maintenance.bring_up_to_date(Layout(settings.home))
    link_files.bring_up_to_date(Layout(settings.home))


def index_sources(
    settings: Settings,
    wanted: dict[str, set[str]],
    *,
    mode: "Mode" = "changes",
    quiet: bool,
    report_failure: Callable[[str], None] = console.failure,
    listener: Listener = _ignore_event,
) -> list[dict[str, Any]]:
    """Index each source, or some of its files, one after the other. A failure does not stop the others."""
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.core.access import writable_home
    from docindex_dagster.stores import link_files, maintenance

    summaries = []
    with writable_home(settings) as layout, dagster_runs.request_runs(settings, wanted, mode) as follow:
        for number, (key, names) in enumerate(wanted.items(), start=1):
            started = time.monotonic()
            position = f"{number} of {len(wanted)}" if len(wanted) > 1 else ""
            try:
                with progress.report_progress(key, position, quiet=quiet), events.listening(listener):
                    outcome = (
                        follow(key)
                        if follow
                        else dagster_runs.index(settings, key, mode=mode, only=tuple(sorted(names)))
                    )
            except KeyboardInterrupt:
                console.failure(f"{key}: {_ELSEWHERE if follow else _INTERRUPTED}")
                raise typer.Exit(INTERRUPTED) from None
            summaries.append(summary_of(key, outcome, time.monotonic() - started))
            _show(summaries[-1], quiet=quiet, report_failure=report_failure)
            if not follow:  # after each source, since each adds a fragment to the table
                maintenance.bring_up_to_date(layout)
        if not follow:
            link_files.bring_up_to_date(layout)
    return summaries


def _show(summary: Mapping[str, Any], *, quiet: bool, report_failure: Callable[[str], None]) -> None:
    for warning in summary["warnings"]:
        console.warning(f"{summary['source']}: {warning}")
    for reason in summary["failures"]:
        report_failure(f"{summary['source']}: {reason}")
    if summary["succeeded"] and not quiet:
        console.out.print(format_summary(summary))


def _file(argument: str) -> tuple[str, str] | None:
    """Return the source that contains a file, and the file's name in it; None if the argument is not a file.

    A deleted file counts if the last run found it.

    Raises:
        SourceError: The file is in no source, or a rule skips it.
    """
    file = normal(argument)
    settings = load_settings(by_url=False)
    found = registry.locate_path(settings, file)
    mode = found[0].mode(found[1]) if found and found[1] else None
    is_file = file.is_file() if found is None else mode is not None and not stat.S_ISDIR(mode)
    if not is_file:
        if found is None or not found[1] or mode is not None:
            return None
        from docindex_dagster.serving.jobs.model import was_found

        return (found[0].key, found[1]) if was_found(settings, *found) else None
    if found is None:
        folder = Path(argument).parent
        raise SourceError(
            f"{argument} is not in a source: index its folder with {command('docindex', 'index', folder)}, or only "
            f"this file with {command('docindex', 'source', 'add', folder, '--include', file.name)}"
        )
    from docindex_dagster.sources.explanation import why as explain

    source, name = found
    explanation = explain(source, source.file(name))
    if explanation.skipped_reason:
        raise SourceError(f"{source.key}: {explanation.sentence}")
    return source.key, explanation.path


def _resolve_argument(argument: str, *, yes: bool) -> tuple[list[str], bool]:
    """Return the keys that an argument refers to, and whether it was declared now, as new folders and URLs are."""
    settings = load_settings(by_url=False)
    folder = expand_user(argument)
    looks_like_key = argument.startswith(("git/", "library/")) and not folder.exists()
    if is_url(argument) and not os.path.lexists(folder):
        known = [source.key for source in registry.sources_following(settings, argument)]
        return (known, False) if known else (_declare(argument), True)
    declared = registry.sources(settings)
    is_name = argument in {source.name for source in declared.values()} or "/" not in argument
    if argument in declared or looks_like_key or (is_name and not folder.exists()):
        return [registry.find(settings, argument).key], False
    if (children := _children(settings, folder)) is not None:
        return children, False
    around = registry.source_containing(settings, folder, through_links=False) if folder.is_dir() else None
    if around is not None:
        return [around.key], False
    from docindex_dagster.cli.common import check_folder

    check_folder(settings, folder, yes=yes)
    try:
        return _declare(argument), True
    except AlreadyDeclaredError:  # another process declared it first
        around = registry.source_containing(load_settings(by_url=False), folder)
        if around is None:
            raise
        return [around.key], False


def _children(settings: Settings, folder: Path) -> list[str] | None:
    """Return the keys of the libraries in a folder whose subfolders are declared as libraries.

    None if they are not, or if the folder itself is a source.

    Raises:
        SourceError: They are, but the folder has no subfolders.
    """
    parent = normal(folder.parent if is_parent_of_libraries(str(folder)) else folder)
    children = registry.children(settings, parent)
    if children is None or parent in {source.path for source in registry.sources(settings).values()}:
        return None
    if not children:
        raise SourceError(f"nothing to index: each folder in {parent} is declared as a library, but there are none")
    return [child.key for child in children]


def _declare(place: str) -> list[str]:
    from docindex_dagster.sources import config_edits

    root = chosen(by_url=False).root
    keys = config_edits.declare(root, place)
    for key in keys:
        console.err.print(f"added {key} to {root / CONFIG_NAME}")
    return keys


def format_summary(summary: Mapping[str, Any]) -> str:
    """Format the summary of a successful run as one line."""
    changes = ", ".join(f"{summary[name]:,} {name}" for name in ("added", "changed", "removed") if summary[name])
    files, chunks = console.count(summary["files"], "file"), console.count(summary["chunks"], "chunk")
    as_text = f"{summary['fallbacks']:,} chunked as plain text, " if summary["fallbacks"] else ""
    return (
        f"{summary['source']}: {files}, {chunks} ({changes or 'nothing changed'}), "
        f"{summary['skipped']:,} skipped, {as_text}{summary['seconds']:.1f} s"
    )
