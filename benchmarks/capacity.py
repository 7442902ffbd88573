"""Compute the machines and cost of a distributed deployment.

    python -m benchmarks.capacity [--repositories 1000] [--chunks 10000000] ...

The plan lists machines, memory, disk, requests and monthly cost, computed from measurements. Each input is an option
with the name of its field, such as `--update-cpu-s 3.5`. Results above a million chunks are extrapolated.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

HOURS = 730  # per month
DAYS = HOURS / 24
_MILLION = 1_000_000
_SIZES_GIB = (2, 4, 8, 16, 32, 64, 128, 256, 512)  # memory sizes of available machines


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements on two cores; estimates are marked."""

    index_cpu_s: float = 51.0  # to index 10,000 chunks from nothing, with their graph
    update_cpu_s: float = 5.7  # of a run after an edit, with 10 sources; 11.4 with 2,000, half of it to link the graph
    run_s: float = 10.0  # wall-clock time from queue to end, on Celery
    run_gib: float = 3.8  # peak of a run of a large repository
    publish_rate: float = 2000.0  # chunks per second that a publisher adds, including compaction
    publish_s: float = 0.58  # CPU time of the publication of one edited file, at a million chunks
    lance_gb: float = 2.45  # per million chunks
    tantivy_gb: float = 1.67  # per million chunks
    tables_gb: float = 1.5  # per million chunks, with their graph
    hot_gb: float = 0.94  # per million chunks: additional memory of a process that searches them
    program_gib: float = 1.0  # memory of a process without an index; estimated
    disk_factor: float = 3.0  # multiple of the store size at the publisher: older versions and previous generation
    update_mb: float = 1.5  # added to the stores by a publication of one file, including maintenance
    run_gets: float = 8.0  # requests per run: the pointer and tables that the worker lacks
    run_puts: float = 7.5  # requests per run: changed tables and the pointer
    source_gets: float = 11.5  # publisher requests per source: its pointer twice, tables, the manifest
    push_puts: float = 17.0  # requests per publication: new files and the manifest; a search server makes as many
    push_every_s: float = 5.0  # maximum frequency of publications
    poll_s: float = 2.0  # between the checks of a search server
    tick_s: float = 25.0  # between the checks of a sensor, of all pointers
    manifest_kb: float = 0.3  # per source
    rubbish_days: float = 1.25  # until unreferenced objects are deleted
    record_mb: float = 0.1  # of Postgres, per run; estimated


@dataclass(frozen=True, slots=True)
class Load:
    """Assumed load of a deployment."""

    repositories: int = 1_000
    chunks: int = 10_000_000
    updates: float = 5.0  # per repository and day
    busy_hours: float = 10.0  # hours per day in which updates arrive
    replicas: int = 2  # search servers with the same index
    record_days: float = 30.0  # retention of runs, as in `retention.days`


@dataclass(frozen=True, slots=True)
class Prices:
    """Assumed prices in dollars, close to list prices of large clouds without discounts."""

    core_hour: float = 0.036
    gib_hour: float = 0.0045
    disk_gb: float = 0.08  # per month
    object_gb: float = 0.023  # per month
    puts: float = 0.005  # per thousand puts or lists
    gets: float = 0.0004  # per thousand


@dataclass(frozen=True, slots=True)
class Part:
    """A group of equal machines, or a service billed by use."""

    name: str
    machines: int = 0
    cores: int = 0
    memory_gib: int = 0
    disk_gb: float = 0.0
    dollars: float = 0.0  # for all of them

    def columns(self) -> tuple[str, ...]:
        """Return the cells of the table row."""
        numbers = (self.machines, self.cores, self.memory_gib, round(self.disk_gb))
        return (self.name, *(f"{number:,}" if number else "" for number in numbers), f"{self.dollars:,.0f}")


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment for a load, from measurements and prices."""

    measured: Measured = Measured()
    load: Load = Load()
    prices: Prices = Prices()

    @property
    def runs(self) -> float:
        """Indexing runs per day: after edits, plus one per repository and night."""
        return self.load.repositories * (self.load.updates + 1)

    @property
    def workers(self) -> int:
        """Number of workers for the concurrent runs in busy hours."""
        edits = self.load.repositories * self.load.updates
        return max(2, math.ceil(edits * self.measured.run_s / (self.load.busy_hours * 3600)))

    @property
    def pushes(self) -> float:
        """Publications per day: one per run, or fewer if runs arrive within seconds."""
        edits = self.load.repositories * self.load.updates
        return min(edits, self.load.busy_hours * 3600 / self.measured.push_every_s)

    @property
    def stores_gb(self) -> float:
        """Size of the published stores."""
        return (self.measured.lance_gb + self.measured.tantivy_gb) * self.load.chunks / _MILLION

    @property
    def run_mb(self) -> float:
        """Size of a repository's tables, which a run reads and writes."""
        return self.measured.tables_gb * 1000 * self.load.chunks / _MILLION / self.load.repositories

    @property
    def objects_gb(self) -> float:
        """Size of the object store: tables, stores with the previous generation, and unreferenced objects."""
        named = self.measured.tables_gb * self.load.chunks / _MILLION + 2 * self.stores_gb
        written = self.runs * self.run_mb + self.pushes * (self.measured.update_mb + self._manifest_mb)
        return named + self.measured.rubbish_days * written / 1000

    @property
    def _manifest_mb(self) -> float:
        return self.measured.manifest_kb * self.load.repositories / 1000

    @property
    def puts(self) -> float:
        """Put and list requests per month."""
        pages = math.ceil(self.load.repositories / 1000)
        ticks = 86_400 / self.measured.tick_s
        a_day = self.runs * self.measured.run_puts + self.pushes * (self.measured.push_puts + pages) + ticks * pages
        return a_day * DAYS

    @property
    def gets(self) -> float:
        """Get requests per month."""
        polls = self.load.replicas * 86_400 / self.measured.poll_s
        replicas = self.load.replicas * self.pushes * self.measured.push_puts
        a_day = self.runs * (self.measured.run_gets + self.measured.source_gets) + polls + replicas
        return a_day * DAYS

    @property
    def first_hours(self) -> float:
        """Hours to index everything from nothing, limited by the workers (one core each) or by the publisher."""
        working = self.measured.index_cpu_s * self.load.chunks / 10_000 / self.workers
        publishing = self.load.chunks / self.measured.publish_rate
        return max(working, publishing) / 3600

    @property
    def busy(self) -> float:
        """Share of the busy hours in which the publisher publishes."""
        edits = self.load.repositories * self.load.updates
        return edits * self.measured.publish_s / (self.load.busy_hours * 3600)

    def parts(self) -> Iterator[Part]:
        """Yield all parts with a cost."""
        measured, load = self.measured, self.load
        record_gb = self.runs * load.record_days * measured.record_mb / 1000
        hot_gb = measured.hot_gb * load.chunks / _MILLION
        yield self._machines("web server, daemon, code location", 1, 2, 4, 20)
        yield self._machines("Postgres", 1, 2 if self.workers < 8 else 4, 16, 20 + record_gb)
        yield self._machines("Redis", 1, 1, 2, 10)
        yield self._machines("workers", self.workers, 2, 2 * measured.run_gib, 100)
        whole_gib = measured.program_gib + hot_gb
        yield self._machines("publisher", 1, 2, whole_gib, measured.disk_factor * self.stores_gb)
        cores = 2 if hot_gb < 16 else 8
        yield self._machines("search servers", load.replicas, cores, whole_gib, 2 * self.stores_gb)
        yield Part("object store, GB", disk_gb=self.objects_gb, dollars=self.objects_gb * self.prices.object_gb)
        yield Part("its requests", dollars=(self.puts * self.prices.puts + self.gets * self.prices.gets) / 1000)

    def _machines(self, name: str, number: int, cores: int, gib: float, disk_gb: float) -> Part:
        size = next((size for size in _SIZES_GIB if size >= gib), math.ceil(gib))
        hourly = cores * self.prices.core_hour + size * self.prices.gib_hour
        return Part(name, number, cores, size, disk_gb, number * (hourly * HOURS + disk_gb * self.prices.disk_gb))

    def as_markdown(self) -> str:
        """Format the plan as Markdown."""
        parts = list(self.parts())
        total = Part("all", sum(part.machines for part in parts), dollars=sum(part.dollars for part in parts))
        head = ("part", "machines", "cores each", "GiB each", "GB of disk each", "$ a month")
        rows = (head, ("---", *["---:"] * 5), *(part.columns() for part in (*parts, total)))
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return (
            f"{self.load.repositories:,} repositories, {self.load.chunks:,} chunks, "
            f"{self.load.updates:g} updates of each a day\n\n{table}\n\n"
            f"- {self.runs:,.0f} runs a day; {self.puts / _MILLION:,.1f} million puts and lists a month, "
            f"{self.gets / _MILLION:,.1f} million gets; tables of {self.run_mb:.0f} MB a run.\n"
            f"- {self.first_hours:.1f} hours from nothing; then the publisher works {100 * self.busy:.0f} % "
            "of the busy hours.\n"
        )


def main() -> None:
    """Print the plan for the given options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in (Measured, Load, Prices):
        for each in fields(kind):
            parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    given = vars(parser.parse_args())
    measured, load, prices = (
        {each.name: given[each.name] for each in fields(kind)} for kind in (Measured, Load, Prices)
    )
    print(Plan(Measured(**measured), Load(**load), Prices(**prices)).as_markdown(), end="")


if __name__ == "__main__":
    main()
