"""The stages that cut the files of a source into chunks, and that extract what these files say about names.

The workers that cut a file extract its references from the same tree. The stage of the chunks leaves them in a table of
its own, until the stage of the references has written its table: so nothing is lost or parsed twice if a run ends
between the two, or if each has a process of its own.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES, REFERENCES_VERSION, as_table, is_settled, usable
from docindex_dagster.chunking.build import ChunkingResult, ReferencesResult, build_chunks, build_references
from docindex_dagster.chunking.inputs import EXTRACTOR_VERSION, ChunkInputs, gather, references_fingerprint
from docindex_dagster.chunking.summaries import SummaryCounts
from docindex_dagster.chunking.table_rules import CHUNK_RULES, are_many, fallbacks, left_out_warning, phrase, warning
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
    previous,
    table_storage,
    texts,
    well_known,
)

_REFERENCES = "references"
_LEFT = "fresh_references"
_TABLE = table_storage(_REFERENCES)
_NAME = "chunks"
_STORAGE = table_storage(_NAME)
_FEW_FALLBACKS = "few_fallbacks"
_SUMMARIES_WRITTEN = "summaries_are_written"
_SAMPLE = ("path", "start_line", "end_line", "chunk_type", "qualified_name")


def _write(layout: Layout, key: str, table: pa.Table, about: Mapping[bytes, bytes]) -> bool:
    # A table that another try may better does not say what it was made of, so that the next run makes it again.
    is_written = _TABLE.write(layout, key, table, about if is_settled(table) else {})
    layout.table(_LEFT, key).unlink(missing_ok=True)
    return is_written


_REFERENCES_STORAGE = Storage((_REFERENCES,), _TABLE.read, _write, _TABLE.version_of)


def leave(run: SourceRun, files: pa.Table, rows: pa.Table) -> None:
    """Leave what was extracted from files as they were cut, beside what an earlier run left and nobody has taken.

    Args:
        run: the run that cut the files.
        files: the `discovered_files`.
        rows: the references that were extracted now.
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
        return Outcome(
            nothing, {_REFERENCES: Report(_REFERENCES_STORAGE.version_of(nothing), {"files": 0}, rows=nothing)}
        )
    found = build_references(
        run.source,
        files,
        chunks,
        fresh=tables.read(run.layout.table(_LEFT, run.key)),
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
            "What each file of code says about names: what it defines, imports, calls and assigns, one row each.\n\n"
            "See docs/graph.md, “How it works”.",
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
    """What the chunks are made of."""
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
    leave(run, inputs["discovered_files"], result.references)
    for problem in result.summaries.problems if result.summaries else ():
        run.notice(problem)
    of_files = result.table.filter(pc.not_equal(result.table["source_type"], COMMIT))
    files = len(of_files["path"].unique())
    as_text = fallbacks(of_files)
    return Outcome(
        result.table,
        {_NAME: _report(result, before, of_files, as_text)},
        checks={
            _FEW_FALLBACKS: _few_fallbacks(as_text, files),
            _SUMMARIES_WRITTEN: _summaries_are_written(result.summaries),
        },
        warnings=tuple(filter(None, (left_out_warning(result.left_out), warning(as_text, files)))),
    )


def _report(result: ChunkingResult, before: pa.Table | None, of_files: pa.Table, as_text: Mapping[str, str]) -> Report:
    table = result.table
    left_out = {"left_out_files": texts(("path", "reason"), result.left_out)} if result.left_out else {}
    return Report(
        version=_STORAGE.version_of(table),
        numbers={
            "files": len(of_files["path"].unique()),
            "commits": table.num_rows - of_files.num_rows,
            **changes(table, before, "chunk_id", "row_hash"),
            "fallbacks": len(as_text),
            "unreadable": len(result.left_out),
            **_of_summaries(result.summaries),
        },
        rows=table,
        sample=well_known(of_files).select(list(_SAMPLE)),
        breakdowns={
            **left_out,
            "languages": counts(of_files["language"], "language", "chunks"),
            "chunk_types": counts(table["chunk_type"], "type", "chunks"),
        },
    )


def _of_summaries(summaries: SummaryCounts | None) -> dict[str, int]:
    """What is reported of summaries; nothing where they are off."""
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
    details = {"files": texts(("path", "reason"), as_text.items())} if as_text else {}
    return CheckResult(not are_many(len(as_text), files), phrase(len(as_text), files), details)


def _summaries_are_written(summaries: SummaryCounts | None) -> CheckResult:
    is_complete = summaries is None or not summaries.failed
    return CheckResult(is_complete, "\n".join(summaries.problems) if summaries else "")


CHUNKS = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "The pieces that a search returns, one row each: text, place, symbol and headings. A commit is a piece, "
            "too.\n\nSee docs/architecture.md, “What is reused”.",
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
        _FEW_FALLBACKS: "Warns when over 2 % of the files of a source had to be cut as text because they could not be "
        "parsed: `docindex doctor --json` lists them, `docindex index` tries those again that took too long.",
        _SUMMARIES_WRITTEN: "Warns when chunks are without a summary because the LLM failed; they can be searched "
        "nevertheless.",
    },
)
