"""A job server without HTTP, for tests that kill it: python -m tests.serving.jobs.server SOURCE KEY.

It resumes the jobs of the project that `DOCINDEX_ROOT` names, prints `open`, and submits one job with a key. It prints
the id of that job and, when the job has ended, its state.
"""

import sys
import time

from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.core.settings import load_settings
from docindex_dagster.serving.jobs.model import JobRequest


def main() -> None:
    """Serve until killed, or until the job has ended."""
    source, key = sys.argv[1:]
    with job_queue(load_settings()) as jobs:
        say("open")
        job = jobs.submit(JobRequest("index", source), key)
        say(job.id)
        while not jobs.get(job.id).state.has_ended:
            time.sleep(0.02)
        say(str(jobs.get(job.id).state))


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
