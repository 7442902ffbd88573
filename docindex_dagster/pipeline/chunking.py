"""Stages that split the files of a source into chunks, and extract the references of code files.

The worker that chunks a file also extracts its references, from the same syntax tree. The chunks stage stores them in a
separate table until the references stage has written its own. So nothing is lost or parsed twice if a run ends between
the two stages, or if each runs in its own process.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES, REFERENCES_VERSION, as_table, is_settled, usable
from docindex_dagster.chunking.build import ChunkingResult, ReferencesResult, build_chunks, build_references
from docindex_dagster.chunking.inputs import EXTRACTOR_VERSION, ChunkInputs, gather, references_fingerprint
from docindex_dagster.chunking.summaries import SummaryCounts
from docindex_dagster.chunking.table_rules import (
    CHUNK_RULES,
    fallbacks,
    is_above_threshold,
    left_out_warning,
    phrase,
    warning,
)
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import (
    CheckResult,
    Inputs,
    Outcome,
    Product,
    Report,
    Stage,
    Storage,
    changes,
    counts,
    pick_sample_chunks,
    previous,
    table_storage,
    text_table,
)

_REFERENCES = "references"
_FRESH = "fresh_references"
_TABLE = table_storage(_REFERENCES)
_NAME = "chunks"
_STORAGE = table_storage(_NAME)
_FEW_FALLBACKS = "few_fallbacks"
_SUMMARIES_WRITTEN = "summaries_are_written"
_SAMPLE = ("path", "start_line", "end_line", "chunk_type", "qualified_name")


def _write(layout: Layout, key: str, table: pa.Table, about: Mapping[bytes, bytes]) -> bool:
    # If a retry may improve the table, leave out its fingerprint, so the next run rebuilds it.
    is_written = _TABLE.write(layout, key, table, about if is_settled(table) else {})
    layout.table(_FRESH, key).unlink(missing_ok=True)
    return is_written


_REFERENCES_STORAGE = Storage((_REFERENCES,), _TABLE.read, _write, _TABLE.version_of)


def store_fresh_references(run: SourceRun, files: pa.Table, rows: pa.Table) -> None:
    """Store the references that were extracted during chunking, with those that an earlier run stored.

    Args:
        run: The run that chunked the files.
        files: The `discovered_files` table.
        rows: The new references.
    """
    if not rows.num_rows:
        return
    fingerprint = references_fingerprint(files)
    path = run.layout.table(_FRESH, run.key)
    earlier = usable(None if run.is_full else tables.read(path), fingerprint)
    others = earlier.filter(pc.invert(pc.is_in(earlier["path"], pc.unique(rows["path"]))))
    tables.write(path, as_table(pa.concat_tables([others, rows]), fingerprint))


def _extract(run: SourceRun, inputs: Inputs) -> Outcome:
    files, chunks = inputs["discovered_files"], inputs["chunks"]
    if not run.wants_references:
        nothing = as_table(REFERENCES.empty_table(), "")
        return Outcome(
            nothing, {_REFERENCES: Report(_REFERENCES_STORAGE.version_of(nothing), {"files": 0}, rows=nothing)}
        )
    found = build_references(
        run.source,
        files,
        chunks,
        fresh=tables.read(run.layout.table(_FRESH, run.key)),
        previous=previous(run, _REFERENCES_STORAGE),
        settings=run.settings.chunking,
    )
    return Outcome(found.table, {_REFERENCES: _report_references(found)})


def _report_references(found: ReferencesResult) -> Report:
    table = found.table
    return Report(
        version=_REFERENCES_STORAGE.version_of(table),
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


REFERENCES_OF_FILES = Stage(
    name=_REFERENCES,
    products=(
        Product(
            _REFERENCES,
            "References of each code file: definitions, imports, calls and assignments, one row per file.\n\n"
            "See docs/explanation/call-graph.md.",
            frozenset({"treesitter", "parquet"}),
        ),
    ),
    group="graph",
    version=REFERENCES_VERSION,
    inputs=("discovered_files", "chunks"),
    run=_extract,
    storage=_REFERENCES_STORAGE,
    depends_on=lambda run: str(run.wants_references),
    decided_by=("chunks",),
)


def inputs_of(run: SourceRun, files: pa.Table, commits: pa.Table) -> ChunkInputs:
    """Collect the inputs of chunking."""
    return gather(files, run.settings.chunking, commits, run.summariser)


def _cut(run: SourceRun, inputs: Inputs) -> Outcome:
    gathered = inputs_of(run, inputs["discovered_files"], inputs["commits"])
    before = previous(run, _STORAGE)
    result = build_chunks(
        run.source,
        gathered,
        before,
        run.settings.chunking,
        run.summariser,
        wants_references=run.wants_references,
    )
    store_fresh_references(run, inputs["discovered_files"], result.references)
    for problem in result.summaries.problems if result.summaries else ():
        run.notice(problem)
    file_chunks = result.table.filter(pc.not_equal(result.table["source_type"], COMMIT))
    files = len(file_chunks["path"].unique())
    as_text = fallbacks(file_chunks)
    return Outcome(
        result.table,
        {_NAME: _report(result, before, file_chunks, as_text)},
        checks={
            _FEW_FALLBACKS: _few_fallbacks(as_text, files),
            _SUMMARIES_WRITTEN: _summaries_are_written(result.summaries),
        },
        warnings=tuple(filter(None, (left_out_warning(result.left_out), warning(as_text, files)))),
    )


def _report(
    result: ChunkingResult, before: pa.Table | None, file_chunks: pa.Table, as_text: Mapping[str, str]
) -> Report:
    table = result.table
    left_out = {"left_out_files": text_table(("path", "reason"), result.left_out)} if result.left_out else {}
    return Report(
        version=_STORAGE.version_of(table),
        numbers={
            "files": len(file_chunks["path"].unique()),
            "commits": table.num_rows - file_chunks.num_rows,
            **changes(table, before, "chunk_id", "row_hash"),
            "fallbacks": len(as_text),
            "unreadable": len(result.left_out),
            **_summary_numbers(result.summaries),
        },
        rows=table,
        sample=pick_sample_chunks(file_chunks).select(list(_SAMPLE)),
        breakdowns={
            **left_out,
            "languages": counts(file_chunks["language"], "language", "chunks"),
            "chunk_types": counts(table["chunk_type"], "type", "chunks"),
        },
    )


def _summary_numbers(summaries: SummaryCounts | None) -> dict[str, int]:
    """Return the reported numbers about summaries; empty if they are disabled."""
    if summaries is None:
        return {}
    return {
        "summarised": summaries.summarised,
        "summaries_reused": summaries.reused,
        "summaries_failed": summaries.failed,
        "summaries_left": summaries.left,
        "summary_input_tokens": summaries.input_tokens,
        "summary_output_tokens": summaries.output_tokens,
    }


def _few_fallbacks(as_text: Mapping[str, str], files: int) -> CheckResult:
    details = {"files": text_table(("path", "reason"), as_text.items())} if as_text else {}
    return CheckResult(not is_above_threshold(len(as_text), files), phrase(len(as_text), files), details)


def _summaries_are_written(summaries: SummaryCounts | None) -> CheckResult:
    is_complete = summaries is None or not summaries.failed
    return CheckResult(is_complete, "\n".join(summaries.problems) if summaries else "")


CHUNKS = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "Chunks, the units that a search returns, one row each: text, location, symbol and headings. Each commit "
            "is a chunk, too.\n\nSee docs/explanation/freshness.md.",
            frozenset({"treesitter", "parquet"}),
        ),
    ),
    group="chunking",
    version=EXTRACTOR_VERSION,
    inputs=("discovered_files", "commits"),
    run=_cut,
    storage=_STORAGE,
    rules=CHUNK_RULES,
    warnings={
        _FEW_FALLBACKS: "Warns if more than 2% of a source's files could not be parsed and were chunked as plain text. "
        "`docindex doctor --json` lists them; `docindex index` retries files that timed out.",
        _SUMMARIES_WRITTEN: "Warns if chunks have no summary because the LLM failed. They are still searchable.",
    },
)
