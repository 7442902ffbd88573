"""The jobs of `docindex serve`: what does them, and what knows of Dagster's runs."""

import sys

from docindex_dagster.core.settings import Settings
from docindex_dagster.serving.jobs.queue import Jobs

_COMMAND = (sys.executable, "-P", "-m", "docindex_dagster.cli.job")


def jobs_of(settings: Settings, *, is_on: bool = True) -> Jobs:
    """The jobs of a project, not yet opened; see `Jobs`."""
    from docindex_dagster.cli.launch import RecordedRuns

    return Jobs(settings, RecordedRuns(settings), _COMMAND, is_on=is_on)
