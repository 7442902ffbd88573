"""What a deployment of many machines costs, on paper: capacity.py [--repositories 1000] [--chunks 10000000] ...

Machines, memory, disk, requests and money a month are computed from what was measured. Each input is an option with
the name of its field, as `--update-cpu-s 3.5`. What is said of more than a million chunks is extrapolated.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

HOURS = 730  # of a month
DAYS = HOURS / 24
_MILLION = 1_000_000
_SIZES_GIB = (2, 4, 8, 16, 32, 64, 128, 256, 512)  # memory of machines that can be had


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, on two cores; what is only estimated says so."""

    index_cpu_s: float = 51.0  # to index 10,000 chunks from nothing, with their graph
    update_cpu_s: float = 5.7  # of a run after an edit, with ten sources; with 2,000 11.4, half of it to link the graph
    run_s: float = 10.0  # of the clock, from queue to end, on Celery
    run_gib: float = 3.8  # peak of a run of a large repository
    publish_rate: float = 2000.0  # chunks a second that a publisher takes in, with compaction
    publish_s: float = 0.58  # of CPU time for an edit of one file, of which this is a part, at a million chunks
    lance_gb: float = 2.45  # a million chunks
    tantivy_gb: float = 1.67  # a million chunks
    tables_gb: float = 1.5  # a million chunks, with their graph
    hot_gb: float = 0.94  # a million chunks: what a process that searches them holds more than one that has few
    program_gib: float = 1.0  # of a program, before it holds an index; estimated
    disk_factor: float = 3.0  # of the stores where they are written: older versions, the generation before
    update_mb: float = 1.5  # that a publication of one file adds to the stores, and maintenance for it
    run_gets: float = 8.0  # requests of a run: the pointer, and tables that its worker lacks
    run_puts: float = 7.5  # requests of a run: tables that differ, and the pointer
    source_gets: float = 11.5  # requests of a publisher for a source: its pointer twice, tables, the manifest
    push_puts: float = 17.0  # requests of a publication: new files, and the manifest; a search server gets as many
    push_every_s: float = 5.0  # at most, while there is something to publish
    poll_s: float = 2.0  # between a search server's looks
    tick_s: float = 25.0  # between a sensor's looks, at all pointers
    manifest_kb: float = 0.3  # a source
    rubbish_days: float = 1.25  # until objects that nothing names are gone
    record_mb: float = 0.1  # of Postgres a run; estimated


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be done: assumptions."""

    repositories: int = 1_000
    chunks: int = 10_000_000
    updates: float = 5.0  # of a repository a day
    busy_hours: float = 10.0  # of a day, in which they come
    replicas: int = 2  # search servers that hold the same
    record_days: float = 30.0  # of runs, as `retention.days`


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars: assumptions of the order of a large cloud's list, without discounts."""

    core_hour: float = 0.036
    gib_hour: float = 0.0045
    disk_gb: float = 0.08  # a month
    object_gb: float = 0.023  # a month
    puts: float = 0.005  # a thousand, and lists
    gets: float = 0.0004  # a thousand


@dataclass(frozen=True, slots=True)
class Part:
    """Machines of a kind, or what is paid by use."""

    name: str
    machines: int = 0
    cores: int = 0
    memory_gib: int = 0
    disk_gb: float = 0.0
    dollars: float = 0.0  # for all of them

    def columns(self) -> tuple[str, ...]:
        """The columns of its row."""
        numbers = (self.machines, self.cores, self.memory_gib, round(self.disk_gb))
        return (self.name, *(f"{number:,}" if number else "" for number in numbers), f"{self.dollars:,.0f}")


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment for a load, by what was measured and what things cost."""

    measured: Measured = Measured()
    load: Load = Load()
    prices: Prices = Prices()

    @property
    def runs(self) -> float:
        """Runs that index, a day: after edits, and of the night."""
        return self.load.repositories * (self.load.updates + 1)

    @property
    def workers(self) -> int:
        """As many as runs are at work at once when edits come."""
        edits = self.load.repositories * self.load.updates
        return max(2, math.ceil(edits * self.measured.run_s / (self.load.busy_hours * 3600)))

    @property
    def pushes(self) -> float:
        """Publications a day: one for each run, or for what came within some seconds."""
        edits = self.load.repositories * self.load.updates
        return min(edits, self.load.busy_hours * 3600 / self.measured.push_every_s)

    @property
    def stores_gb(self) -> float:
        """The published stores."""
        return (self.measured.lance_gb + self.measured.tantivy_gb) * self.load.chunks / _MILLION

    @property
    def run_mb(self) -> float:
        """The tables of a repository, which a run reads and writes."""
        return self.measured.tables_gb * 1000 * self.load.chunks / _MILLION / self.load.repositories

    @property
    def objects_gb(self) -> float:
        """What lies in the object store: tables, stores with the generation before, and what nothing names any more."""
        named = self.measured.tables_gb * self.load.chunks / _MILLION + 2 * self.stores_gb
        written = self.runs * self.run_mb + self.pushes * (self.measured.update_mb + self._manifest_mb)
        return named + self.measured.rubbish_days * written / 1000

    @property
    def _manifest_mb(self) -> float:
        return self.measured.manifest_kb * self.load.repositories / 1000

    @property
    def puts(self) -> float:
        """Requests a month that are paid as writing: puts and lists."""
        pages = math.ceil(self.load.repositories / 1000)
        ticks = 86_400 / self.measured.tick_s
        a_day = self.runs * self.measured.run_puts + self.pushes * (self.measured.push_puts + pages) + ticks * pages
        return a_day * DAYS

    @property
    def gets(self) -> float:
        """Requests a month that are paid as reading."""
        polls = self.load.replicas * 86_400 / self.measured.poll_s
        replicas = self.load.replicas * self.pushes * self.measured.push_puts
        a_day = self.runs * (self.measured.run_gets + self.measured.source_gets) + polls + replicas
        return a_day * DAYS

    @property
    def first_hours(self) -> float:
        """How long everything takes from nothing: workers at one core each, or the publisher, whoever is slower."""
        working = self.measured.index_cpu_s * self.load.chunks / 10_000 / self.workers
        publishing = self.load.chunks / self.measured.publish_rate
        return max(working, publishing) / 3600

    @property
    def busy(self) -> float:
        """The share of the busy hours in which the publisher publishes."""
        edits = self.load.repositories * self.load.updates
        return edits * self.measured.publish_s / (self.load.busy_hours * 3600)

    def parts(self) -> Iterator[Part]:
        """All that is paid for."""
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
        """The table, and what else there is to say, as Markdown."""
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
    """Print the plan for what the options say."""
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
