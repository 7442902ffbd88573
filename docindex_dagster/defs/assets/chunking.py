"""The chunks of a source."""

import time
from collections.abc import Iterator, Mapping

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster import tables
from docindex_dagster.chunking.build import EXTRACTOR_VERSION, build_chunks, gather
from docindex_dagster.chunking.fallbacks import are_many, fallbacks, left_out_warning, phrase, warning
from docindex_dagster.chunking.summaries import SummaryCounts, summariser_of
from docindex_dagster.chunking.verify import CHUNK_RULES
from docindex_dagster.defs import metadata
from docindex_dagster.defs.failures import told
from docindex_dagster.defs.partitions import SOURCES
from docindex_dagster.defs.resources import SourceRun
from docindex_dagster.errors import VerificationError
from docindex_dagster.schemas import COMMIT

_FEW_FALLBACKS = "few_fallbacks"
_SUMMARIES_WRITTEN = "summaries_are_written"
_SAMPLE = ("path", "start_line", "end_line", "chunk_type", "qualified_name")


@dg.asset(
    partitions_def=SOURCES,
    group_name="chunking",
    kinds={"treesitter", "parquet"},
    code_version=EXTRACTOR_VERSION,
    io_manager_key="parquet",
    output_required=False,
    check_specs=[
        *metadata.rule_specs("chunks", CHUNK_RULES),
        metadata.source_warning_spec(
            _FEW_FALLBACKS,
            "chunks",
            "Warns when over 2 % of the files of a source had to be cut as text because they could not be "
            "parsed: `docindex doctor --json` lists them, `docindex index` tries those again that took too long.",
        ),
        metadata.source_warning_spec(
            _SUMMARIES_WRITTEN,
            "chunks",
            "Warns when chunks are without a summary because the LLM failed; they can be searched nevertheless.",
        ),
    ],
)
@told
def chunks(
    context: dg.AssetExecutionContext, run: SourceRun, discovered_files: pa.Table, commits: pa.Table
) -> Iterator[dg.MaterializeResult[pa.Table] | dg.AssetCheckResult]:
    """The pieces that a search returns, one row each: text, place, symbol and headings. A commit is a piece, too.

    See docs/architecture.md, “What is reused”.
    """
    started = time.perf_counter()
    try:
        chunking, summariser = run.settings.chunking, summariser_of(run.settings, context.partition_key)
        inputs = gather(discovered_files, chunking, commits, summariser)
        result = build_chunks(run.source, inputs, run.previous("chunks"), chunking, summariser)
    except VerificationError as error:
        yield from metadata.failed("chunks", CHUNK_RULES, error)
        yield from metadata.not_evaluated("chunks", _FEW_FALLBACKS, _SUMMARIES_WRITTEN)
        return
    for failure in result.summaries.problems if result.summaries else ():
        run.reporter(context.log)(failure)
    of_files = result.table.filter(pc.not_equal(result.table["source_type"], COMMIT))
    files = len(of_files["path"].unique())
    cut_as_text = fallbacks(of_files)
    warnings = list(filter(None, (left_out_warning(result.left_out), warning(cut_as_text, files))))
    for text in warnings:
        context.log.warning(text)
    yield dg.MaterializeResult(
        value=result.table,
        data_version=dg.DataVersion(tables.stamped_version(result.table.schema.metadata) or ""),
        metadata=metadata.of_table(
            result.table,
            {
                **({"warnings": "\n".join(warnings)} if warnings else {}),
                "files": files,
                "commits": commits.num_rows,
                "added": result.added,
                "changed": result.changed,
                "reused": result.reused,
                "removed": result.removed,
                "fallbacks": len(cut_as_text),
                "unreadable": len(result.left_out),
                **_numbers(result.summaries),
                "seconds": metadata.seconds_since(started),
            },
            sample=of_files.select(list(_SAMPLE)),
            **({"left_out_files": metadata.texts(("path", "reason"), result.left_out)} if result.left_out else {}),
            languages=metadata.counts(of_files["language"], "language", "chunks"),
            chunk_types=metadata.counts(result.table["chunk_type"], "type", "chunks"),
        ),
        check_results=[
            *metadata.passed("chunks", CHUNK_RULES),
            _few_fallbacks(cut_as_text, files),
            _summaries_are_written(result.summaries),
        ],
    )


def _few_fallbacks(cut_as_text: Mapping[str, str], files: int) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not are_many(len(cut_as_text), files),
        severity=dg.AssetCheckSeverity.WARN,
        check_name=_FEW_FALLBACKS,
        description=phrase(len(cut_as_text), files),
        metadata={"files": metadata.texts(("path", "reason"), cut_as_text.items())} if cut_as_text else {},
    )


def _numbers(summaries: SummaryCounts | None) -> dict[str, int]:
    """What is shown of summaries; nothing where they are off."""
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


def _summaries_are_written(summaries: SummaryCounts | None) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=summaries is None or not summaries.failed,
        severity=dg.AssetCheckSeverity.WARN,
        check_name=_SUMMARIES_WRITTEN,
        metadata={"reason": "\n".join(summaries.problems)} if summaries and summaries.problems else {},
    )
