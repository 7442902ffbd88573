"""The copy of a LanceDB table that is compacted while publications go on with the table itself."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import lance_table
from docindex_dagster.stores.damage import damaged
from docindex_dagster.stores.difference import disagreement
from docindex_dagster.stores.generation import Generation, PublishedSource

if TYPE_CHECKING:
    from lancedb.table import LanceTable

# A search looks into each part of the table that no index covers, and a manifest lists all parts. Publications of one
# file leave such a part each; to take up 20 or 300 of them costs the same 0.2 s.
_MOST_VERSIONS = 20
# Deleted rows are skipped one by one. Below these limits the cost is negligible; larger tables tolerate more.
_FEWEST_ROWS, _MOST_CHANGED = 10_000, 0.1
# So many rows are brought over under the lock, in less than a second; more are before it is taken.
_FEW_ROWS = 5_000
_ROWS_A_BATCH = 20_000


def why_due(generation: Generation) -> str | None:
    """Why the table of a generation should be compacted; None where it need not be."""
    versions = generation.table_version - generation.optimized_version
    if versions >= _MOST_VERSIONS:
        return f"{versions} versions of the table since the last"
    rows = sum(source.chunks for source in generation.sources.values())
    if generation.changed_rows >= max(_FEWEST_ROWS, rows * _MOST_CHANGED):
        return f"{generation.changed_rows:,} rows of {rows:,} changed since the last"
    return None


@dataclass(frozen=True, slots=True)
class Copy:
    """A compacted copy of the table of a generation, in the folder of the maintenance, which nobody else looks at.

    Attributes:
        holds: the generation whose rows it has.
        optimized: its version when it was compacted.
        changed: how many rows were written or deleted since.
    """

    layout: Layout
    table: "LanceTable"
    holds: Generation
    optimized: int
    changed: int = 0

    @classmethod
    def made(cls, layout: Layout, base: Generation) -> "Copy":
        """Link the files of a generation's table, and compact them, which may take minutes."""
        name = f"{lance_table.table_name(base.model)}-{uuid4().hex[:8]}"
        table = lance_table.linked(layout, base.table, base.table_version, layout.maintenance, name)
        lance_table.drop_other_versions(table)
        return cls(layout, table, base, table.version)

    def is_far_behind(self, current: Generation) -> bool:
        """Whether it takes long to bring over what it lacks of a generation."""
        return _rows(differing(self.holds, current), current) > _FEW_ROWS

    def brought_to(self, current: Generation) -> "Copy":
        """The copy with the rows of another generation.

        Raises:
            DamagedStoreError: it does not hold them.
        """
        return replace(self, holds=current, changed=self.changed + self._bring_over(current))

    def put_in_place(self, current: Generation) -> Generation:
        """Let it be the table of the generation that it holds; who calls it names what is returned.

        The caller holds the publication lock, and has synced the copy.
        """
        lance_table.put_in_place(self.layout, self.table, self.layout.maintenance, current.table)
        return replace(
            current,
            table=self.table.name,
            table_version=self.table.version,
            optimized_version=self.optimized,
            changed_rows=self.changed,
        )

    def verify(self) -> None:
        """Compare how many rows it holds of each source with what is published.

        Raises:
            DamagedStoreError: they differ.
        """
        held = lance_table.numbers(self.table)
        expected = {key: source.chunks for key, source in self.holds.sources.items() if source.chunks}
        if held != expected:
            key = min(key for key in held.keys() | expected.keys() if held.get(key, 0) != expected.get(key, 0))
            numbers = f"{held.get(key, 0)} rows of {key}, {expected.get(key, 0)} published"
            raise damaged(f"maintenance: LanceDB holds {numbers}")

    def _bring_over(self, current: Generation) -> int:
        """Write and delete the rows in which a generation differs; returns how many there are."""
        others = differing(self.holds, current)
        if not others:
            return 0
        published = lance_table.open_for_reading(self.layout, current.table, current.table_version)
        changed = 0
        for key in sorted(others - current.sources.keys()):
            lance_table.remove(self.table, key)
            changed += self.holds.sources[key].chunks
        for keys in _batches({key: current.sources[key] for key in sorted(others & current.sources.keys())}):
            chunks, vectors = lance_table.rows_of(published, keys)
            expected = lance_table.expected(chunks, vectors)
            changed += lance_table.reconcile(self.table, keys, chunks, vectors, expected).written
            if text := disagreement(lance_table.held(self.table, keys), expected):
                raise damaged(f"maintenance of {keys[0]}: {text}")
        return changed


def differing(left: Generation, right: Generation) -> set[str]:
    """The sources of which two generations hold other rows."""
    return {
        key
        for key in left.sources.keys() | right.sources.keys()
        if _version(left.sources.get(key)) != _version(right.sources.get(key))
    }


def _version(source: PublishedSource | None) -> str | None:
    return source.version if source else None


def _rows(keys: Iterable[str], generation: Generation) -> int:
    """How many rows a generation holds of some sources."""
    return sum(generation.sources[key].chunks for key in keys if key in generation.sources)


def _batches(sources: Mapping[str, PublishedSource]) -> Iterator[list[str]]:
    """Keys of sources by some thousand rows."""
    batch: list[str] = []
    rows = 0
    for key, source in sources.items():
        batch.append(key)
        rows += source.chunks
        if rows >= _ROWS_A_BATCH:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch
