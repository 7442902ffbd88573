"""Watch loop: indexes a source when its files change, and reloads `docindex.toml` when it changes.

An event only tells which source to check. The source's fingerprint decides whether it needs a run. So ignored files,
growing logs, docindex's own git commands, and changes that another process has already indexed trigger no run.
"""

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Thread

from docindex_dagster.core.errors import DocindexError, SettingsError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings, untrusted_message
from docindex_dagster.pipeline.up_to_date import settled
from docindex_dagster.runner.watching.commands import Command, Commands
from docindex_dagster.runner.watching.folders import Notifier, PathEvent, Watched
from docindex_dagster.runner.watching.messages import state_of
from docindex_dagster.sources import noise, registry, removed_sources
from docindex_dagster.status.summary import summary_of_up_to_date
from docindex_dagster.stores import link_files, maintenance

_TICK_S = 1.0  # how often to check whether the folders of sources were created or deleted
_ROUND_S = 10.0  # while idle, check one source at this interval, since some file systems miss events
_ROUND_SHARE = 100  # such checks take at most 1/100 of the time
_REST = 2.0  # rest after an unnecessary check, as a multiple of its duration, since a file may change all the time
_MAX_REST_S = 1.0
_IGNORE_FILES = frozenset({".gitignore", ".docindexignore"})
_LISTINGS = 5
_QUIET_S = 5.0  # after the last run, since further edits usually follow and change the links again

Index = Callable[[Settings, str], bool]
Report = Callable[[str], None]


class Watch:
    """Watches sources and indexes those that change."""

    def __init__(
        self,
        settings: Settings,
        named: Collection[str],
        index: Index,
        report: Report,
        *,
        poll: bool,
        commands: Commands | None = None,
    ) -> None:
        """Start watching, without indexing anything yet.

        Args:
            settings: The settings of the project.
            named: The keys of the sources to watch; empty for all that have a folder.
            index: Brings a source up to date, and returns whether that succeeded.
            report: Shows the user a line.
            poll: Whether to poll the files, for file systems without events.
            commands: The waiting commands; `index` must record the result of each run there.

        Raises:
            WatchError: The system cannot watch the folders.
            SettingsError: Two sources have the same key.
        """
        self._settings = settings
        self._named = named
        self._index = index
        self._report = report
        self._commands = commands or Commands()
        self._notifier = Notifier(poll=poll)
        self._config_folder = os.path.realpath(settings.root)
        self._is_config_wrong = False
        self._watched: dict[str, Watched] = {}
        self._by_folder: dict[str, list[str]] = {}
        self._parents: frozenset[str] = frozenset()  # folders whose children are all sources
        self._due: dict[str, None] = {}  # keys of the sources to check, in order
        self._folders_at = self._round_at = 0.0
        self._tidy_at = time.monotonic() + _QUIET_S  # an earlier version of docindex may have published the stores
        self._tidying: Thread | None = None
        self._declare()

    @property
    def counts(self) -> tuple[int, int]:
        """Number of watched sources, and of their folders."""
        return len(self._watched), len(self._by_folder)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do until the next event."""
        return not self._due or self._is_config_wrong

    def step(self) -> None:
        """Wait up to a second for an event, then do the most urgent work: at most one run.

        Raises:
            KeyboardInterrupt: A signal arrived.
            WatchError: The system can no longer watch the folders.
        """
        if (command := self._commands.first()) is not None:
            self._serve(command, command.left[0])
            return
        self._take(self._notifier.wait(_TICK_S if self.is_idle else 0.0, self._commands.have_come))
        self._check_folders()
        self._recheck()
        if self.is_idle:
            self._tidy()
        else:
            key = next(iter(self._due))
            del self._due[key]
            self._look(key)

    def close(self) -> None:
        """Stop watching."""
        self._notifier.close()
        if self._tidying is not None:
            self._tidying.join()

    def _tidy(self) -> None:
        """After a while without a run, write the link files and maintain the stores in a thread.

        So edits need not wait for it.
        """
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = math.inf
            self._tidying = Thread(target=_tidy, args=(Layout(self._settings.home),))
            self._tidying.start()

    def _declare(self) -> None:
        """Watch the sources that the settings now declare, and check all of them."""
        self._commands.set_state(state_of(self._settings))
        before = self._watched
        self._watched = {
            key: before[key] if key in before and before[key].source == source else Watched(source)
            for key, source in registry.sources(self._settings).items()
            if source.remote is None and (not self._named or key in self._named)
        }
        for key, watched in self._watched.items():
            watched.seen = None  # the settings may have changed
            if before and key not in before:
                self._report(f"now also watching {key}")
        for key in before.keys() - self._watched.keys():
            self._report(f"no longer watching {key}, which is not declared anymore")
        self._parents = _parents(self._settings)
        self._list(self._watched)
        self._due = dict.fromkeys(self._watched)

    def _list(self, keys: Collection[str]) -> None:
        """Find the folders of some sources, and watch them.

        Repeats the listing, to find folders that were created between the listing and the watch of their parent.
        """
        for _ in range(_LISTINGS):
            for key in keys:
                self._watched[key].list_folders(self._settings.home)
            if not self._rewatch():
                return

    def _rewatch(self) -> bool:
        """Watch the listed folders of all sources; return whether the set changed."""
        by_folder = defaultdict(list)
        for key, watched in self._watched.items():
            for folder in watched.folders:
                by_folder[folder].append(key)
        self._by_folder = dict(by_folder)
        return self._notifier.watch({self._config_folder, *self._parents, *by_folder})

    def _take(self, events: list[PathEvent] | None) -> None:
        """Process events: mark affected sources as due first, list their folders, and reload the settings."""
        if events is None:
            self._list(self._watched)
            self._due |= dict.fromkeys(self._watched)
            return
        touched, stale = dict[str, None](), set[str]()
        is_config_touched = has_new_child = has_stale = False
        for event in events:
            folder, _, name = event.path.rpartition("/")
            is_config_touched |= (folder, name) == (self._config_folder, CONFIG_NAME)
            has_new_child |= not event.is_modification and not self._parents.isdisjoint((folder, event.path))
            if event.is_modification and noise.file_reason(name.encode()):
                continue
            keys = [*self._by_folder.get(folder, ()), *self._by_folder.get(event.path, ())]
            touched |= dict.fromkeys(keys)
            if name in _IGNORE_FILES or (not event.is_modification and self._is_folder(event.path)):
                stale.update(keys)
                has_stale = True  # even if `keys` is empty, for the folder of the settings
        if has_stale:
            self._list(stale)
        self._due = {**touched, **self._due}
        if is_config_touched or has_new_child:
            self._reload(is_sure=has_new_child)

    def _is_folder(self, path: str) -> bool:
        """Return whether a path is a folder, or was a watched one."""
        return path in self._by_folder or Path(path).is_dir()

    def _reload(self, *, is_sure: bool) -> None:
        """Reload the settings; report invalid ones, and index nothing until they are fixed."""
        try:
            settings = load_settings(self._settings.root)
            registry.sources(settings)
        except SettingsError as error:
            self._is_config_wrong = True
            self._report(f"{error}; changes are indexed once this is fixed")
            return
        if settings.ignored != self._settings.ignored and (note := untrusted_message(settings)):
            self._report(note)
        if is_sure or self._is_config_wrong or settings != self._settings:
            self._settings, self._is_config_wrong = settings, False
            self._declare()

    def _check_folders(self) -> None:
        """Detect source folders that were created, deleted or replaced, for which there are no events."""
        now = time.monotonic()
        if now < self._folders_at + _TICK_S:
            return
        self._folders_at = now
        moved = [key for key, watched in self._watched.items() if watched.has_moved()]
        if moved:
            self._list(moved)
            self._due |= dict.fromkeys(moved)

    def _recheck(self) -> None:
        """Retry sources that failed, and check the next source after a while without events."""
        now = time.monotonic()
        self._due |= {key: None for key, watched in self._watched.items() if watched.retry_at <= now}
        if not self._due and self._watched and now >= self._round_at:
            key = next(iter(self._watched))
            self._watched[key] = self._watched.pop(key)  # round-robin
            self._due[key] = None

    def _look(self, key: str) -> None:
        """Index a source if it needs a run."""
        watched = self._watched[key]
        started = time.monotonic()
        try:
            found = None if self._is_taken_out(key) else watched.look(self._settings)
        except (DocindexError, OSError) as error:
            found = None
            if watched.note_problem(str(error)):
                self._report(f"{key}: {error}")
        if found is None:
            self._rest(time.monotonic() - started)
        else:
            self._run(watched, found)

    def _run(self, watched: Watched, found: str | None) -> None:
        """Index a source whose fingerprint is `found`."""
        key = watched.source.key
        if self._index(self._settings, key):
            watched.note_success(found)
            self._tidy_at = time.monotonic() + _QUIET_S
        else:
            wait = watched.note_failure(found)
            self._report(f"retrying {key} when it changes, or in {wait / 60:.0f} min")

    def _serve(self, command: Command, key: str) -> None:
        """Bring a source up to date on a command's request, and answer the command."""
        if (watched := self._watched.get(key)) is None:
            self._commands.refuse(command, f"{key} is not watched")
            return
        started = time.monotonic()
        try:
            found = watched.look(self._settings)
            is_out = key in removed_sources.removed_keys(Layout(self._settings.home))
            now = None if found is not None or is_out else settled(self._settings, watched.source)
        except (DocindexError, OSError) as error:
            self._commands.refuse(command, str(error))
            return
        if now is None:
            command.summaries.pop(key, None)
            with self._commands.serving(key):
                self._run(watched, watched.seen if found is None else found)
        elif key not in command.summaries:
            command.summaries[key] = summary_of_up_to_date(key, now, time.monotonic() - started)
        if key in command.summaries:
            self._commands.answer(command, command.summaries[key])
        else:
            self._commands.refuse(command, f"indexing {key} failed")

    def _rest(self, took: float) -> None:
        self._round_at = time.monotonic() + max(_ROUND_S, took * _ROUND_SHARE)
        self._commands.have_come.wait(min(took * _REST, _MAX_REST_S))

    def _is_taken_out(self, key: str) -> bool:
        """Return whether a user removed a source from the index, and it is not named explicitly."""
        return key not in self._named and key in removed_sources.removed_keys(Layout(self._settings.home))


def _tidy(layout: Layout) -> None:
    link_files.bring_up_to_date(layout)
    maintenance.bring_up_to_date(layout)


def _parents(settings: Settings) -> frozenset[str]:
    """Return the folders whose children are all sources."""
    folders = (
        registry.folder(settings.root, source.path).parent
        for source in settings.source
        if source.path and source.declares_children
    )
    return frozenset(map(os.path.realpath, folders))
