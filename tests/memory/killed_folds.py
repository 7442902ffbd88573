"""Killing processes that work on a domain: python -m tests.memory.killed_folds ROOT SEED KILLS.

They write, fold, erase, forget and roll back. Each turn forks two that work on one domain, and kills them at a
random moment. What they acknowledged has to be there once, what they forgot not at all; a third process looks. Printed
is, in JSON, what was cut off how often.
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
_TURNS = 5  # of a domain, until all of it is forgotten: else the log, and with it each turn, grows
# What each of the two chooses from: one folds what the other writes meanwhile.
_WORK = {
    "a": ("write", "write", "fold", "fold", "erase", "forget", "roll back"),
    "b": (*["write"] * 20, "fold", "forget"),
}
_PAUSE_S = 0.01  # after a write: else there would be thousands
_EMBEDDER = StaticEmbedder()


@dataclass(slots=True)
class _Worker:
    """A process at work, seen from itself: it says what it begins, and what is acknowledged."""

    settings: Settings
    name: str
    chance: random.Random
    pipe: int
    session: int = 0

    def work(self) -> None:
        """Work until it is killed."""
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
        fold(self.settings, DOMAIN, embedder=_EMBEDDER)  # so that there is something to go back from
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
    """What has to be there of a domain, by what its processes said."""

    there: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)  # begun, and not acknowledged: written or forgotten

    def take(self, lines: list[list[str]]) -> str:
        """Take in what one process said; what it was doing when it was killed."""
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
    """A process that does some work; it ends with 1 and a trace where that fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LanceDB says that it begins anew in the child
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
    """Let two processes work, and kill them; what they were doing."""
    running: list[tuple[int, int]] = []
    for name in _WORK:
        reading, writing = os.pipe()
        worker = _Worker(settings, f"{turn}{name}", random.Random(chance.random()), writing)
        running.append((_forked(worker.work), reading))
        os.close(writing)
    time.sleep(_LONGEST_TURN_S * chance.random() ** 2)  # most of the time is that of folds, so early more often
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
    """Compare what is there with what should be, in a process of its own, which tells it by a pipe."""
    written = overlay_of(settings).messages
    texts = Counter(each.message.text for each in written)
    assert set(texts.values()) <= {1}, "twice"
    assert {each.repeats for each in written} <= {0}, "repeated"
    assert expected.there - expected.perhaps <= texts.keys(), f"lost: {expected.there - texts.keys()}"
    assert texts.keys() <= expected.there | expected.perhaps, f"came back: {texts.keys() - expected.there}"
    os.write(found, json.dumps(sorted(texts)).encode())


def _look_at_the_stores(settings: Settings, expected: _Expected) -> None:
    """Fold what is left: the stores hold all of it, agree, and are sound; then forget all, and find no trace of it."""
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
    """Kill until it is enough."""
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
