"""The record of runs that jobs need, which the command line gives them."""

from typing import Protocol

from docindex_dagster.serving.jobs.model import Job


class RecordedRuns(Protocol):
    """The runs of a project, those of jobs and all others."""

    def newest(self, limit: int) -> list[Job]:
        """The newest runs that index or remove a source, as jobs."""

    def get(self, run_id: str) -> Job | None:
        """One run as a job; None where there is none."""

    def cancel(self, run_id: str) -> None:
        """Stop a run that is not a job's.

        Raises:
            EndedJobError: it has ended.
            JobError: it is not known how to reach it.
        """

    def mark_cancelling(self, run_id: str) -> None:
        """Note that a run is about to be stopped on purpose, so that it does not count as failed; if there is one."""
