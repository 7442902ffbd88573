"""From events to runs: when the files of a source change, index it; when `docindex.toml` changes, begin anew.

An event only says where to look. Whether there is anything to do, the fingerprint of the source decides, so that a file
that git ignores, a log that grows, our own git commands, and what another process has indexed already lead to no run.
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
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings, untrusted
from docindex_dagster.pipeline.up_to_date import settled
from docindex_dagster.runner.watching.commands import Command, Commands
from docindex_dagster.runner.watching.folders import Notifier, PathEvent, Watched
from docindex_dagster.runner.watching.messages import state_of
from docindex_dagster.sources import noise, registry, removed_sources
from docindex_dagster.status.summary import summary_of_settled
from docindex_dagster.stores import link_files, maintenance

_TICK_S = 1.0  # how often it is noticed that a source's folder came or went
_ROUND_S = 10.0  # while nothing happens, one source is looked at, in turn: some file systems do not report everything,
_ROUND_SHARE = 100  # but for no more than this part of the time
_REST = 2.0  # after a look that was in vain, in multiples of what it took: a file may change all the time
_LONGEST_REST_S = 1.0
_IGNORE_FILES = frozenset({".gitignore", ".docindexignore"})
_LISTINGS = 5
_QUIET_S = 5.0  # since the last run: who edits goes on, and each edit makes other links

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
        """Begin to watch; nothing is indexed yet.

        Args:
            settings: of the project.
            named: the keys of the sources to watch; empty for all that have a folder.
            index: brings a source up to date, and says whether it could.
            report: shows the user a line.
            poll: look at the files again and again, where the system reports none.
            commands: those that wait for what they ask for; `index` has to note in it how each run ended.

        Raises:
            WatchError: the system does not let us.
            SettingsError: two sources have one key.
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
        self._parents: frozenset[str] = frozenset()  # folders each child of which is a source
        self._due: dict[str, None] = {}  # the keys of what is to be looked at; a dictionary keeps its order
        self._places_at = self._round_at = 0.0
        self._tidy_at = time.monotonic() + _QUIET_S  # what is published may be of an earlier version of docindex
        self._tidying: Thread | None = None
        self._declare()

    @property
    def counts(self) -> tuple[int, int]:
        """How many sources there are to watch, and in how many folders."""
        return len(self._watched), len(self._by_folder)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do before something happens."""
        return not self._due or self._is_config_wrong

    def step(self) -> None:
        """Wait until something happens, at most for a second, and do what is most urgent: at most one run.

        Raises:
            KeyboardInterrupt: a signal came.
            WatchError: the system does not let us watch any more.
        """
        if (command := self._commands.first()) is not None:
            self._serve(command, command.left[0])
            return
        self._take(self._notifier.wait(_TICK_S if self.is_idle else 0.0, self._commands.have_come))
        self._check_places()
        self._ask_again()
        if self.is_idle:
            self._tidy()
        else:
            key = next(iter(self._due))
            del self._due[key]
            self._look(key)

    def close(self) -> None:
        """Watch nothing any more."""
        self._notifier.close()
        if self._tidying is not None:
            self._tidying.join()

    def _tidy(self) -> None:
        """After a while without a run, write the file of the links and maintain the stores, in a thread.

        An edit is not to wait for it.
        """
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = math.inf
            self._tidying = Thread(target=_tidy, args=(Layout(self._settings.home),))
            self._tidying.start()

    def _declare(self) -> None:
        """Watch what the settings declare now, and look at all of it."""
        self._commands.set_state(state_of(self._settings))
        before = self._watched
        self._watched = {
            key: before[key] if key in before and before[key].source == source else Watched(source)
            for key, source in registry.sources(self._settings).items()
            if source.remote is None and (not self._named or key in self._named)
        }
        for key, watched in self._watched.items():
            watched.seen = None  # the settings may be others
            if before and key not in before:
                self._report(f"{key} is watched as well from now on")
        for key in before.keys() - self._watched.keys():
            self._report(f"{key} is not declared any more, and not watched")
        self._parents = _parents(self._settings)
        self._list(self._watched)
        self._due = dict.fromkeys(self._watched)

    def _list(self, keys: Collection[str]) -> None:
        """Find the folders of some sources, and watch them.

        A folder that is made after the one around it was listed, and before that was watched, the next listing finds.
        """
        for _ in range(_LISTINGS):
            for key in keys:
                self._watched[key].list_folders(self._settings.home)
            if not self._rewatch():
                return

    def _rewatch(self) -> bool:
        """Watch the folders of all sources as they were listed; whether this changed anything."""
        by_folder = defaultdict(list)
        for key, watched in self._watched.items():
            for folder in watched.folders:
                by_folder[folder].append(key)
        self._by_folder = dict(by_folder)
        return self._notifier.watch({self._config_folder, *self._parents, *by_folder})

    def _take(self, events: list[PathEvent] | None) -> None:
        """Find out what events are about: sources to be looked at, before others; their folders; the settings."""
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
                has_stale = True  # it may be a folder of no source: that of the settings
        if has_stale:
            self._list(stale)
        self._due = {**touched, **self._due}
        if is_config_touched or has_new_child:
            self._reload(is_sure=has_new_child)

    def _is_folder(self, path: str) -> bool:
        """Whether it is a folder, or was one that is watched."""
        return path in self._by_folder or Path(path).is_dir()

    def _reload(self, *, is_sure: bool) -> None:
        """Read the settings again; those that are wrong are reported, and nothing is indexed by them."""
        try:
            settings = load_settings(self._settings.root)
            registry.sources(settings)
        except SettingsError as error:
            self._is_config_wrong = True
            self._report(f"{error}; what changes is indexed when this is mended")
            return
        if settings.ignored != self._settings.ignored and (note := untrusted(settings)):
            self._report(note)
        if is_sure or self._is_config_wrong or settings != self._settings:
            self._settings, self._is_config_wrong = settings, False
            self._declare()

    def _check_places(self) -> None:
        """Notice folders of sources that came, went or were replaced, which no event reports."""
        now = time.monotonic()
        if now < self._places_at + _TICK_S:
            return
        self._places_at = now
        moved = [key for key, watched in self._watched.items() if watched.has_moved()]
        if moved:
            self._list(moved)
            self._due |= dict.fromkeys(moved)

    def _ask_again(self) -> None:
        """Try again what failed a while ago, and look at one of the sources after a time without events."""
        now = time.monotonic()
        self._due |= {key: None for key, watched in self._watched.items() if watched.retry_at <= now}
        if not self._due and self._watched and now >= self._round_at:
            key = next(iter(self._watched))
            self._watched[key] = self._watched.pop(key)  # the others come first now
            self._due[key] = None

    def _look(self, key: str) -> None:
        """Index a source if it has to be."""
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
            self._report(f"{key} is tried again when it changes, or in {wait / 60:.0f} min")

    def _serve(self, command: Command, key: str) -> None:
        """Bring a source up to date for which a command asks, and answer it."""
        if (watched := self._watched.get(key)) is None:
            self._commands.refuse(command, f"{key} is not watched")
            return
        started = time.monotonic()
        try:
            found = watched.look(self._settings)
            is_out = key in removed_sources.all_of(Layout(self._settings.home))
            now = None if found is not None or is_out else settled(self._settings, watched.source)
        except (DocindexError, OSError) as error:
            self._commands.refuse(command, str(error))
            return
        if now is None:
            command.summaries.pop(key, None)
            with self._commands.serving(key):
                self._run(watched, watched.seen if found is None else found)
        elif key not in command.summaries:
            command.summaries[key] = summary_of_settled(key, now, time.monotonic() - started)
        if key in command.summaries:
            self._commands.answer(command, command.summaries[key])
        else:
            self._commands.refuse(command, f"{key} could not be indexed")

    def _rest(self, took: float) -> None:
        self._round_at = time.monotonic() + max(_ROUND_S, took * _ROUND_SHARE)
        self._commands.have_come.wait(min(took * _REST, _LONGEST_REST_S))

    def _is_taken_out(self, key: str) -> bool:
        """Whether a user took it out of the index, and it is not named here."""
        return key not in self._named and key in removed_sources.all_of(Layout(self._settings.home))


def _tidy(layout: Layout) -> None:
    link_files.bring_up_to_date(layout)
    maintenance.bring_up_to_date(layout)


def _parents(settings: Settings) -> frozenset[str]:
    """The folders each child of which is a source."""
    places = (
        registry.folder(settings.root, one.path).parent for one in settings.source if one.path and one.declares_children
    )
    return frozenset(map(os.path.realpath, places))
