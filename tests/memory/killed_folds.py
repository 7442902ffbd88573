"""Kill processes that work on a domain: python -m tests.memory.killed_folds ROOT SEED KILLS.

The processes write, fold, erase, forget and roll back. Each turn forks two of them on one domain and kills them at a
random moment. A third process checks that each acknowledged message exists once and each forgotten one is gone. The
module prints, as JSON, how often each operation was interrupted.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.memory.fold import fold
from docindex_dagster.stores import doctor
from docindex_dagster.stores.doctor import roll_back
from docindex_dagster.stores.generation import read_generation
from tests.memory.logs import DOMAIN, message
from tests.memory.talks import edges_of, home_of, log_of, overlay_of, project, published_edges, traces_of

_LONGEST_TURN_S = 1.2
_TURNS = 5  # until all of a domain is forgotten, so that the log and each turn stay small
# Operations of the two workers: one folds while the other writes.
_WORK = {
    "a": ("write", "write", "fold", "fold", "erase", "forget", "roll back"),
    "b": (*["write"] * 20, "fold", "forget"),
}
_PAUSE_S = 0.01  # after a write, to avoid thousands of them
_EMBEDDER = StaticEmbedder()


@dataclass(slots=True)
class _Worker:
    """A worker process, which reports the operations it starts and completes."""

    settings: Settings
    name: str
    chance: random.Random
    pipe: int
    session: int = 0

    def work(self) -> None:
        """Work until the process is killed."""
        log = log_of(self.settings)
        for number in count():
            step = self.chance.choice(_WORK[self.name[-1]]) if number else "write"
            session = f"{self.name}-{self.session}"
            text = f"{session}-{number}: The Scheduler uses the Queue"
            self._say("begins", step, session, text)
            if step == "write":
                log.append([message(text, session=session)])
                time.sleep(_PAUSE_S)
            elif step in {"fold", "erase"}:
                fold(self.settings, DOMAIN, embedder=_EMBEDDER, erase=step == "erase")
            elif step == "forget":
                log.forget("session", session)
                self.session += 1
            else:
                self._roll_back()
            self._say("ended", step, session, text)

    def _roll_back(self) -> None:
        fold(self.settings, DOMAIN, embedder=_EMBEDDER)  # a second generation makes a rollback possible
        home = home_of(self.settings)
        with exclusive(home.publication_lock, self.name, lambda _: None):
            try:
                roll_back(home)
            except StoreError as error:
                if "there is no previous generation" not in str(error):
                    raise

    def _say(self, *words: str) -> None:
        os.write(self.pipe, f"{json.dumps(words)}\n".encode())


@dataclass(slots=True)
class _Expected:
    """Expected contents of a domain, according to its workers."""

    there: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)  # started and not acknowledged: may be written or forgotten

    def take(self, lines: list[list[str]]) -> str:
        """Apply one worker's reports and return the operation that was killed."""
        for what, step, session, text in lines:
            of_session = {each for each in self.there if each.startswith(f"{session}-")}
            if (what, step) == ("ended", "write"):
                self.there.add(text)
            elif (what, step) == ("ended", "forget"):
                self.there -= of_session
        what, step, session, text = lines[-1]
        if (what, step) == ("begins", "write"):
            self.perhaps.add(text)
        elif (what, step) == ("begins", "forget"):
            self.perhaps |= {each for each in self.there if each.startswith(f"{session}-")}
        return step if what == "begins" else "between"


def _forked(work: Callable[[], None]) -> int:
    """Fork a process for some work; on failure it prints a traceback and exits with 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LanceDB warns that it restarts in the child
        child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 it is printed
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def _turn(settings: Settings, chance: random.Random, turn: int, expected: _Expected) -> list[str]:
    """Start two workers, kill them, and return the interrupted operations."""
    running: list[tuple[int, int]] = []
    for name in _WORK:
        reading, writing = os.pipe()
        worker = _Worker(settings, f"{turn}{name}", random.Random(chance.random()), writing)
        running.append((_forked(worker.work), reading))
        os.close(writing)
    time.sleep(_LONGEST_TURN_S * chance.random() ** 2)  # folds take most of the time, so favor early kills
    cut_off = []
    for child, _ in chance.sample(running, 2):
        os.kill(child, signal.SIGKILL)
    for child, reading in running:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"turn {turn}: a process failed by itself"
        with os.fdopen(reading, "rb") as pipe:
            lines = [json.loads(line) for line in pipe.read().splitlines()]
        cut_off.append(expected.take(lines) if lines else "start")
    return cut_off


def _look(settings: Settings, expected: _Expected, found: int) -> None:
    """Compare actual and expected contents in a separate process that reports through a pipe."""
    written = overlay_of(settings).messages
    texts = Counter(each.message.text for each in written)
    assert set(texts.values()) <= {1}, "twice"
    assert {each.repeats for each in written} <= {0}, "repeated"
    assert expected.there - expected.perhaps <= texts.keys(), f"lost: {expected.there - texts.keys()}"
    assert texts.keys() <= expected.there | expected.perhaps, f"came back: {texts.keys() - expected.there}"
    os.write(found, json.dumps(sorted(texts)).encode())


def _look_at_the_stores(settings: Settings, expected: _Expected) -> None:
    """Fold the rest and check the stores, then forget everything and check that no trace is left."""
    fold(settings, DOMAIN, embedder=_EMBEDDER)
    home = home_of(settings)
    assert {each.message.text for each in overlay_of(settings).messages} == expected.there
    if expected.there:
        generation = read_generation(home)
        assert generation is not None
        doctor.check(home, generation)
        assert generation.sources[DOMAIN].files == len(expected.there)
        assert published_edges(settings) == edges_of(settings)
    log_of(settings).forget("domain")
    fold(settings, DOMAIN, embedder=_EMBEDDER)
    assert traces_of(home, expected.there) == []


def main(root: Path, seed: int, wanted: int) -> None:
    """Kill until enough workers died."""
    settings, chance = project(root), random.Random(seed)
    _EMBEDDER.embed_query("so that no child loads it")
    cut_off: Counter[str] = Counter()
    expected = _Expected()
    for turn in count():
        cut_off.update(_turn(settings, chance, turn, expected))
        where = f"seed {seed}, turn {turn}"
        reading, writing = os.pipe()
        looking = _forked(lambda: _look(settings, expected, writing))  # noqa: B023 it is done at once
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            seen = pipe.read()
        assert os.waitpid(looking, 0)[1] == 0, where
        expected = _Expected(set(json.loads(seen)))
        if turn % _TURNS == _TURNS - 1:
            assert os.waitpid(_forked(lambda: _look_at_the_stores(settings, expected)), 0)[1] == 0, where  # noqa: B023
            expected = _Expected()
        if cut_off.total() >= wanted:
            break
    sys.stdout.write(json.dumps(cut_off))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
