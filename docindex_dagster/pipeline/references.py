"""The stage that keeps what the files of a source say about names, for the graph.

The workers that cut a file extract this from the same tree. The stage of the chunks leaves it in a table of its own,
which is there until the stage of the references has written its table: so nothing is lost, and nothing parsed twice,
where a run ends between the two, or each is a process.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES, REFERENCES_VERSION, as_table, is_settled, usable
from docindex_dagster.chunking.references import ReferencesResult, build_references
from docindex_dagster.chunking.versions import references_fingerprint
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.pipeline.breakdown import counts
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Inputs, Outcome, Product, Report, Stage, Storage, previous, table_storage

_NAME = "references"
_LEFT = "fresh_references"
_TABLE = table_storage(_NAME)


def _write(layout: Layout, key: str, table: pa.Table, about: Mapping[bytes, bytes]) -> bool:
    # A table that another try may better does not say what it was made of, so that the next run makes it again.
    is_written = _TABLE.write(layout, key, table, about if is_settled(table) else {})
    layout.table(_LEFT, key).unlink(missing_ok=True)
    return is_written


_STORAGE = Storage((_NAME,), _TABLE.read, _write, _TABLE.version_of)


def leave(run: SourceRun, files: pa.Table, rows: pa.Table) -> None:
    """Leave what was extracted from files as they were cut, beside what an earlier run left and nobody has taken.

    Args:
        run: of which these are.
        files: the `discovered_files`.
        rows: what was extracted now.
    """
    if not rows.num_rows:
        return
    made_with = references_fingerprint(files)
    path = run.layout.table(_LEFT, run.key)
    left = usable(None if run.is_full else tables.read(path), made_with)
    others = left.filter(pc.invert(pc.is_in(left["path"], pc.unique(rows["path"]))))
    tables.write(path, as_table(pa.concat_tables([others, rows]), made_with))


def _extract(run: SourceRun, inputs: Inputs) -> Outcome:
    files, chunks = inputs["discovered_files"], inputs["chunks"]
    if not run.wants_references:
        nothing = as_table(REFERENCES.empty_table(), "")
        return Outcome(nothing, {_NAME: Report(_STORAGE.version_of(nothing), {"files": 0}, rows=nothing)})
    found = build_references(
        run.source,
        files,
        chunks,
        fresh=tables.read(run.layout.table(_LEFT, run.key)),
        previous=previous(run, _STORAGE),
        settings=run.settings.chunking,
    )
    return Outcome(found.table, {_NAME: _report(found)})


def _report(found: ReferencesResult) -> Report:
    table = found.table
    return Report(
        version=_STORAGE.version_of(table),
        numbers={
            "files": table.num_rows,
            "reused": found.reused,
            "parsed_again": found.parsed,
            "without_structure": found.without_structure,
        },
        rows=table,
        sample=table.select(["path", "language"]),
        breakdowns={"languages": counts(table["language"], "language", "files")},
    )


def _wanted(run: SourceRun) -> str:
    return str(run.wants_references)


REFERENCES_OF_FILES = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "What each file of code says about names: what it defines, imports, calls and assigns, one row each.\n\n"
            "See docs/graph.md, “How it works”.",
            frozenset({"treesitter", "parquet"}),
        ),
    ),
    group="graph",
    version=REFERENCES_VERSION,
    inputs=("discovered_files", "chunks"),
    run=_extract,
    storage=_STORAGE,
    depends_on=_wanted,
    decided_by=("chunks",),
)
