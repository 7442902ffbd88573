"""A server without HTTP, to be killed: python -m tests.serving.jobs.server SOURCE KEY.

It takes up the jobs of the project that `DOCINDEX_ROOT` names, prints `open`, submits one job with a key, and prints
its id, then its state when it has ended.
"""

import sys
import time

from docindex_dagster.cli.dagster_runs import job_queue
from docindex_dagster.core.settings import load_settings
from docindex_dagster.serving.jobs.model import JobRequest


def main() -> None:
    """Serve until it is killed, or the job has ended."""
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
