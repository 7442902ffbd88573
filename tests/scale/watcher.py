"""A client that searches continuously and detects partial and lost publications."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.scale.deployment import Deployment, GitTimeoutError
from tests.scale.repositories import STAMPED, Repository, revisions

_BETWEEN_LOOKS_S = 0.2


@dataclass(slots=True)
class Watcher:
    """Observations of the client.

    Attributes:
        problems: descriptions of invalid responses.
        answered: number of successful searches.
        unanswered: number of searches that failed because the server was down or had no index.
        longest_s: longest time without a response.
        slowest_s: duration of the slowest search.
    """

    deployed: Deployment
    chance: random.Random
    problems: list[str] = field(default_factory=list)
    answered: int = 0
    unanswered: int = 0
    longest_s: float = 0.0
    slowest_s: float = 0.0
    _seen: dict[str, int] = field(default_factory=dict)
    _last_answer: float = field(default_factory=time.monotonic)

    def look(self, repository: Repository) -> None:
        """Search for a repository once and record any problem with the response."""
        begun, newest = time.monotonic(), repository.revision
        try:
            hits = self.deployed.stamp(repository)
        except GitTimeoutError:
            self.unanswered += 1
            time.sleep(0.2)
            return
        now = time.monotonic()
        self.answered += 1
        self.slowest_s = max(self.slowest_s, now - begun)
        self.longest_s, self._last_answer = max(self.longest_s, now - self._last_answer), now
        paths, found = {hit.path for hit in hits}, revisions([hit.text for hit in hits])
        before = self._seen.get(repository.name, 0)
        if hits and (paths != set(STAMPED) or len(found) != 1):
            self.problems.append(f"half of {repository.key}: {sorted(paths)} of revisions {sorted(found)}")
        elif not hits and before:
            self.problems.append(f"{repository.key} was at revision {before}, and is lost")
        elif hits and not before <= max(found) <= max(newest, repository.revision):
            self.problems.append(f"{repository.key} was at revision {before}, and is at {max(found)}")
        else:
            self._seen[repository.name] = max(found, default=0)

    def run(self, is_over: threading.Event) -> None:
        """Search for one repository after another until the end."""
        while not is_over.wait(_BETWEEN_LOOKS_S):
            self.look(self.chance.choice(self.deployed.repositories.all))

    def __str__(self) -> str:
        return (
            f"{self.answered} searches answered, {self.unanswered} not; slowest {self.slowest_s:.1f} s; "
            f"longest without an answer {self.longest_s:.1f} s; wrong answers: {len(self.problems)}"
        )


@contextmanager
def watching(deployed: Deployment, seed: int) -> Iterator[Watcher]:
    """Search in a thread, and assert at the end that no response was invalid."""
    watcher, is_over = Watcher(deployed, random.Random(seed)), threading.Event()
    thread = threading.Thread(target=watcher.run, args=(is_over,), daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        is_over.set()
        thread.join()
    assert watcher.problems == []
