"""Measure the cost of runs and searches as an index grows, on one machine.

    python -m benchmarks.growth BENCH FOLDER... [--sources 10,100,1000,2000] [--chunks 10000,100000,1000000]
                                [--url s3://BUCKET/PREFIX] [--project FOLDER] [--json FILE]

FOLDERs are repositories; the first one is cloned and edited. One project grows to the given numbers of sources by
libraries of six files each, whose tables are published together. Another project grows to the given numbers of chunks
by sources of 10,000 copied chunks without graphs. At each size, the benchmark measures:

- 50 edits of one file until publication, by the library and by recorded runs in a warm process: wall-clock and CPU
  seconds, median and maximum. Maintenance of the stores runs between edits when due.
- 100 questions for files of BENCH in a warm process after 20 others (median milliseconds), and five of them in new
  processes, from start to end
- the memory of a searching process, the peak of updating processes, the stores on disk, and the rows of LanceDB
- with --url, and the environment variables of an S3 client: requests and bytes of one publication by worker, publisher
  and search server, median and maximum of 20

With --project, the projects are kept, and the next call continues with them. The results are also written to a JSON
file.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from benchmarks.growth import costs, objects
from benchmarks.growth.costs import Disk, Searches, Updates, Way
from benchmarks.growth.objects import Publication, Traffic
from benchmarks.growth.project import Project
from benchmarks.latency import questions

_WAYS: tuple[Way, ...] = ("library", "recorded")
_PUBLICATIONS = 20
_P = ParamSpec("_P")
_T = TypeVar("_T")
_COLUMNS = (
    "sources",
    "chunks",
    "library, s",
    "CPU, s",
    "recorded, s",
    "CPU, s",
    "maintenance, s",
    "new process, s (CPU)",
    "warm hybrid, vector, bm25, ms",
    "searching, MiB",
    "updating, MiB",
    "CURRENT, MB",
    "LanceDB, its rows, MB",
    "stores, MB",
)
_OF_OBJECTS = ("requests", "MB sent", "MB received")


@dataclass(frozen=True, slots=True)
class Measured:
    """All results for one size."""

    sources: int
    chunks: int
    updates: dict[Way, Updates]
    searches: Searches
    disk: Disk
    publications: list[Publication]

    def row(self) -> str:
        """Return a row of the table."""
        library, recorded = (self.updates[way] for way in _WAYS)
        maintained = [seconds for each in self.updates.values() for seconds in each.maintained]
        cells = [
            f"{self.sources:,}",
            f"{self.chunks:,}",
            *(_spread(values) for each in (library, recorded) for values in (each.clock, each.cpu)),
            _spread(maintained) if maintained else "none",
            f"{self.searches.cold_s:.2f} ({self.searches.cold_cpu_s:.2f})",
            ", ".join(f"{value:.0f}" for value in self.searches.warm_ms.values()),
            f"{self.searches.resident_mib:.0f}",
            f"{max(library.peak_mib, recorded.peak_mib):.0f}",
            f"{self.disk.current:.2f}",
            f"{self.disk.stores.get('lance', 0):.0f}, {self.disk.rows:.0f}",
            f"{self.disk.total:.0f}",
        ]
        return _line(cells)

    def rows_of_objects(self) -> Iterator[str]:
        """Return the traffic of publications with the object store, with a row for each participant."""
        for name in ("worker", "publisher", "search_server"):
            traffic: list[Traffic] = [getattr(each, name) for each in self.publications]
            columns = (
                [each.total for each in traffic],
                [each.sent / 1e6 for each in traffic],
                [each.received / 1e6 for each in traffic],
            )
            if traffic:
                spreads = [f"{statistics.median(column):.3g}, {max(column):.3g}" for column in columns]
                yield _line([f"{self.sources:,}", f"{self.chunks:,}", name.replace("_", " "), *spreads])


def main() -> None:
    """Print a row for each size when it is measured, then those of the object store, and write the file."""
    arguments = _arguments()
    asked = questions(arguments.bench)
    repositories = tuple(folder.absolute() for folder in arguments.folders)
    found: list[Measured] = []
    print(_head(_COLUMNS), flush=True)
    with tempfile.TemporaryDirectory(prefix="docindex-growth-") as folder:
        root = (arguments.project or Path(folder)).absolute()
        by_sources, by_chunks = (Project(root / name, repositories) for name in ("sources", "chunks"))
        for project, grow, sizes in (
            (by_sources, by_sources.grow_sources, arguments.sources),
            (by_chunks, by_chunks.grow_chunks, arguments.chunks),
        ):
            for size in sizes:
                _alone(project.begin)
                _alone(grow, size)
                found.append(_measured(project, arguments, asked))
                print(found[-1].row(), flush=True)
    if arguments.url:
        print("\n" + _head(("sources", "chunks", "who", *_OF_OBJECTS)))
        print("\n".join(row for each in found for row in each.rows_of_objects()))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--sources", type=_numbers, default="10,100,1000,2000")
    parser.add_argument("--chunks", type=_numbers, default="10000,100000,1000000")
    parser.add_argument("--updates", type=int, default=50, metavar="N", help="Number of edits at each size.")
    parser.add_argument("--url", help="Also count the requests to this object store.")
    parser.add_argument("--project", type=Path, help="Keep the projects here.")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _measured(project: Project, arguments: argparse.Namespace, asked: Sequence[str]) -> Measured:
    updates = {way: _alone(costs.updates, project, arguments.updates, way) for way in _WAYS}
    searches = _alone(costs.searches, project, asked)
    published = project.generation().sources
    of_objects: list[Publication] = []
    disk = _alone(costs.disk, project)
    if arguments.url:
        of_objects = _alone(objects.publications, project, f"{arguments.url}/{len(published)}", _PUBLICATIONS)
    chunks = sum(source.chunks for source in published.values())
    return Measured(len(published), chunks, updates, searches, disk, of_objects)


def _alone(work: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
    """Call a function of another module in a new process, so that its memory is separate."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **options).result()


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}, {max(values):.2f}"


def _head(columns: Sequence[str]) -> str:
    return f"{_line(columns)}\n|{'---|' * len(columns)}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    os.environ.pop("DOCINDEX_ROOT", None)
    main()
