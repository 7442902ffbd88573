"""Partitions and run tags under which Dagster records the work of docindex."""

import json
from collections.abc import Sequence

import dagster as dg

from docindex_dagster.runner.entries import Mode

# Dagster's own tags: the partition of a run, the data version of an event, and the data version of its input.
PARTITION_TAG = "dagster/partition"
DATA_VERSION_TAG = "dagster/data_version"
PREPARED_VERSION_TAG = "dagster/input_data_version/prepared_tables"
# Marks a run that reuses nothing: `docindex index --full`.
FULL_TAG = "docindex/full"
# Marks a run that trusts neither timestamps nor stores: it reads every file and compares every row.
VERIFY_TAG = "docindex/verify"
# Why a sensor or schedule requested a run.
REASON_TAG = "docindex/reason"
# The source that a run of `remove_source` removes.
SOURCE_TAG = "docindex/source"
# What started a run in its own process: "command line", "watch" or "serve".
LAUNCHER_TAG = "docindex/launched_by"
# Marks a run over some files of its source: a JSON list of their paths, as tables name them.
ONLY_TAG = "docindex/only"
# When a run that was recorded later ended, in UTC and ISO 8601.
ENDED_AT_TAG = "docindex/ended_at"
# Marks a run that failed only because it refused the tables of some sources; it published all others.
REFUSED_TAG = "docindex/refused"
# Marks a run that failed because its process died.
LOST_TAG = "docindex/lost"
# The state of a source when a user canceled a run of it, as the sensors on files see it.
DECLINED_TAG = "docindex/declined"
# Marks runs of `maintain_stores`.
MAINTENANCE_TAG = "docindex/maintenance"
# The request that a run answers.
REQUEST_TAG = "docindex/request"

SOURCES_NAME = "source"
SOURCES = dg.DynamicPartitionsDefinition(name=SOURCES_NAME)
DOMAINS_NAME = "memory_domain"
DOMAINS = dg.DynamicPartitionsDefinition(name=DOMAINS_NAME)
# These partitions belong to no asset: they hold state for machines without a common disk.
WITHDRAWN_NAME = "docindex_withdrawn_source"
REQUESTS_NAME = "docindex_requested_run"


def tags_of(mode: Mode, only: Sequence[str]) -> dict[str, str]:
    """Return the tags of a run that does more, or less, than look for changes."""
    if mode != "changes":
        return {FULL_TAG if mode == "full" else VERIFY_TAG: "true"}
    return {ONLY_TAG: json.dumps(list(only))} if only else {}
