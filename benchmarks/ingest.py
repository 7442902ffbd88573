"""Measure how long it takes to acknowledge a message.

    python -m benchmarks.ingest [FOLDER] [--project ROOT] [--messages 500] [--lookups 10000]
                                [--folded 10000] [--tail 5000]

One process, then four at full speed, write messages of 50, 500 and 5,000 words to a domain in FOLDER (default: the
current directory). The following alternate: a message is ingested (admitted, scanned for names of code, written,
synced, chunked, and analyzed for concepts), a message is written only to the log, and the same bytes are appended to a
plain file and synced, as a lower bound. The output is in milliseconds: median, 95th and 99th percentile, and maximum.
With `--project`, messages name symbols of that project's index.

Then four processes write, and another process looks up each message after its acknowledgement. The benchmark also
measures a read without new messages, and searches over folded messages and messages in the log.
"""

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import IO

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.log import Log, open_log
from docindex_dagster.memory.memory import Memory
from docindex_dagster.memory.message import Message, as_payload, compose
from docindex_dagster.memory.segments import encode, sync_data
from docindex_dagster.search.live_index import Live
from docindex_dagster.stores.reader import open_reader
from tests.memory.logs import DOMAIN
from tests.memory.processes import start
from tests.memory.talks import project

_WORDS = (50, 500, 5000)
_PROCESSES = (1, 4)
_VOCABULARY = ("the", "pump", "opens", "a", "valve", "when", "pressure", "falls", "below", "its", "limit", "again")
_READS = 2000
_WORDS_A_NAME = 12  # interval of words that name code


@dataclass(frozen=True, slots=True)
class Task:
    """The messages that one process writes."""

    home: Path
    number: int
    words: int
    messages: int
    project: Path | None
    names: tuple[str, ...] = ()  # of indexed symbols


Times = list[tuple[float, float, float]]
"""Seconds for each message: ingested, only in the log, and in a plain file."""


def message(task: Task, number: int) -> Message:
    """Return a message with the given number of words, different each time."""
    chance = random.Random(f"{task.number} {number}")
    words = chance.choices(_VOCABULARY, k=task.words)
    if task.names:
        for place in range(0, task.words, _WORDS_A_NAME):
            words[place] = f"`{chance.choice(task.names)}`"
    text = " ".join(words)
    return compose(DOMAIN, f"s{task.number}", text, role="assistant")


def seconds(act: Callable[[], object]) -> float:
    """Return how long a function takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


@contextmanager
def appending(file: Path) -> Iterator[Callable[[bytes], None]]:
    """Append bytes to a file and sync it."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def append(data: bytes) -> None:
        os.write(descriptor, data)
        sync_data(descriptor)

    try:
        yield append
    finally:
        os.close(descriptor)


def written(task: Task) -> Times:
    """Write messages, alternately to the log and to a plain file."""
    settings = project(task.home / "project")
    code = Live(load_settings(task.project)) if task.project else None
    memory = Memory(settings, DOMAIN, code=code)
    log = open_log(Layout(task.home), DOMAIN)
    times = []
    with appending(task.home / f"plain-{task.number}") as append:
        log.append([message(task, -1)])
        append(b"-")
        memory.ingest("warm", session="s")
        for number in range(task.messages):
            one = message(task, number)
            data = encode(as_payload(one))
            ingested = seconds(lambda one=one: memory.ingest(one.text, session=one.session, role="assistant"))  # type: ignore[misc]
            in_log = seconds(lambda one=one: log.append([one]))  # type: ignore[misc]
            times.append((ingested, in_log, seconds(lambda data=data: append(data))))  # type: ignore[misc]
    return times


def names_in(project: Path) -> tuple[str, ...]:
    """Return the indexed symbols of a project."""
    ids = open_reader(Layout(load_settings(project).home)).graph.ids
    return tuple(sorted({node.partition("::")[2].partition("~")[0] for node in ids if "::" in node}))


def shown(times: Sequence[float]) -> str:
    """Format the median, two percentiles and the maximum in milliseconds."""
    found = sorted(times)
    chosen = [found[int(len(found) * share)] for share in (0.5, 0.95, 0.99)] + [found[-1]]
    return " ".join(f"{each * 1000:7.2f}" for each in chosen)


def acknowledging(folder: Path, messages: int, project: Path | None) -> None:
    """Print how long it takes to acknowledge messages."""
    names = names_in(project) if project else ()
    head = "     p50     p95     p99     max"
    print(f" words processes  ingested{head}  log{head}  bare{head}  ms")
    for processes in _PROCESSES:
        with get_context("spawn").Pool(processes) as pool:
            for words in _WORDS:
                with tempfile.TemporaryDirectory(dir=folder) as home:
                    tasks = [Task(Path(home), number, words, messages, project, names) for number in range(processes)]
                    times = [each for part in pool.map(written, tasks, chunksize=1) for each in part]
                columns = "      ".join(map(shown, zip(*times, strict=True)))
                print(f"{words:>6} {processes:>9}           {columns}", flush=True)


def looking_up(home: Layout, lookups: int) -> None:
    """Print whether another process finds each message after its acknowledgement."""
    reader = start("watch", home)
    writers = [start("write", home, name, str(lookups // 4)) for name in "abcd"]

    def forward(lines: IO[str]) -> None:
        for line in lines:
            os.write(reader.stdin.fileno(), line.encode())  # type: ignore[union-attr]

    threads = [Thread(target=forward, args=(writer.stdout,)) for writer in writers]
    threads.append(Thread(target=lambda: answers.update(line.strip() for line in reader.stdout or ())))
    answers: Counter[str] = Counter()
    for thread in threads:
        thread.start()
    for thread in threads[:-1]:
        thread.join()
    reader.stdin.close()  # type: ignore[union-attr]
    threads[-1].join()
    for process in (reader, *writers):
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    print(f"found by another process: {dict(answers)}")


def reading(log: Log) -> None:
    """Print the cost of a read without new messages."""
    offsets = log.read().offsets
    started, worked = time.perf_counter(), time.process_time()
    for _ in range(_READS):
        log.read(offsets)
    clock, cpu = time.perf_counter() - started, time.process_time() - worked
    print(
        f"a read without new messages, {len(offsets.ends)} segments: {cpu / _READS * 1e6:.0f} us of CPU time, "
        f"{clock / _READS * 1e6:.0f} us by the clock"
    )


def searching(folder: Path, folded: int, tail: int) -> None:
    """Print how long searches over folded messages and messages in the log take, and how long loading takes."""
    settings = project(folder)
    log = open_log(Layout(settings.home), DOMAIN)
    chance = random.Random(1)
    words = [f"{stem}{number}" for stem in _VOCABULARY for number in range(300)]

    def say(count: int, begin: int) -> None:
        texts = (" ".join(chance.choices(words, k=50)) for _ in range(count))
        log.append([compose(DOMAIN, f"s{number % 40}", text, role="user") for number, text in enumerate(texts, begin)])

    say(folded, 0)
    took = seconds(lambda: fold(settings, DOMAIN))
    say(tail, folded)
    memory = Memory(settings, DOMAIN)
    loaded = seconds(lambda: memory.recall("pump1 valve2"))
    times = [seconds(lambda: memory.recall(" ".join(chance.choices(words, k=8)))) for _ in range(200)]
    between = []
    for number in range(100):
        memory.ingest(f"between {number}: " + " ".join(chance.choices(words, k=50)), session="s1")
        between.append(seconds(lambda: memory.recall(" ".join(chance.choices(words, k=8)))))
    print(f"fold of {folded:,} messages {took:.1f} s; first search of a process {loaded:.2f} s")
    print(f"search of {folded:,} folded and {tail:,} in the log           {shown(times)}")
    print(f"the same, each after a new message          {shown(between)}")


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    parser.add_argument("--project", type=Path, help="project with the code that messages name")
    parser.add_argument("--folded", type=int, default=10_000)
    parser.add_argument("--tail", type=int, default=5_000)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--lookups", type=int, default=10_000)
    arguments = parser.parse_args()
    print(f"system load {os.getloadavg()[0]:.1f}")
    acknowledging(arguments.folder, arguments.messages, arguments.project)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        home = Layout(Path(folder).absolute() / "home")
        looking_up(home, arguments.lookups)
        reading(open_log(home, DOMAIN))
        searching(Path(folder) / "project", arguments.folded, arguments.tail)


if __name__ == "__main__":
    main()
