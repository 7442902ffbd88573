"""Summary of a source's run, with the numbers that `docindex index` prints."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docindex_dagster.pipeline.up_to_date import Settled


def outcome_summary(key: str, outcome: Any) -> dict[str, Any]:
    """Return the outcome of a run that indexed or removed a source."""
    return {
        "source": key,
        "run_id": outcome.run_id,
        "succeeded": outcome.succeeded,
        "failures": list(outcome.failures),
        "warnings": list(outcome.warnings),
    }


def summary_of(key: str, outcome: Any, seconds: float) -> dict[str, Any]:
    """Return the summary of a run."""
    return {
        **outcome_summary(key, outcome),
        "files": outcome.number("discovered_files", "files"),
        "skipped": outcome.number("discovered_files", "skipped"),
        "fallbacks": outcome.number("chunks", "fallbacks"),
        "chunks": outcome.number("chunks", "dagster/partition_row_count"),
        "added": outcome.number("lancedb_table", "added"),
        "changed": outcome.number("lancedb_table", "changed"),
        "removed": outcome.number("lancedb_table", "removed"),
        "embedded": outcome.number("embeddings", "embedded"),
        "seconds": round(seconds, 2),
    }


def summary_of_up_to_date(key: str, settled: "Settled", seconds: float) -> dict[str, Any]:
    """Return the summary for a source that was up to date, so that no run was needed."""
    published = settled.publication.source
    nothing = dict.fromkeys(("added", "changed", "removed", "embedded"), 0)
    return {
        "source": key,
        "run_id": None,
        "succeeded": True,
        "failures": [],
        "warnings": [],
        "files": settled.files["skipped_reason"].null_count,
        "skipped": settled.files.num_rows - settled.files["skipped_reason"].null_count,
        "fallbacks": published.fallbacks,
        "chunks": published.chunks,
        **nothing,
        "seconds": round(seconds, 2),
    }
