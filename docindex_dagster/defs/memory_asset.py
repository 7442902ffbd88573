"""The asset `memory`: what was said in a domain, folded from its log into stores of its own.

Dagster's record holds numbers, and no word of a message: what is forgotten could not be erased there. An extractor, a
chunker or the API of a model may quote what it was given, so neither their errors nor their warnings go into it.
"""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import dead_runs, metadata
from docindex_dagster.defs.failures import as_dagster_failure
from docindex_dagster.defs.resources import Project
from docindex_dagster.defs.tags import DOMAINS
from docindex_dagster.memory.fold import fold, is_wordless, reason
from docindex_dagster.memory.log import open_log
from docindex_dagster.memory.results import Folding

MEMORY = dg.AssetKey("memory")
_LOG_IS_WHOLE = "the_log_is_whole"
_NOTHING = "nothing"  # the data version of a domain in which nothing was said


@dg.asset(
    partitions_def=DOMAINS,
    group_name="memory",
    kinds={"lancedb", "tantivy"},
    code_version="1",
    check_specs=[
        metadata.check_spec(
            _LOG_IS_WHOLE,
            MEMORY,
            "Warns when bytes of the log of a domain are damaged, and names them; all other messages are folded. The "
            "damaged ones are lost unless a back-up has them.",
            DOMAINS,
        )
    ],
)
@as_dagster_failure
def memory(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[None]]:
    """What agents, their users and their tools said in a domain, searchable from stores of its own.

    It is searchable before, too: a search of a domain looks at its log as well. A run folds what the log has since the
    last one, and erases what is forgotten. The sensor `memory` asks for it. See docs/operations.md, “Memory”.
    """
    started = time.perf_counter()
    settings, key = project.read_settings(), context.partition_key
    dead_runs.begin(context.instance, settings, context.run.run_id)
    flaws = _flaws(settings, key)
    done = _folded(context, settings, key)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(done.version or _NOTHING),
        metadata={**_metadata(done), "seconds": metadata.seconds_since(started)},
        check_results=[
            dg.AssetCheckResult(
                passed=not flaws,
                severity=dg.AssetCheckSeverity.WARN,
                check_name=_LOG_IS_WHOLE,
                metadata={"count": len(flaws), **({"where": metadata.texts(("place",), flaws)} if flaws else {})},
            )
        ],
    )


def _folded(context: dg.AssetExecutionContext, settings: Settings, key: str) -> Folding:
    """Fold a domain; of an error that may quote what was said, nothing but its kind is recorded."""
    try:
        return fold(settings, key, on_wait=lambda owner: context.log.info(f"{key} waits for {owner}"))
    except Exception as error:
        if is_wordless(error):
            raise
        raise dg.Failure(reason(error, key), allow_retries=False) from None


def _flaws(settings: Settings, key: str) -> list[tuple[str]]:
    """Where the log is damaged, by segment and byte."""
    found = open_log(Layout(settings.home), key).read().flaws
    return [(f"{each.position.segment} at byte {each.position.start:,}",) for each in found if not each.is_torn]


def _metadata(done: Folding) -> dict[str, Any]:
    return {
        "dagster/partition_row_count": done.chunks,
        "messages": done.messages,
        "added": done.added,
        "removed": done.removed,
        "chunks": done.chunks,
        "concepts": done.concepts,
        "edges": done.edges,
        **({} if done.generation is None else {"generation": done.generation}),
        **({"erased": len(done.receipt.forgotten), "erased_files": done.receipt.files} if done.receipt else {}),
        "warnings": len(done.warnings),
    }
