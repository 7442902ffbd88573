"""Measure searches over HTTP.

    python -m benchmarks.serve BENCH FOLDER... [--chunks 20000] [--seconds 60] [--requests 10000]

The benchmark publishes the given number of chunks, as `latency` does, and a small source that runs republish. It starts
`docindex serve` and prints:

- seconds from the start to the first answers
- milliseconds of a search from one client and from the library, alternately
- milliseconds with concurrent clients while a run publishes every 10 s, the number of errors, and the number of answers
  whose generation does not match their hits
- the memory before and after more requests
- the CPU time of one second after clients disconnect
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np

from benchmarks.latency import cut, publish_share, questions
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.sources import registry

CLIENTS = 8
PUBLISHED_EVERY_S = 10.0
TURNS = 5  # rounds with the server and the library, because of load from other programs
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_BEAT = "beat.md"
_WORD = "heartbeatword"


@dataclass(frozen=True)
class Server:
    """A server under measurement."""

    pid: int
    url: str

    def cpu_s(self) -> float:
        """The CPU time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def megabytes(self) -> float:
        """Its resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE / 2**20


@dataclass
class Tally:
    """The results of clients."""

    seconds: list[float] = field(default_factory=list)
    generations: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    torn: int = 0  # answers whose hits are from another generation than reported


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    """Start a server, and print how long its first answers take."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "docindex_dagster.cli", "serve", "--port", str(port), "--no-token"]
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL)
    server = Server(process.pid, f"http://127.0.0.1:{port}")
    try:
        for path in ("health", "search?query=open+a+connection"):
            while not _answers(f"{server.url}/api/v1/{path}"):
                time.sleep(0.01)
            print(
                f"  first answer of {path.partition('?')[0]:<7} {time.perf_counter() - started:5.2f} s after the start"
            )
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


def make(root: Path, folders: Sequence[Path], size: int) -> int:
    """Create an index of the given number of chunks, and a small source whose page counts its publications."""
    (root / "beat").mkdir()
    (root / CONFIG_NAME).write_text('[[source]]\nkind = "library"\npath = "beat"\n')
    publish_share(Layout(root / ".docindex"), cut(folders), size)
    return beat(root, 0)


def beat(root: Path, number: int) -> int:
    """Publish a page that names the generation in which it is published."""
    settings = load_settings(root)
    current = Live(settings).reading(lambda reader: reader.generation.number)
    (root / "beat" / _BEAT).write_text(f"# Beat\n\n{_WORD} of generation {current + 1}, beat {number}.\n")
    (source,) = registry.sources(settings).values()
    index(settings, source, StaticEmbedder())
    return current + 1


def figures(seconds: Sequence[float]) -> str:
    p50, p95 = np.quantile(np.array(seconds) * 1000, [0.5, 0.95])
    return f"{p50:7.1f} {p95:7.1f}"


def alone(server: Server, root: Path, asked: Sequence[str]) -> None:
    """Measure a client and the library alternately, with the same questions, answers and file checks."""
    live = Live(load_settings(root))
    by_http: list[float] = []
    by_library: list[float] = []
    with httpx.Client(base_url=server.url, timeout=60) as client:

        def over_http(query: str) -> None:
            client.get("/api/v1/search", params={"query": query}).raise_for_status()

        def directly(query: str) -> None:
            live.reading(lambda reader: hits_of(live.settings, reader, Request(query)))

        for turn in range(TURNS + 1):  # the first request warms up
            for ask, seconds in ((over_http, by_http), (directly, by_library)):
                for query in asked:
                    started = time.perf_counter()
                    ask(query)
                    if turn:
                        seconds.append(time.perf_counter() - started)
    ratio = np.median(by_http) / np.median(by_library)
    print(f"  library        {figures(by_library)}")
    print(f"  one client     {figures(by_http)}  {ratio:.2f} times the library's median")


def together(server: Server, root: Path, asked: Sequence[str], longest_s: float) -> None:
    """Measure concurrent clients while runs publish."""
    is_over, tally = Event(), Tally()
    publishing = Thread(target=_publish, args=(root, is_over))
    publishing.start()
    ends_at = time.monotonic() + longest_s

    def client(number: int) -> None:
        with httpx.Client(base_url=server.url, timeout=60) as session:
            for count, query in enumerate(cycle([*asked[number:], *asked[:number]])):
                if time.monotonic() > ends_at:
                    return
                _ask(session, query if count % 4 else _WORD, tally)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    is_over.set()
    publishing.join()
    print(f"  {CLIENTS} clients      {figures(tally.seconds)}  {len(tally.seconds) / longest_s:.0f} a second")
    print(
        f"  {len(tally.seconds):,} answers of {len(tally.generations)} generations: {len(tally.errors)} errors, ",
        end="",
    )
    print(f"{tally.torn} from another generation than reported")
    for error in sorted(set(tally.errors)):
        print(f"    {error}")


def _publish(root: Path, is_over: Event) -> None:
    number = 1
    while not is_over.wait(PUBLISHED_EVERY_S):
        command = [sys.executable, "-m", "benchmarks.serve", "--beat", str(number), str(root)]
        subprocess.run(command, check=True)  # a new process, like a run
        number += 1


def _ask(session: httpx.Client, query: str, tally: Tally) -> None:
    started = time.perf_counter()
    try:
        answer = session.get("/api/v1/search", params={"query": query})
    except httpx.TransportError as error:
        tally.errors.append(repr(error))
        return
    tally.seconds.append(time.perf_counter() - started)
    if answer.status_code != 200:
        tally.errors.append(answer.text[:200])
        return
    found = answer.json()
    tally.generations.add(found["generation"])
    tally.torn += any(_is_torn(hit, found["generation"]) for hit in found["items"])


def _is_torn(hit: dict[str, Any], generation: int) -> bool:
    """Return whether a hit is the page of another generation."""
    return hit["path"] == _BEAT and f"of generation {generation}," not in hit["text"]


def steady(server: Server, asked: Sequence[str], requests: int) -> None:
    """Print the memory before and after requests."""
    before = server.megabytes()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for _, query in zip(range(requests), cycle(asked), strict=False):
            client.get("/api/v1/search", params={"query": query, "mode": "bm25"})
    after = server.megabytes()
    print(f"  memory {before:.0f} MB; {after:.0f} MB after {requests:,} requests ({after / before - 1:+.1%})")


def left(server: Server) -> None:
    """Print the CPU time of a second that starts one second after clients cancelled a regex search."""
    for _ in range(CLIENTS):
        try:
            params = {"mode": "regex", "query": "(.{1,60}){1,9}$^"}
            httpx.get(f"{server.url}/api/v1/matches", params=params, timeout=0.3)
        except httpx.ReadTimeout:
            continue
    time.sleep(1)
    before = server.cpu_s()
    time.sleep(1)
    print(
        f"  {server.cpu_s() - before:.2f} s of CPU in a second, one second after {CLIENTS} clients cancelled a search"
    )


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--beat", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.beat is not None:
        beat(arguments.bench, arguments.beat)
        return
    asked = questions(arguments.bench)
    with tempfile.TemporaryDirectory(prefix="docindex-serve-") as folder:
        root = Path(folder)
        make(root, arguments.folders, arguments.chunks)
        count = Live(load_settings(root)).reading(lambda reader: reader.searcher.num_docs)
        print(f"{count:,} chunks; system load {os.getloadavg()[0]:.1f}{'':<9} p50     p95  ms")
        with serving(root) as server:
            alone(server, root, asked)
            together(server, root, asked, arguments.seconds)
            steady(server, asked, arguments.requests)
            left(server)


if __name__ == "__main__":
    os.environ.pop("DOCINDEX_ROOT", None)
    main()
