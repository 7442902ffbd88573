"""What jobs need of Dagster's record of runs, which the command line gives them."""

from typing import Protocol

from docindex_dagster.serving.jobs.model import Job


class RecordedRuns(Protocol):
    """The runs of a project, those of jobs and all others."""

    def prepare(self) -> None:
        """Load what the other methods need."""

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

    def mark_canceled(self, run_id: str) -> None:
        """Note that a run was stopped on purpose, and that no sensor is to start it again; if there is one."""

    def mark_lost(self, run_id: str) -> None:
        """Note that the process of a run is gone; if there is such a run and it has not ended."""
