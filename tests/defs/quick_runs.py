"""Real runs that take milliseconds and look like source-indexing runs, with a chosen outcome, name and tags."""

from typing import Any

import dagster as dg

from docindex_dagster.core.errors import SourceError
from docindex_dagster.defs.tags import ONLY_TAG, PARTITION_TAG
from tests.defs.conftest import KEY


def quick_run(
    instance: dg.DagsterInstance,
    failure: str | BaseException | None = None,
    *,
    key: str | None = KEY,
    job: str = "index_source",
    only: bool = False,
    tags: dict[str, str] | None = None,
) -> str:
    """Run a one-step job and return the id of its run.

    Args:
        instance: where the run is recorded.
        failure: the message of a docindex error, or any exception; None: the run succeeds.
        key: the source; None: the run has no source.
        job: the job name.
        only: limits the run to some files.
        tags: additional tags.
    """

    @dg.op(name="discovered_files")
    def step() -> None:
        if isinstance(failure, str):
            raise SourceError(failure)
        if failure is not None:
            raise failure

    @dg.job(name=job)
    def definition() -> None:
        step()

    all_tags: dict[str, Any] = {**({PARTITION_TAG: key} if key else {}), **({ONLY_TAG: '["a.md"]'} if only else {})}
    result = definition.execute_in_process(instance=instance, raise_on_error=False, tags={**all_tags, **(tags or {})})
    assert result.success == (failure is None)
    return result.run_id


def waiting_run(instance: dg.DagsterInstance, key: str = KEY) -> str:
    """Create a run that has not started."""
    run = dg.DagsterRun("index_source", status=dg.DagsterRunStatus.NOT_STARTED, tags={PARTITION_TAG: key})
    return instance.add_run(run).run_id
