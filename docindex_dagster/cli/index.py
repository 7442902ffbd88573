"""`docindex index`."""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docindex_dagster.cli import INTERRUPTED, completion, progress
from docindex_dagster.cli.common import Json, Yes, listed
from docindex_dagster.cli.selected_project import chosen, load_settings
from docindex_dagster.core import events
from docindex_dagster.core.errors import DeclaredError, SourceError
from docindex_dagster.core.events import Listener
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import CONFIG_NAME, Settings, is_parent_of_libraries
from docindex_dagster.core.urls import is_url
from docindex_dagster.render import console
from docindex_dagster.sources import registry, removed_sources
from docindex_dagster.sources.paths import expanded, normal
from docindex_dagster.status.summary import summary_of, summary_of_settled

if TYPE_CHECKING:
    from docindex_dagster.runner.entries import Mode

_INTERRUPTED = "interrupted; what was searchable still is, and the next run goes on from here"
_ELSEWHERE = "not followed any more; its run goes on, and so do those of further sources: see the Dagster UI"


def _nothing(_event: events.Event) -> None:
    """Nothing is to be done."""


def index(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Keys, names, files, or folders and URLs, which are declared if need be; default: all.",
            autocompletion=completion.sources,
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Reuse nothing; compare every row of the stores.")] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Trust no time stamp and no store: read every file, compare every row."),
    ] = False,
    run: Annotated[
        bool, typer.Option("--run", help="Record a run of each source in Dagster now, also where nothing changed.")
    ] = False,
    wait: Annotated[
        progress.Wait,
        typer.Option("--wait", help="Return when the graph is there, or once all is searchable."),
    ] = progress.Wait.GRAPH,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Bring the index up to date: only what changed is chunked and embedded again.

    Where docindex watch runs, that process does the work, which is quicker.
    """
    _check_options(sources or (), full=full, verify=verify)
    progress.hand_over(wait, json=json)
    wanted: dict[str, set[str]] = {}  # the names of files by source; none for all of it
    added: list[str] = []
    for argument in sources or ():
        if (file := _file(argument)) is not None:
            key, name = file
            if wanted.get(key) != set():
                wanted.setdefault(key, set()).add(name)
        else:
            keys, is_new = _declared(argument, yes=yes)
            wanted |= {key: set() for key in keys}
            added += keys if is_new and not is_parent_of_libraries(argument) else []
    settings = load_settings(by_url=False)
    wanted = wanted or _all(settings)
    is_plain = not (full or verify or run)
    mode: Mode = "full" if full else "verify" if verify else "changes"
    summaries = _handed_over(settings, wanted, quiet=json) if is_plain else {}
    left = {key: names for key, names in wanted.items() if key not in summaries}
    settled = _settled(settings, left, quiet=json) if is_plain and left else {}
    unsettled = {key: names for key, names in left.items() if key not in settled}
    if unsettled:
        leaving = progress.leaving([*unsettled][-1])
        made = index_sources(settings, unsettled, mode=mode, quiet=json, listener=leaving)
        summaries |= {summary["source"]: summary for summary in made}
    elif left:  # else the process that watches does it
        _keep_up(settings)
    summaries |= settled
    _record(settings, is_wanted=run)
    if json:
        console.as_json([summaries[key] for key in wanted])
    failed = [key for key, summary in summaries.items() if not summary["succeeded"]]
    for key in failed:
        if key in added:
            _take_back(settings, key)
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
    """Refuse what the run could only obey in part, before anything is declared.

    Raises:
        BadParameter: options exclude each other, or are for whole sources and a file is given.
    """
    if full and verify:
        raise typer.BadParameter("give --full or --verify, not both")
    if full or verify:
        files = [argument for argument in arguments if _names_file(argument)]
        if files:
            raise typer.BadParameter(f"{'--full' if full else '--verify'} is for whole sources; {files[0]} is a file")


def _names_file(argument: str) -> bool:
    """Whether an argument is the path of a file, be it in no source yet, or of one that is gone."""
    return normal(argument).is_file() or _file(argument) is not None


def _take_back(settings: Settings, key: str) -> None:
    """Undo that a source was declared for a run that could not even reach it: later runs would fail, too."""
    from docindex_dagster.cli.sources import remove

    layout = Layout(settings.home)
    was_reached = layout.table("discovered_files", key).exists() or layout.repository(key).exists()
    if was_reached or settings.storage.url is not None:  # another machine may have reached it
        console.err.print(f"{key} stays declared; {command('docindex', 'source', 'remove', key)} takes it out again")
    else:
        remove(settings, key)
        console.err.print(f"took {key} out of {CONFIG_NAME} again: nothing of it could be read")


def _all(settings: Settings) -> dict[str, set[str]]:
    """All declared sources but those that a user took out of the index.

    Raises:
        SourceError: none is declared.
    """
    taken_out = _taken_out(settings)
    declared = registry.sources(settings)
    if not declared:
        raise SourceError("there are no sources yet: begin with `docindex index PATH`")
    for key in sorted(taken_out & declared.keys()):
        console.err.print(f"{key} was taken out of the index; {command('docindex', 'index', key)} brings it back")
    return {key: set() for key in declared if key not in taken_out}


def _taken_out(settings: Settings) -> set[str]:
    if settings.storage.url is None:
        return removed_sources.all_of(Layout(settings.home))
    from docindex_dagster.cli import dagster_runs

    return dagster_runs.taken_out(settings)


def _handed_over(
    settings: Settings, wanted: Mapping[str, Collection[str]], *, quiet: bool
) -> dict[str, dict[str, Any]]:
    """Summaries of the sources that a process which watches the project did; it does them whole."""
    from docindex_dagster.cli.watch_client import handed_over

    def show(summary: Mapping[str, Any]) -> None:
        _show(summary, quiet=quiet, report_failure=console.failure)

    return handed_over(settings, wanted, show, quiet=quiet) if settings.storage.url is None else {}


def _settled(settings: Settings, wanted: Mapping[str, Collection[str]], *, quiet: bool) -> dict[str, dict[str, Any]]:
    """Summaries of the sources that are wanted whole and of which a run would find nothing to do.

    Neither Dagster nor the stores are loaded for them.
    """
    from docindex_dagster.core.errors import DocindexError
    from docindex_dagster.pipeline.up_to_date import settled

    declared = registry.sources(settings)
    found: dict[str, dict[str, Any]] = {}
    for key, names in wanted.items():
        started = time.monotonic()
        try:
            one = None if names or key not in declared else settled(settings, declared[key])
        except (DocindexError, OSError):  # of which a run says what it is
            one = None
        if one is not None:
            found[key] = summary_of_settled(key, one, time.monotonic() - started)
            if not quiet:
                console.out.print(sentence_of(found[key]))
    return found


def _keep_up(settings: Settings) -> None:
    """Do what runs and publications leave to those who have time."""
    from docindex_dagster.stores import link_files, maintenance

    for warning in listed(settings):
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
    listener: Listener = _nothing,
) -> list[dict[str, Any]]:
    """Index each source, or some of its files, in turn; one that fails does not stop the others."""
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.core.access import writing
    from docindex_dagster.stores import link_files, maintenance

    summaries = []
    with writing(settings) as layout, dagster_runs.asked_for(settings, wanted, mode) as follow:
        for number, (key, names) in enumerate(wanted.items(), start=1):
            started = time.monotonic()
            position = f"{number} of {len(wanted)}" if len(wanted) > 1 else ""
            try:
                with progress.shown(key, position, quiet=quiet), events.listening(listener):
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
            if not follow:  # not only at the end: each source leaves a part of the table
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
        console.out.print(sentence_of(summary))


def _file(argument: str) -> tuple[str, str] | None:
    """The source that a file lies in, and its name there; None for an argument that is no file's path.

    A file that is gone is one if the last run found it.

    Raises:
        SourceError: the file lies in no source, or is not to be indexed.
    """
    file = normal(argument)
    settings = load_settings(by_url=False)
    found = registry.located(settings, file)
    if not file.is_file():
        if found is None or os.path.lexists(file):
            return None
        from docindex_dagster.serving.jobs.model import was_found

        return (found[0].key, found[1]) if was_found(settings, *found) else None
    if found is None:
        folder = Path(argument).parent
        raise SourceError(
            f"{argument} lies in no source: index its folder with {command('docindex', 'index', folder)}, or declare "
            f"it alone with {command('docindex', 'source', 'add', folder, '--include', file.name)}"
        )
    from docindex_dagster.sources.explanation import why as explain

    source, name = found
    explanation = explain(source, source.file(name))
    if explanation.skipped_reason:
        raise SourceError(f"{source.key}: {explanation.sentence}")
    return source.key, explanation.path


def _declared(argument: str, *, yes: bool) -> tuple[list[str], bool]:
    """The keys that an argument means, and whether they are new: a folder in no source, or a URL, becomes one."""
    settings = load_settings(by_url=False)
    folder = expanded(argument)
    looks_like_key = argument.startswith(("git/", "library/")) and not folder.exists()
    if is_url(argument) and not os.path.lexists(folder):
        known = [source.key for source in registry.cloned_from(settings, argument)]
        return (known, False) if known else (_declare(argument), True)
    declared = registry.sources(settings)
    is_name = argument in {source.name for source in declared.values()} or "/" not in argument
    if argument in declared or looks_like_key or (is_name and not folder.exists()):
        return [registry.find(settings, argument).key], False
    if (children := _children(settings, folder)) is not None:
        return children, False
    around = registry.containing(settings, folder, through_links=False) if folder.is_dir() else None
    if around is not None:
        return [around.key], False
    from docindex_dagster.cli.common import check_folder

    check_folder(settings, folder, yes=yes)
    try:
        return _declare(argument), True
    except DeclaredError:  # another process was quicker
        around = registry.containing(load_settings(by_url=False), folder)
        if around is None:
            raise
        return [around.key], False


def _children(settings: Settings, folder: Path) -> list[str] | None:
    """The libraries that the folders in a folder are declared to be, if they are and it is no source itself.

    Raises:
        SourceError: they are, but there is none.
    """
    parent = normal(folder.parent if is_parent_of_libraries(str(folder)) else folder)
    children = registry.children(settings, parent)
    if children is None or parent in {source.path for source in registry.sources(settings).values()}:
        return None
    if not children:
        raise SourceError(f"each folder in {parent} is declared as a library, and there is none yet")
    return [child.key for child in children]


def _declare(place: str) -> list[str]:
    from docindex_dagster.sources import config_edits

    root = chosen(by_url=False).root
    keys = config_edits.declare(root, place)
    for key in keys:
        console.err.print(f"added {key} to {root / CONFIG_NAME}")
    return keys


def sentence_of(summary: Mapping[str, Any]) -> str:
    """The summary of a run that succeeded, as a line."""
    changes = ", ".join(f"{summary[name]:,} {name}" for name in ("added", "changed", "removed") if summary[name])
    files, chunks = console.count(summary["files"], "file"), console.count(summary["chunks"], "chunk")
    as_text = f"{summary['fallbacks']:,} cut as text, " if summary["fallbacks"] else ""
    return (
        f"{summary['source']}: {files}, {chunks} ({changes or 'nothing changed'}), "
        f"{summary['skipped']:,} skipped, {as_text}{summary['seconds']:.1f} s"
    )
