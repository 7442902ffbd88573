"""The partitions and run tags under which Dagster records the work of docindex."""

import json
from collections.abc import Sequence

import dagster as dg

from docindex_dagster.runner.entries import Mode

# Dagster's own tags: the partition of a run, the data version of an event, and that of its input.
PARTITION_TAG = "dagster/partition"
DATA_VERSION_TAG = "dagster/data_version"
PREPARED_VERSION_TAG = "dagster/input_data_version/prepared_tables"
# A run with this tag reuses nothing: `docindex index --full`.
FULL_TAG = "docindex/full"
# A run with this tag trusts no time stamp and no store: every file is read, and every row compared.
VERIFY_TAG = "docindex/verify"
# Why a sensor or schedule asked for a run.
REASON_TAG = "docindex/reason"
# The source that a run of `remove_source` takes out.
SOURCE_TAG = "docindex/source"
# What started a run in a process of its own: "command line", "watch" or "serve".
LAUNCHER_TAG = "docindex/launched_by"
# A run with this tag looks at some files of its source alone: a JSON list of their paths, as tables name them.
ONLY_TAG = "docindex/only"
# When a run ended that was recorded later, UTC in ISO 8601.
ENDED_AT_TAG = "docindex/ended_at"
# Of a run that published all but the sources whose tables it refused: it has failed because of them alone.
REFUSED_TAG = "docindex/refused"
# Marks a run that failed because its process was gone.
LOST_TAG = "docindex/lost"
# Of a run that a user cancelled: the state of its source at that time, as the sensors on files see it.
DECLINED_TAG = "docindex/declined"
# Of the runs of `maintain_stores`.
MAINTENANCE_TAG = "docindex/maintenance"
# Which request a run is for.
REQUEST_TAG = "docindex/request"

SOURCES_NAME = "source"
SOURCES = dg.DynamicPartitionsDefinition(name=SOURCES_NAME)
DOMAINS_NAME = "memory_domain"
DOMAINS = dg.DynamicPartitionsDefinition(name=DOMAINS_NAME)
# Of no asset: what machines without a common disk have to know in common.
WITHDRAWN_NAME = "docindex_withdrawn_source"
REQUESTS_NAME = "docindex_requested_run"


def tags_of(mode: Mode, only: Sequence[str]) -> dict[str, str]:
    """The tags of a run that does more, or less, than look for changes."""
    if mode != "changes":
        return {FULL_TAG if mode == "full" else VERIFY_TAG: "true"}
    return {ONLY_TAG: json.dumps(list(only))} if only else {}
