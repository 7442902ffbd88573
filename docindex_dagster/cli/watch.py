"""The `docindex watch` command, and watching in a thread of another command."""

import json as json_format
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from docindex_dagster.cli import completion, progress
from docindex_dagster.cli.index import format_summary
from docindex_dagster.cli.selected_project import load_project
from docindex_dagster.core import events, interrupts
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import DocindexError, SourceError, first_line, is_debugging
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.settings import Settings
from docindex_dagster.render import console
from docindex_dagster.sources import registry
from docindex_dagster.status.summary import summary_of

if TYPE_CHECKING:
    from docindex_dagster.runner.entries import Launcher
    from docindex_dagster.runner.watching.commands import Commands

_MAX_SHUTDOWN_S = 10.0  # to wait for a run in progress; the next run makes up for one that is cut off
_RETRY_S = 5.0
_SAMPLE_PAGES = {"page.md": "# Page\n\nA page.\n", "code.py": 'def page() -> str:\n    """A page."""\n    return ""\n'}


def watch(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Source keys, names or folders. Default: all sources except those that follow a remote.",
            autocompletion=completion.sources,
        ),
    ] = None,
    poll: Annotated[
        bool, typer.Option("--poll", help="Check the files every second, as needed on network file systems.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON line for each run.")] = False,
) -> None:
    """Index edits as you save them, until Ctrl-C.

    Saved edits are searchable about a second later. Earlier changes are indexed
    first. Edits in quick succession share a run, which the Dagster UI shows
    once it is recorded. Changes to docindex.toml apply immediately.
    """
    # A background job ignores SIGINT by default, and SIGTERM must end a run like SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        settings = load_project()
        named = _resolve_sources(settings, sources or ())
        with ExitStack() as stack:
            lock = stack.enter_context(writable_home(settings)).watch_lock
            # Only one process watches everything; the others wait for this lock.
            is_alone = not named and stack.enter_context(exclusive_if_free(lock, f"process {os.getpid()}"))
            check_interrupt = stack.enter_context(interrupts.interrupt_check())
            shown_on = console.err if json else console.out
            _index_edits(
                settings, _Runner(as_json=json), check_interrupt, shown_on, named=named, poll=poll, is_alone=is_alone
            )
    except KeyboardInterrupt:
        console.err.print("stopped; the index stays searchable")


@contextmanager
def in_background(settings: Settings) -> Iterator[None]:
    """Index edits in a thread while the block runs. Messages go to standard error.

    While another process watches the project, this one leaves the work to it.
    """
    ending = Event()
    thread = Thread(target=_follow, args=(settings, ending), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(_MAX_SHUTDOWN_S)


def _follow(settings: Settings, ending: Event) -> None:
    is_reported = False
    try:
        while not ending.is_set():
            with exclusive_if_free(Layout(settings.home).watch_lock, f"process {os.getpid()}") as is_ours:
                if is_ours:
                    with writable_home(settings):
                        _index_edits(settings, _Runner(out=console.err), ending.is_set, console.err)
                    return
            if not is_reported:
                console.err.print("another process watches this project; this one takes over when it ends")
                is_reported = True
            ending.wait(_RETRY_S)
    except (DocindexError, OSError) as error:
        console.failure(f"edits are no longer indexed: {first_line(error)}")


def _index_edits(
    settings: Settings,
    runner: "_Runner",
    is_over: Callable[[], bool | None],
    shown_on: Console,
    *,
    named: Sequence[str] = (),
    poll: bool = False,
    is_alone: bool = True,
) -> None:
    """Index earlier changes, then edits, and take requests unless another process does."""
    from docindex_dagster.runner.watching.loop import Watch

    with ExitStack() as stack:
        watching = Watch(settings, named, runner.index, console.err.print, poll=poll, commands=runner.commands)
        stack.enter_context(closing(watching))
        if is_alone:
            stack.enter_context(_listening(settings, runner.commands))
        sources, folders = watching.counts
        what = f"{console.count(sources, 'source')} in {console.count(folders, 'folder')}"
        shown_on.print(f"watching {what}; stop with Ctrl-C")
        while not watching.is_idle and not is_over():
            watching.step()
        if not runner.has_run:
            _preload(settings)
        while not is_over():
            watching.step()


def _preload(settings: Settings) -> None:
    """Index two pages, then an edit, in a temporary folder, so that all modules and the model are loaded."""
    from tempfile import TemporaryDirectory

    from docindex_dagster.embedding.providers import load_embedder
    from docindex_dagster.runner.run import index
    from docindex_dagster.sources.model import Source

    with TemporaryDirectory(prefix="docindex-") as folder, suppress(DocindexError, OSError):
        pages = Path(folder, "pages")
        pages.mkdir()
        for edit in ("", "\nEdited.\n"):
            for name, text in _SAMPLE_PAGES.items():
                (pages / name).write_text(text + (edit if name.endswith(".md") else ""), encoding="utf-8")
            source = Source(key="library/pages", kind="library", name="pages", path=pages)
            elsewhere = settings.model_copy(update={"home": Path(folder, "home")})
            index(elsewhere, source, load_embedder(settings.embedding))


@contextmanager
def _listening(settings: Settings, commands: "Commands") -> Iterator[None]:
    """Accept the requests of `docindex index` while the block runs, if the platform supports it."""
    from docindex_dagster.runner.watching.commands import Listener

    try:
        listener = Listener(Layout(settings.home).watch_socket, commands)
    except OSError as error:
        console.err.print(f"`docindex index` cannot delegate to this process ({error.strerror}), so it runs by itself")
        yield
        return
    with closing(listener):
        yield


def _resolve_sources(settings: Settings, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the sources that the arguments name; empty for all sources.

    Raises:
        SourceError: No source is declared, an argument names none, or none of them can be watched.
    """
    declared = registry.sources(settings)
    if not declared:
        raise SourceError("no sources yet; add one with `docindex index PATH`")
    named = tuple(_key(settings, argument) for argument in arguments)
    chosen = named or tuple(declared)
    remote_keys = [key for key in chosen if declared[key].remote is not None]
    if remote_keys:
        what = f"{', '.join(remote_keys)}: sources that follow a remote cannot be watched; `docindex ui` checks them"
        if len(remote_keys) == len(chosen):
            raise SourceError(what)
        console.err.print(what)
    return named


def _key(settings: Settings, argument: str) -> str:
    """Return the source key that an argument names by key, name or folder."""
    known = {name for source in registry.sources(settings).values() for name in (source.key, source.name)}
    around = (
        registry.source_containing(settings, Path(argument))
        if argument not in known and Path(argument).is_dir()
        else None
    )
    return around.key if around is not None else registry.find(settings, argument).key


class _Runner:
    """Indexes one source at a time, and prints a line for each run."""

    def __init__(self, *, as_json: bool = False, out: Console = console.out) -> None:
        from docindex_dagster.runner.watching.commands import Commands

        self.commands = Commands()
        self._as_json = as_json
        self._out = out
        self._begun: set[str] = set()

    @property
    def has_run(self) -> bool:
        """Whether there has been a run, so that everything the next one needs is loaded."""
        return bool(self._begun)

    def index(self, settings: Settings, key: str) -> bool:
        """Bring a source up to date; return whether that succeeded."""
        from docindex_dagster.cli import dagster_runs

        started = time.monotonic()
        launcher: Launcher = "command line" if self.commands.served == key else "watch"
        try:
            with self._showing(key), self.commands.running(key):
                outcome = dagster_runs.index(settings, key, launched_by=launcher)
        except Exception as error:
            if is_debugging():
                raise
            console.failure(f"{key}: {first_line(error)}")
            return False
        for warning in outcome.warnings:
            console.warning(f"{key}: {warning}")
        for reason in outcome.failures:
            console.failure(f"{key}: {reason}")
        summary = summary_of(key, outcome, time.monotonic() - started)
        self.commands.note(summary)
        self._print(summary)
        return outcome.succeeded

    def _showing(self, key: str) -> AbstractContextManager[None]:
        """Show a progress bar for the first run of a source, which may take minutes; later runs take a second."""
        is_first = key not in self._begun
        self._begun.add(key)
        return (
            progress.report_progress(key)
            if is_first and console.err.is_terminal
            else events.listening(progress.show_message)
        )

    def _print(self, summary: dict[str, Any]) -> None:
        now = datetime.now().astimezone()
        if self._as_json:
            line = json_format.dumps({"ended_at": now.isoformat(timespec="seconds"), **summary}, ensure_ascii=False)
            sys.stdout.write(line.encode("utf-8", "replace").decode() + "\n")
            sys.stdout.flush()
        elif summary["succeeded"]:
            self._out.print(f"{now:%H:%M:%S} {format_summary(summary)}")
