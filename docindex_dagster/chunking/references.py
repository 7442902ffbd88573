"""The `references` table of a source: rows of unchanged files are reused, and only what is missing is parsed."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES, as_table, of_files, referring, settled, usable, without
from docindex_dagster.chunking.cutting import Wanted, cut
from docindex_dagster.chunking.versions import references_fingerprint
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.sources.model import Source


@dataclass(frozen=True, slots=True)
class ReferencesResult:
    """The new table, and of how many files its rows come from where."""

    table: pa.Table
    reused: int  # from an earlier run
    taken: int  # from the workers that cut the files
    parsed: int  # from workers that parsed them for this alone

    @property
    def without_structure(self) -> int:
        """How many files have no structure."""
        return int(self.table.num_rows - self.table["problem"].null_count)


def build_references(
    source: Source,
    files: pa.Table,
    chunks: pa.Table,
    *,
    fresh: pa.Table | None,
    previous: pa.Table | None,
    settings: ChunkingSettings,
) -> ReferencesResult:
    """What the files of a source say.

    Args:
        source: where they lie.
        files: its `discovered_files`.
        chunks: made of these files.
        fresh: what workers extracted from files that they cut; None for nothing.
        previous: the table of an earlier run, or None.
        settings: time-outs and how many workers there are.

    Returns:
        The table, sorted by path, with a row for each file of code that has chunks, stamped with its data version.

    Raises:
        WorkerError: no worker can be started.
    """
    made_with = references_fingerprint(files)
    wanted = referring(chunks)
    taken = of_files(usable(fresh, made_with), wanted)
    wanted_still = without(wanted, taken)
    reused = of_files(settled(usable(previous, made_with)), wanted_still)
    missing = without(wanted_still, reused)
    parsed = _parsed(source, files, missing, settings)
    rows = pa.concat_tables([taken, reused, parsed]).sort_by("path").combine_chunks()
    return ReferencesResult(as_table(rows, made_with), reused.num_rows, taken.num_rows, parsed.num_rows)


def _parsed(source: Source, files: pa.Table, missing: pa.Table, settings: ChunkingSettings) -> pa.Table:
    """The rows of files that nobody has extracted yet; of those that changed meanwhile, that they did."""
    if not missing.num_rows:
        return REFERENCES.empty_table()
    jobs = files.filter(pc.is_in(files["path"], pc.unique(missing["path"])))
    found = of_files(cut(source, jobs, settings, Wanted(chunks=False, references=True)).references, missing)
    return pa.concat_tables([found, _changed(without(missing, found))])


def _changed(files: pa.Table) -> pa.Table:
    from docindex_dagster.callgraph.table import Extracted, reference_rows  # it loads the whole representation

    problem = "changed: it is another file by now"
    rows = files.to_pylist()
    return reference_rows([Extracted(row["path"], row["content_hash"], row["language"], None, problem) for row in rows])
